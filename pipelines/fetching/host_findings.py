"""Writes the findings of a fetch about hosts: robots.txt, delays, back-off."""

import itertools
import secrets
import time
from collections.abc import Iterator

from ...io.batches.batches import batch_component, page_name, write_file
from ...io.batches.known_hosts import host_tables
from ...io.snapshots.operations import Operation
from ...io.tablets.written import Written
from ...web.base.clock import now_ms
from ...web.engine.engine import Engine

FINDINGS_SECONDS = 30.0  # longest time for which findings are only in memory


class HostFindings:
    """Writes an engine's findings about hosts, also for an attempt that takes over.

    Only the last file of an attempt counts: the one that is committed, or that a
    later attempt adopts.

    Args:
        operation: The fetch.
        number: Number of the partition.
        engine: The engine.
    """

    def __init__(self, operation: Operation, number: int, engine: Engine) -> None:
        self._operation, self._number, self._engine = operation, number, engine
        self._started, self._attempt = now_ms(), secrets.token_hex(4)
        self._files, self._since = 0, time.monotonic()

    def write_if_old(self) -> None:
        """Writes the findings, if the last write was long ago."""
        if time.monotonic() - self._since > FINDINGS_SECONDS:
            list(self.write())

    def write(self) -> Iterator[Written]:
        """Writes the findings; yields the file, if there are any."""
        operation, number = self._operation, self._number
        # file: URLs have no host, and need no record.
        tables = host_tables(record for record in self._engine.hosts() if record.host)
        first = next(tables, None)
        if first is not None:
            name = page_name(number, self._started, self._attempt, self._files)
            batch = str(operation.batch)
            rows = itertools.chain((first,), tables)
            file = write_file(
                operation.table, batch, "host_findings", rows, partition=number, name=name
            )
            yield Written(batch_component(batch, "host_findings"), (file,))
        self._files += 1
        self._since = time.monotonic()
