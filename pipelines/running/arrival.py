"""The first steps of a job on remote workers: they import nutbeam, and check what the job needs."""

import dataclasses
from collections.abc import Callable

import apache_beam as beam

from ...io.table.opening import open_table
from ...transforms.tickets import Ticket, check_versions
from ...transforms.wiring.plugin_groups import chosen_plugins
from ...web.base.errors import UsageError, UserError
from ...web.plugins.plugins import load_plugins


@dataclasses.dataclass
class Arrive(beam.PTransform):
    """Starts a pipeline whose workers may lack nutbeam, or a package that it needs.

    Input:  a pipeline.
    Output: the ticket.

    Cost: one more stage. Without it a worker of Flink fails before it can report the
    reason, and the job server waits for it for minutes.

    Attributes:
        ticket: The ticket.
        module: Full name of the module that builds the pipeline, which each worker imports.
    """

    ticket: Ticket
    module: str

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[Ticket]:
        return (
            pipeline
            | beam.Create([0])
            | "Import" >> beam.Map(_importing(self.module)).with_output_types(tuple[int, int])
            # Not a Reshuffle: Flink would skip the next Reshuffle, which spreads the work.
            | beam.GroupByKey()
            | "Give" >> beam.Map(_give, self.ticket).with_output_types(Ticket)
        )


def _importing(module: str) -> Callable[[int], tuple[int, int]]:
    def import_all(number: int) -> tuple[int, int]:
        import importlib

        importlib.import_module(module)
        return number, number

    return import_all  # an inner function, so that it is pickled by value


def _give(_: object, ticket: Ticket) -> Ticket:
    return ticket


def snapshot_to_find(address: str) -> int:
    """Returns the number of the newest snapshot, for ``check_worker``; makes a new table's folder.

    It is 0, without a request, for a table whose files all machines find.
    """
    table = open_table(address)
    if not table.why_unshared():
        return 0
    table.files.make_folder()
    return table.latest_snapshot()


def check_worker(ticket: Ticket, snapshot: int, options: object) -> Ticket:
    """Checks that this worker has everything that the job needs; returns the ticket.

    Args:
        ticket: The ticket.
        snapshot: Number of a snapshot that the launcher has found in the table.
        options: The options of the job; with them come the sources of plug-ins in files.

    Raises:
        UsageError: Versions differ, the worker cannot find the table, or a plug-in is not
            installed.
    """
    check_versions(ticket)
    try:
        table = open_table(ticket.address)
        files = table.files
        files.check_client()
    except (UserError, OSError) as error:
        raise UsageError(f"on the workers: {error}") from error
    late = snapshot > 0 and table.latest_snapshot() < snapshot
    if late or files.missing_folders():
        raise UsageError(
            f"the workers do not find the table {ticket.address!r}: its folder is not shared "
            "with them, although --shared_path says so"
        )
    try:
        for group, names in chosen_plugins(options):
            load_plugins(group, names)
    except UsageError as error:
        raise UsageError(
            f"on the workers: {error}; --plugin_package sends its package to them"
        ) from error
    return ticket
