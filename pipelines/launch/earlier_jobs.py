"""Compares a job with what earlier jobs have left in its table: their options."""

import contextlib
from collections.abc import Mapping
from typing import Any

from ...io.snapshots.lineage import lineage
from ...io.snapshots.manifest import load_manifest
from ...io.table.opening import open_table
from ...policy.components.vocabulary import UPDATED_PHASE
from ...policy.recorded_rules import (
    chosen_options,
    has_link_rules,
    missing_rules,
    option_words,
    recorded_options,
)
from ...web.base.errors import UsageError, UserError
from ..base.command import Invocation


def done_with(phase: str, options: Any, kind: type) -> dict[str, Any]:
    """Returns what a snapshot records of the options by which a batch got to a phase."""
    return {phase: recorded_options(options, kind)}


def check_done_alike(address: str, batch: str, phase: str, options: Any, kind: type) -> None:
    """Checks that a batch that has reached a phase has reached it with the options of a command.

    A batch of an older version, or whose snapshot was deleted, passes: its options are unknown.

    Args:
        address: Address of the table.
        batch: Id of the batch.
        phase: One of ``PHASES_WITH_OPTIONS``.
        options: Options of the command.
        kind: The class of the options that count.

    Raises:
        UsageError: It has reached the phase with other options.
    """
    newest, batch_manifest = None, None
    for manifest in lineage(open_table(address)):
        newest = newest or manifest
        if manifest.batch == batch and phase in manifest.options:
            batch_manifest = manifest
            break
    if newest is None or batch_manifest is None or batch not in newest.batches:
        return
    # Others are of another version, or a stranger's.
    options_then = chosen_options(batch_manifest.options[phase], kind)
    options_now = chosen_options(recorded_options(options, kind), kind)
    if options_then != options_now:
        raise UsageError(
            f"batch {batch!r} was {phase} with other options: "
            f"{_difference(options_then, options_now)}; "
            f"{_advice(address, batch, phase)}"
        )


def _difference(options_then: Mapping[str, Any], options_now: Mapping[str, Any]) -> str:
    then, now = (
        ", ".join(option_words({n: v for n, v in one.items() if other.get(n) != v}))
        for one, other in ((options_then, options_now), (options_now, options_then))
    )
    return f"with {then or 'the defaults'}, now {now or 'without'}"


def _advice(address: str, batch: str, phase: str) -> str:
    if phase == UPDATED_PHASE:
        return f"nutbeam filterdb {address} applies rules to the URLs that the table has"
    return f"nutbeam parse {address} --batch {batch} --reparse parses its bodies again with today's options"


def missing_rules_line(invocation: Invocation) -> str:
    """Returns a line about the rules that a job lacks; empty if it lacks none.

    It is for a job that has work: what does nothing takes in no URL.
    """
    options, table = invocation.options, open_table(str(invocation.table))
    if not _judges_links(invocation.command, options):
        return ""
    with contextlib.suppress(UserError):  # there is no table yet, or the job reports the error
        recorded_rules = load_manifest(table, table.latest_snapshot()).rules
        lost, dropping = missing_rules(recorded_rules, options, invocation.given_names)
        if lost:
            return (
                f"this job lacks {', '.join(lost)} of the job before, so it takes in or leaves out "
                "other URLs: give it again, or keep it in nutbeam.toml; "
                f"{' '.join(dropping)} drops it on purpose"
            )
    return ""


def _judges_links(command: str, options: Any) -> bool:
    """Returns whether a job applies rules for links, as far as its options say."""
    if_set = {"generate": "filter", "fetch": "parse_while_fetching"}.get(command)
    return has_link_rules(options) and (if_set is None or bool(getattr(options, if_set)))
