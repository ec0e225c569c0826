"""What workers wrote: files by component, and counts."""

import dataclasses
from collections.abc import Iterable, Mapping

from ...web.base.errors import UserError
from .file_lists import DataFile


@dataclasses.dataclass(frozen=True)
class Written:
    """What a worker has done: files that it wrote, by component, and what it counted.

    Attributes:
        component: Where the files belong, such as ``state``.
        files: New files.
        replaced: Paths of live files that they stand for.
        counts: By counter name, such as ``dropped/out_of_scope``.
        tidies: Whether what the table says stays the same. Then it is left out
            if somebody has changed those files in the meantime.
        due: How much work there is in all, by step; one of a step's parts tells.
        done: How much of it this is, by step.
    """

    component: str = ""
    files: tuple[DataFile, ...] = ()
    replaced: tuple[str, ...] = ()
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    tidies: bool = False
    due: Mapping[str, int] = dataclasses.field(default_factory=dict)
    done: Mapping[str, int] = dataclasses.field(default_factory=dict)


def check_whole(job: str, written: Iterable[Written], steps: Iterable[str]) -> None:
    """Sees whether all work of an operation was done.

    A runner may go on with what is left when part of a step has failed: Prism
    does, for as long as it takes to stop the job.

    Args:
        job: Name of the job.
        written: All that its workers did.
        steps: Names of the steps whose work must be whole.

    Raises:
        UserError: Some of it is missing.

    >>> check_whole("fetch", [Written(due={"Items": 2}, done={"Items": 2})], ["Items"])
    """
    written = list(written)
    due = sum_counts(part.due for part in written)
    done = sum_counts(part.done for part in written)
    for step in steps:
        if step not in due or due[step] != done.get(step, 0):
            raise UserError(
                f"{job}: step {step!r} did {done.get(step, 0)} of {due.get(step, 'its')} parts; "
                "nothing was written: run it again"
            )


def sum_counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Returns what several counts come to, in the order of their names.

    >>> sum_counts([{"b": 1}, {"a": 1, "b": 2}])
    {'a': 1, 'b': 3}
    """
    total: dict[str, int] = {}
    for part in parts:
        for name, number in part.items():
            total[name] = total.get(name, 0) + number
    return dict(sorted(total.items()))
