"""The interface of a web table; jobs use it for all kinds of tables.

It is three interfaces in one, so that a function can demand only what it uses: ``TableSnapshots``,
``TableRows`` and ``TableTakedown``. ``FolderTable`` keeps rows in files, in a folder or a store.
``BigtableWebTable`` keeps in Bigtable what ``policy/components/kinds.py`` declares to be in rows,
such as the state, and everything else in files. ``open_table`` chooses the class.
"""

from .table_rows import TableRows
from .table_snapshots import TableSnapshots
from .table_takedown import TableTakedown


class WebTable(TableSnapshots, TableRows, TableTakedown):
    """A web table: its snapshots, its rows, and their takedown."""
