"""What the fetch of a partition learns about hosts."""

import itertools
import secrets
import time
from collections.abc import Iterator

from ...io.batches.batches import page_name, place, write_file
from ...io.batches.known_hosts import host_tables
from ...io.snapshots.operations import Operation
from ...io.tablets.written import Written
from ...web.base.clock import now_ms
from ...web.engine.engine import Engine

LEARNT_SECONDS = 30.0  # how old what was learnt about hosts may get before it is on disk


class Learnt:
    """Writes what an engine has learnt about hosts, for an attempt that takes over, too.

    Of an attempt only the last file counts: the one that was told to the commit,
    or the one that a later attempt finds.

    Args:
        operation: Of the fetch.
        number: Of the partition.
        engine: What learns.
    """

    def __init__(self, operation: Operation, number: int, engine: Engine) -> None:
        self._operation, self._number, self._engine = operation, number, engine
        self._started, self._attempt = now_ms(), secrets.token_hex(4)
        self._files, self._since = 0, time.monotonic()

    def now_and_then(self) -> None:
        """Writes what is known so far, if that was long ago."""
        if time.monotonic() - self._since > LEARNT_SECONDS:
            list(self.write())

    def write(self) -> Iterator[Written]:
        """Writes what is known; yields the file, if there is anything to tell."""
        operation, number = self._operation, self._number
        # file: has no host to keep anything of.
        records = (record for record in self._engine.hosts() if record.host)
        first = next(records, None)
        if first is not None:
            tables = host_tables(itertools.chain((first,), records))
            name = page_name(number, self._started, self._attempt, self._files)
            batch = str(operation.batch)
            file = write_file(operation.root, batch, "learnt", tables, partition=number, name=name)
            yield Written(place(batch, "learnt"), (file,))
        self._files += 1
        self._since = time.monotonic()
