"""Says which rules for links a job lacks that the job before had."""

import contextlib
from typing import Any

from ...io.snapshots.manifest import load_manifest
from ...io.table.opening import open_table
from ...policy.recorded_rules import missing_rules
from ...web.base.errors import UserError
from ..base.command import Invocation


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
    needed = {"generate": "filter", "fetch": "parse_while_fetching"}
    return bool(getattr(options, needed[command])) if command in needed else True
