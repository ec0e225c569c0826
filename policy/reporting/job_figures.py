"""Figures of jobs: rounds, their speed by phase, and what was left out and why."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..components.reasons import find_reason
from ..components.rule_counts import cap_rule_counts, is_of_rule
from .crawl_figures import DroppedFigures, JobFigures, RoundFigures

# Families of counts whose names are reasons why something was left out.
_FAMILIES = ("dropped", "not_fetched", "failed", "skipped", "left_out", "not_read", "known_dropped",
             "damaged", "truncated")  # fmt: skip
_FETCHED = ("protocol/success", "protocol/notmodified")
_REDIRECTED = ("protocol/moved", "protocol/temp_moved")
# What a job has worked on, by the names of its counts.
_DONE = {
    "generate": ("chosen",),
    "fetch": ("pages",),
    "parse": ("parsed",),
    "update": ("status/",),
}
PHASE_ORDER = ("generate", "fetch", "parse", "update", "dedup", "invertlinks")


def figures_of_rounds(jobs: Iterable[JobFigures]) -> tuple[RoundFigures, ...]:
    """Returns the jobs on each batch together, the oldest batch first.

    >>> jobs = [JobFigures(1, "generate", 0, 2.0, "b", 9, {"chosen": 4}),
    ...         JobFigures(2, "fetch", 2_000, 6.0, "b", 9, {"pages": 4, "protocol/success": 3,
    ...                    "not_fetched/dns": 1})]
    >>> [(one.chosen, one.fetched, one.failed, one.seconds) for one in figures_of_rounds(jobs)]
    [(4, 3, 1, {'generate': 2.0, 'fetch': 6.0})]
    """
    by_batch: dict[str, list[JobFigures]] = {}
    for job in jobs:
        if job.batch is not None:
            by_batch.setdefault(job.batch, []).append(job)
    return tuple(_round_of(batch, of_batch) for batch, of_batch in by_batch.items())


def _round_of(batch: str, jobs: Sequence[JobFigures]) -> RoundFigures:
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for job in jobs:
        counts.update(job.counts)
        if job.seconds is not None:
            seconds[job.job] += job.seconds  # type: ignore[assignment]
    in_order = sorted(seconds, key=lambda name: (_place(name), name))
    return RoundFigures(
        batch=batch,
        time=jobs[0].time,
        urls=jobs[-1].urls,
        chosen=counts["chosen"],
        fetched=sum(counts[name] for name in _FETCHED),
        failed=sum(n for name, n in counts.items() if name.startswith("not_fetched/")),
        redirected=sum(counts[name] for name in _REDIRECTED),
        added=sum(job.counts.get("added", 0) for job in jobs if job.job == "update"),
        seconds={name: float(seconds[name]) for name in in_order},
        done={name: done_by(name, counts) for name in in_order if name in _DONE},
    )


def _place(job: str) -> int:
    return PHASE_ORDER.index(job) if job in PHASE_ORDER else len(PHASE_ORDER)


def done_by(job: str, counts: Mapping[str, int]) -> int:
    """Returns how many URLs or pages a job has worked on.

    >>> done_by("update", {"status/db_fetched": 3, "status/db_gone": 1, "added": 9})
    4
    """
    names = _DONE.get(job, ())
    return sum(n for name, n in counts.items() if name.startswith(names)) if names else 0


def dropped_figures(jobs: Iterable[JobFigures]) -> tuple[DroppedFigures, ...]:
    """Returns what jobs left out and why, by job and reason, the most first.

    >>> found = dropped_figures([JobFigures(1, "fetch", 0, 1.0, "b", 1, {"not_fetched/http_404": 2})])
    >>> found[0][:4], found[0].meaning
    (('fetch', 'not_fetched', 'http_404', 2), 'there is no such page')
    """
    sums: Counter[tuple[str, str]] = Counter()
    for job in jobs:
        for count, number in cap_rule_counts(job.counts).items():
            if "/" in count and count.partition("/")[0] in _FAMILIES and not is_of_rule(count):
                sums[job.job, count] += number
    figures = [_dropped_of(job, count, number) for (job, count), number in sums.items()]
    return tuple(sorted(figures, key=lambda one: (-one.number, one.job, one.family, one.reason)))


def _dropped_of(job: str, count: str, number: int) -> DroppedFigures:
    family, _, name = count.partition("/")
    reason = find_reason(name, f"{job} {family}")
    meaning, advice = (reason.meaning, reason.advice) if reason else ("", "")
    return DroppedFigures(job, family, name, number, meaning, advice)
