"""Reads the counts of a parsed page: what of it was left out, cut or could not be read."""

from collections.abc import Mapping

# What is counted besides faults.
_CONTENT = ("parsed", "outlinks", "parts")
_DROPPED = "dropped/"


def left_out_by_reason(counts: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Returns links and parts that were left out, and other faults, both by reason.

    Args:
        counts: The counts of parsing one page.

    >>> left_out_by_reason({"parsed": 1, "dropped/external": 2, "json_ld_malformed": 1, "extract/a/p/pages": 1})
    ({'external': 2}, {'json_ld_malformed': 1})
    """
    dropped = {
        name.removeprefix(_DROPPED): number
        for name, number in counts.items()
        if name.startswith(_DROPPED)
    }
    faults = {
        name: number for name, number in counts.items() if "/" not in name and name not in _CONTENT
    }
    return dropped, faults
