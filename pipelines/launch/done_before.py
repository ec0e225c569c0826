"""Refuses to call a batch done that was done with other options than those of a command."""

from collections.abc import Mapping
from typing import Any

from ...io.snapshots.manifest import Manifest, lineage
from ...io.table.opening import open_table
from ...policy.recorded_rules import chosen_options, option_words, recorded_options
from ...web.base.errors import UsageError

# Phases of batches whose results depend on options: how the snapshot names these.
PARSED_PHASE, UPDATED_PHASE = "parsed", "updated"


def done_with(phase: str, options: Any, kind: type) -> dict[str, Any]:
    """Returns what a snapshot records of the options by which a batch got to a phase."""
    return {phase: recorded_options(options, kind)}


def check_done_alike(address: str, batch: str, phase: str, options: Any, kind: type) -> None:
    """Checks that a batch that has reached a phase has reached it with the options of a command.

    A batch of an older version, or whose snapshot was deleted, passes: its options are unknown.

    Args:
        address: Address of the table.
        batch: Id of the batch.
        phase: ``PARSED_PHASE`` or ``UPDATED_PHASE``.
        options: Options of the command.
        kind: The class of the options that count.

    Raises:
        UsageError: It has reached the phase with other options.
    """
    newest, made = None, None
    for manifest in lineage(open_table(address)):
        newest = newest or manifest
        if manifest.batch == batch and phase in manifest.options:
            made = manifest
            break
    if newest is None or made is None or batch not in newest.batches:
        return
    # Others are of another version, or a stranger's.
    before = chosen_options(made.options[phase], kind)
    now = chosen_options(recorded_options(options, kind), kind)
    if before != now:
        raise UsageError(
            f"batch {batch!r} was {phase} with other options: {_difference(before, now)}; "
            f"{_advice(address, batch, phase, made, newest)}"
        )


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    was, is_now = (
        ", ".join(option_words({n: v for n, v in one.items() if other.get(n) != v}))
        for one, other in ((before, now), (now, before))
    )
    return f"with {was or 'the defaults'}, now {is_now or 'without'}"


def _advice(address: str, batch: str, phase: str, made: Manifest, newest: Manifest) -> str:
    if phase == UPDATED_PHASE:
        return f"nutbeam filterdb {address} applies rules to the URLs that the table has"
    if newest.batches[batch].phase == UPDATED_PHASE:
        return "its pages are parsed with today's options when they are fetched again"
    if made.snapshot == newest.snapshot and made.job == "parse" and made.snapshot > 1:
        return (
            f"nutbeam rollback {address} --to {made.snapshot - 1} returns to the time before, and "
            "then parse can run again"
        )
    return (
        f"nutbeam updatedb {address} --batch {batch} applies today's rules to the links that were "
        "kept, and other options count when its pages are fetched again"
    )
