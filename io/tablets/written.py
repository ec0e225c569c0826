"""Reports of workers: the files that they wrote, by component, and counts."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from .file_lists import DataFile


@dataclass(frozen=True)
class Written:
    """Files that a worker has written for a component, and its counts.

    Attributes:
        component: Component of the files, such as ``state``.
        files: New files.
        replaced: Paths of live files that the new ones replace.
        counts: By counter name, such as ``dropped/out_of_scope``.
        tidies: Whether the rows stay the same, as after a fold. If another operation has
            changed the replaced files since then, the commit skips this part.
        due: Total number of work items, by step; only one part of a step reports it.
        done: Number of work items done here, by step.
        address: The address of the table; empty if the files are few in any case.
        listed: Name of a file with further reports, which ``report_files`` reads; empty if there is none.
    """

    component: str = ""
    files: tuple[DataFile, ...] = ()
    replaced: tuple[str, ...] = ()
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    tidies: bool = False
    due: Mapping[str, int] = dataclasses.field(default_factory=dict)
    done: Mapping[str, int] = dataclasses.field(default_factory=dict)
    address: str = ""
    listed: str = ""


def gather_written(reports: Iterable[Written]) -> list[Written]:
    """Returns reports of one worker as few: one per component, as far as they can be united.

    Reports that replace files stay apart, because a commit judges each of them.

    >>> one, other = DataFile("state/a", 1, 10), DataFile("state/b", 1, 10)
    >>> [united] = gather_written([Written("state", (one,)), Written("state", (other,))])
    >>> len(united.files)
    2
    """
    apart, united = list[Written](), dict[str, list[Written]]()
    for report in reports:
        if report.tidies or report.replaced:
            apart.append(report)
        else:
            united.setdefault(report.component, []).append(report)
    return [*apart, *(_unite(component, parts) for component, parts in united.items())]


def _unite(component: str, parts: Sequence[Written]) -> Written:
    return Written(
        component,
        tuple(file for part in parts for file in part.files),
        counts=sum_counts(part.counts for part in parts),
        due=sum_counts(part.due for part in parts),
        done=sum_counts(part.done for part in parts),
        address=max(part.address for part in parts),
    )


def check_whole(job: str, written: Iterable[Written], steps: Iterable[str]) -> None:
    """Checks that all work of an operation was done.

    After a part of a step has failed, a runner may still run later steps. Prism does
    so until the job has stopped.

    Args:
        job: Name of the job.
        written: Reports of its workers.
        steps: Names of the steps whose work must be complete.

    Raises:
        UserError: Some work is missing.

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
    """Returns the sums of several counts, in the order of their names.

    >>> sum_counts([{"b": 1}, {"a": 1, "b": 2}])
    {'a': 1, 'b': 3}
    """
    total: dict[str, int] = {}
    for part in parts:
        for name, number in part.items():
            total[name] = total.get(name, 0) + number
    return dict(sorted(total.items()))
