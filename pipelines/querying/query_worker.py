"""The program of a child process that runs queries of strangers: a line of JSON each, and one back.

It ends when its input does. ``query_process.py`` starts it, and ends it when a query takes too long.
"""

import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from ...io.snapshots.manifest import newest_manifest
from ...io.table.opening import open_table
from ...web.base.errors import UserError
from .limited_query import QueryLimits, QueryResult, bounded_result, check_query
from .sql import connect_duckdb, duckdb_errors, import_duckdb
from .sql_shell import with_statuses
from .sql_text import json_text, plain_value, unique_names
from .stored_rows import StoredRows

_LATE_S = 5.0
_THREADS = 4  # each reserves address space
# Address space that DuckDB and its threads reserve, but do not use.
_RESERVED = 1 << 30
_OUT_OF_MEMORY = ("Out of Memory", "Allocation failure", "bad allocation", "MemoryError")


class LimitedTable:
    """The views of a table for limited queries; each query sees the newest snapshot.

    Args:
        address: Address of the table.
        limits: The limits.
    """

    def __init__(self, address: str, limits: QueryLimits) -> None:
        self._address, self._limits = address, limits
        self._duckdb, self._failures = import_duckdb(), list[UserError]()
        self._opened: tuple[Any, StoredRows, int] | None = None

    def answer(self, query: str) -> QueryResult:
        """Returns the result of a query.

        Raises:
            UserError: The query is wrong, or a file cannot be read.
        """
        with duckdb_errors(self._duckdb, self._address, self._failures):
            connection, stored = self._newest()
            check_query(connection, query)
            runnable = with_statuses(query)
            check_query(connection, runnable)  # it is another text
            stored.bring(connection, runnable)
            result = connection.execute(runnable)
            names = unique_names([column[0] for column in result.description or ()])
            rows = result.fetchmany(self._limits.rows + 1)
            if len(rows) > self._limits.rows:  # the rest stays unread
                self._close()
            plain_rows = [[json.loads(json_text(plain_value(v))) for v in row] for row in rows]
        return bounded_result(names, plain_rows, self._limits)

    def _newest(self) -> tuple[Any, StoredRows]:
        manifest = newest_manifest(self._address)
        if self._opened is None or self._opened[2] != manifest.snapshot:
            self._close()
            stored = StoredRows(self._address, manifest.snapshot)
            files, settings = open_table(self._address).files, _settings(self._limits.memory)
            connection = connect_duckdb(
                self._duckdb, files, manifest, settings, stored.kinds, self._failures
            )
            self._opened = connection, stored, manifest.snapshot
        return self._opened[:2]

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened[0].close()


def _settings(memory: int) -> dict[str, str]:
    return {
        "memory_limit": f"{memory // 2}B",
        "max_temp_directory_size": f"{memory}B",
        "threads": str(_THREADS),
    }


def main() -> int:
    """Answers queries until the input ends."""
    address, *numbers = json.loads(sys.argv[1])
    limits = QueryLimits(*numbers)
    # Records go to a copy of the output; what else is written there goes to the error output.
    records = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    table = LimitedTable(address, limits)
    _limit_memory(limits.memory)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when this process ends
    for line in sys.stdin:
        late = threading.Timer(limits.seconds + _LATE_S, os._exit, (1,))  # there is no parent
        late.daemon = True
        late.start()
        record = _answer(table, json.loads(line))
        late.cancel()
        records.write(f"{json.dumps(record)}\n")
        records.flush()
    return 0


def _answer(table: LimitedTable, query: str) -> dict[str, Any]:
    try:
        return table.answer(query)._asdict()
    except (UserError, MemoryError) as error:
        text = str(error) or type(error).__name__
        if any(word in text for word in _OUT_OF_MEMORY):
            # What is left of the address space is in pieces: the process is of no more use.
            return {"error": "the query takes more memory than it may: select less", "last": True}
        return {"error": text}


def _limit_memory(memory: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + _RESERVED + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
