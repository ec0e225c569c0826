"""The views: what users can query, read and export, under which name, with which columns."""

from collections.abc import Collection
from typing import NamedTuple

from .columns import Column, Columns, join_columns
from .declaration import Kind, Owner, RowKey
from .document_schema import DOCUMENTS_COLUMNS
from .item_views import ITEM_VIEWS
from .kinds import KINDS
from .schema import PAGES_COLUMNS, STATE_COLUMNS, TEXT
from .vocabulary import (
    BATCHES_COLUMNS,
    HOST_COLUMN,
    LINK_COLUMNS,
    MARKDOWN_COLUMN,
    PAGE_COLUMNS,
    URL_COLUMN,
)


class View(NamedTuple):
    """Rows that users can query and export, under a name.

    Attributes:
        meaning: What a row is, such as a URL of the table.
        columns: The columns of the view, as users see them.
        kind: The component whose rows the view has; None if it is made of several components.
        on_request: Names of the columns that a reader gets only if it names them.
    """

    meaning: str
    columns: Columns
    kind: Kind | None = None
    on_request: tuple[str, ...] = ()

    @property
    def usual_columns(self) -> Columns:
        """The columns that a reader gets if it names none."""
        return self.columns.drop(*self.on_request)

    def pick(self, names: Collection[str]) -> Columns:
        """Returns the columns that a reader names; the usual ones if it names none.

        Raises:
            ValueError: There is no such column; the message quotes it.
        """
        return self.columns.pick_named(*names) if names else self.usual_columns


INDEX_NAMES = Columns([Column("index_name", TEXT, "Name of the index (`--index`).")])


def views() -> dict[str, View]:
    """Returns the views that users can query and export, by name, the most used ones first.

    >>> list(views())[:6]
    ['state', 'hosts', 'inlinks', 'pages', 'outlinks', 'batches']
    """
    of_rows = [kind for kind in KINDS.values() if kind.in_tablets and kind.owner is not Owner.INDEX]
    of_batches = [kind for kind in KINDS.values() if kind.owner is Owner.BATCH]
    others = [kind for kind in KINDS.values() if kind not in (*of_rows, *of_batches)]
    further_columns = join_columns(
        [MARKDOWN_COLUMN],
        DOCUMENTS_COLUMNS.pick("blocks", "main", "structured_data"),
        PAGES_COLUMNS.pick("headers", "body"),
        STATE_COLUMNS.pick("batch_id", "key"),
    )
    named_views = [
        *((kind.shown_as, _view_of(kind)) for kind in of_rows),
        ("pages", View(
            "a URL that is alive: fetched, and not gone, redirected or a duplicate; with its newest text",
            join_columns(PAGE_COLUMNS, further_columns),
            on_request=tuple(further_columns.schema.names),
        )),
        ("outlinks", View("a link in the newest text of a URL", LINK_COLUMNS)),
        ("batches", View("a batch", BATCHES_COLUMNS)),
        *((name, View(view.meaning, join_columns(
            [URL_COLUMN], view.columns, STATE_COLUMNS.pick("key"),
        ))) for name, view in ITEM_VIEWS.items()),
        *((kind.shown_as, _view_of(kind)) for kind in (*of_batches, *others)),
    ]  # fmt: skip
    by_name = dict(named_views)
    if len(by_name) < len(named_views):
        raise ValueError(f"two views have one name: {[name for name, _ in named_views]}")
    return by_name


def _view_of(kind: Kind) -> View:
    columns = shown_columns(kind)
    if kind.columns != DOCUMENTS_COLUMNS:
        return View(kind.meaning, columns, kind)
    columns = join_columns(columns.drop("key"), [MARKDOWN_COLUMN], columns.pick("key"))
    return View(kind.meaning, columns, kind, on_request=(MARKDOWN_COLUMN.name,))


def shown_columns(kind: Kind) -> Columns:
    """Returns the columns of a component that users see: URL or host first, the key last.

    >>> names = [column.name for column in shown_columns(KINDS["outcome"])]
    >>> names[:4], names[-1]
    (['batch_id', 'url', 'document', 'status'], 'key')
    """
    name = HOST_COLUMN if kind.key is RowKey.HOST else URL_COLUMN
    owner = Columns()
    if kind.owner is not Owner.TABLE:
        columns = BATCHES_COLUMNS if kind.owner is Owner.BATCH else INDEX_NAMES
        owner = columns.pick(kind.owner.column)
    named = [name] if kind.key in (RowKey.URL, RowKey.HOST) else []
    return join_columns(owner, named, kind.columns.drop("key"), kind.columns.pick("key"))
