"""Tables whose rows are merged into another table, tablet by tablet."""

import logging
from collections.abc import Iterator

from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.operations import Operation
from ...io.storage.file_errors import NoTable
from ...io.storage.place_addresses import one_spelling
from ...io.table.opening import open_table
from ...io.tablets.tablets import Tablet, tablets
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.progress import PROGRESS
from ..base.command import Invocation
from ..launch.launch import preflight
from ..views.reading_job import Reading


@dataclass(frozen=True)
class OtherTablet:
    """A tablet of another table, for the operation that merges its rows."""

    operation: Operation
    reading: Reading
    tablet: Tablet


def other_readings(invocation: Invocation, *, skips_missing: bool) -> tuple[Reading, ...]:
    """Returns the newest snapshots of the tables ``others``, each once.

    Args:
        invocation: The command line.
        skips_missing: Whether tables that are not there are left out, with a warning.

    Raises:
        UsageError: None of them is there, or one is the table itself.
        NoTable: One is not there.
    """
    others = {one_spelling(other): other for other in invocation.arguments["others"]}
    readings = []
    for spelling, other in others.items():
        if spelling == one_spelling(str(invocation.table)):
            raise UsageError(f"a table is not merged with itself: {other!r}")
        preflight(other, invocation.options, invocation.beam_args)
        open_table(other).check_place()
        try:
            snapshot = newest_manifest(other).snapshot
        except NoTable as error:
            if not skips_missing:
                raise
            logging.getLogger(f"nutbeam.{invocation.command}").warning("left out: %s", error)
            continue
        readings.append(Reading(open_table(other).worker_address(), "", snapshot))
    if not readings:
        raise UsageError(f"none of the tables is there: {', '.join(others.values())}")
    return tuple(readings)


def other_tablets(
    operation: Operation, readings: tuple[Reading, ...], component: str
) -> Iterator[OtherTablet]:
    """Yields the tablets of a component of other tables."""
    items = [
        OtherTablet(operation, reading, tablet)
        for reading in readings
        for tablet in tablets(reading.files(component))
    ]
    PROGRESS.start(operation.job, total=len(items), unit="tablets")
    yield from items
