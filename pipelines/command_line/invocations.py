"""Runs a checked command, for the command line and for Python."""

import contextlib
from collections.abc import Callable

from ...io.storage.processes import all_in_scratch
from ...web.base.errors import UsageError
from ..base.beam_flags import beam_parser
from ..base.command import CommandModule, Invocation
from .commands import COMMANDS
from .messages import printed_into


def do_nothing() -> None:
    """Does nothing before a command runs."""


def run_invocation(
    module: CommandModule,
    invocation: Invocation,
    before_run: Callable[[], None] = do_nothing,
    output: str = "",
) -> int:
    """Checks the table and Beam's arguments of a command, and runs it; returns its exit code.

    Args:
        module: Its module.
        invocation: The command.
        before_run: Is called after the checks.
        output: File for what is printed; empty for standard output.
    """
    command = invocation.command
    if invocation.table is not None and invocation.table != getattr(module, "NO_TABLE", None):
        from ...io.table.opening import open_table

        if hasattr(invocation.options, "batch"):
            from ..batch_tools.batch_addresses import batch_as_segment

            invocation = batch_as_segment(invocation)
        try:
            open_table(str(invocation.table)).check_place()
        except UsageError as error:
            if advice := _advice_for_folder(str(invocation.table), command):
                raise UsageError(advice) from error
            raise
    if invocation.beam_args:
        # Checks the types of values; unknown options are for a job server, which is asked before a launch.
        beam_parser().parse_known_args(invocation.beam_args)
    before_run()
    scratch = all_in_scratch() if COMMANDS[command].scratch else contextlib.nullcontext()
    with scratch, printed_into(output):
        return _run_module(module, invocation, command)


def _run_module(module: CommandModule, invocation: Invocation, command: str) -> int:
    try:
        return _run_observed(module, invocation)
    except UsageError as error:
        from ...io.storage.file_errors import NoTable

        # In a store only a request tells: there is none where there is a table.
        is_missing = isinstance(error, NoTable) and invocation.table is not None
        if is_missing and (advice := _advice_for_folder(str(invocation.table), command)):
            raise UsageError(advice) from error
        raise


def _run_observed(module: CommandModule, invocation: Invocation) -> int:
    """Runs a command, with metrics and spans if its options ask for them; returns its exit code."""
    options = invocation.options
    if not any(getattr(options, name, "") for name in ("metrics_port", "metrics_file", "trace_to")):
        return module.run(invocation)
    from ..metrics.observing import run_observed

    return run_observed(invocation, module.run)


def _advice_for_folder(address: str, command: str) -> str:
    """Returns what to do with a folder that has Nutch's folders or seeds; empty for another one."""
    from ..as_in_nutch.nutch_paths import explain_folder, explain_seeds

    return explain_folder(address) or explain_seeds(address, command)
