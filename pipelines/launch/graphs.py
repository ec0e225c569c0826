"""Draws the graphs of the jobs, as Beam has them, for docs/architecture.md: part of ``make docs``.

``python -m nutbeam.pipelines.launch.graphs docs/architecture.md``
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor

from ...transforms.operations import Ticket
from ..command_line.cli import load
from .job import prepare

# Options that bring in all steps that a job may have.
SHOWN = {"generate": {"max_count": 100, "queue_mode": "ip", "num_fetchers": 2}}
JOBS = ("inject", "generate", "fetch", "parse", "updatedb", "dedup", "compact", "round")
BEGIN, END = "<!-- graphs: make docs writes this -->\n", "<!-- end of graphs -->\n"


def graph(job: str) -> beam.Pipeline:
    """Returns the pipeline of a job, as its command builds it."""
    module: Any = load(job)
    args: list[Any] = [[]] if job == "inject" else []

    def build(tickets: Any, options: Any) -> Any:
        return module.build(tickets, options, *args)

    return prepare(
        Ticket("table", "operation"), build, module.Options(**SHOWN.get(job, {})), [], job
    )


class _Steps(PipelineVisitor):
    """Collects the outermost steps of a pipeline, and how many shuffles are in each."""

    def __init__(self) -> None:
        self.steps: list[AppliedPTransform] = []
        self.shuffles: dict[int, int] = {}
        self.sides: dict[int, set[Any]] = {}
        self._at: int | None = None

    def enter_composite_transform(self, node: AppliedPTransform) -> None:
        if self._at is None and node.transform is not None:
            self._at = self._add(node)
        elif self._at is not None:
            self._count(self._at, node)

    def leave_composite_transform(self, node: AppliedPTransform) -> None:
        if self._at is not None and self.steps[self._at] is node:
            self._at = None

    def visit_transform(self, node: AppliedPTransform) -> None:
        at = self._add(node) if self._at is None else self._at
        self._count(at, node)

    def _add(self, node: AppliedPTransform) -> int:
        self.steps.append(node)
        at = len(self.steps) - 1
        self.shuffles[at], self.sides[at] = 0, set()
        return at

    def _count(self, at: int, node: AppliedPTransform) -> None:
        self.shuffles[at] += isinstance(node.transform, beam.GroupByKey)
        self.sides[at] |= {view.pvalue for view in node.side_inputs}


def drawn(pipeline: beam.Pipeline) -> Iterator[str]:
    """Yields the lines of a pipeline as a Mermaid flow chart: a node for each outermost step.

    A dotted arrow is a side input. A step in a double frame has a shuffle.
    """
    visitor = _Steps()
    pipeline.visit(visitor)
    makers = {out: at for at, s in enumerate(visitor.steps) for out in s.outputs.values()}
    yield "flowchart LR"
    for at, step in enumerate(visitor.steps):
        kind = type(step.transform).__name__
        own = kind not in ("ParDo", "Flatten", "Create", step.full_label)
        name = f"{step.full_label}: {kind}" if own else step.full_label
        left, right = ("[[", "]]") if visitor.shuffles[at] else ("[", "]")
        yield f'    s{at}{left}"{name}"{right}'
    for at, step in enumerate(visitor.steps):
        main = {makers[value] for value in step.main_inputs.values() if value in makers}
        side = {makers[value] for value in visitor.sides[at] if value in makers} - {at}
        yield from (f"    s{maker} --> s{at}" for maker in sorted(main))
        yield from (f"    s{maker} -.-> s{at}" for maker in sorted(side - main))


def drawings() -> str:
    """Returns the drawings of all jobs, in Markdown."""
    parts = []
    for job in JOBS:
        chart = "\n".join(drawn(graph(job)))
        parts.append(f"**{job}**\n\n```mermaid\n{chart}\n```\n")
    return "\n".join(parts)


def with_drawings(page: str) -> str:
    """Returns a page with the drawings of today between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{drawings()}\n{END}{after}"


def main(words: list[str]) -> int:
    """Rewrites a page of the docs; returns the exit code."""
    page = Path(words[0])
    page.write_text(with_drawings(page.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
