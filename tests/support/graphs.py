"""Draws the graphs of the jobs, as Beam has them, for docs/architecture.md: part of ``make docs``.

``PYTHONPATH=tests/support python -m graphs docs/architecture.md``
"""

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.pipeline import AppliedPTransform

from nutbeam.pipelines.command_line.cli import load
from nutbeam.pipelines.launch.job import prepare
from nutbeam.pipelines.views.reading_job import Reading
from nutbeam.policy.blocklist import Names
from nutbeam.transforms.operations import Ticket

# Options that bring in all steps that a job may have.
SHOWN: dict[str, dict[str, Any]] = {
    "generate": {"max_count": 100, "queue_mode": "ip", "num_fetchers": 2},
    "purge": {"host": ("example.com",)},
    "linkrank": {"rank_rounds": 1},
}
# What a command passes to ``build`` besides its options; the graph does not depend on it.
_OTHER = Reading("other", "", 1)
GIVEN: dict[str, dict[str, Any]] = {
    "inject": {"seeds": []},
    "purge": {"names": Names(hosts=("com.example",))},
    "copy": {"reading": _OTHER},
    "mergelinkdb": {"readings": (_OTHER,)},
    "hostinject": {"values": {}},
    "sitemap": {"hosts": ("seeds",)},
}
JOBS = ("inject", "sitemap", "generate", "fetch", "parse", "updatedb", "invertlinks", "dedup",
        "filterdb", "compact", "purge", "copy", "mergelinkdb", "updatehostdb", "hostinject",
        "webgraph", "linkrank", "scoreupdater", "index", "round")  # fmt: skip
BEGIN, END = "<!-- graphs: make docs writes this -->\n", "<!-- end of graphs -->\n"


def graph(job: str) -> beam.Pipeline:
    """Returns the pipeline of a job, as its command builds it."""
    module: Any = load(job)
    build = functools.partial(module.build, **GIVEN.get(job, {}))
    options = module.Options(**SHOWN.get(job, {}))
    return prepare(Ticket("table", "operation"), build, options, [], job)


def drawn(pipeline: beam.Pipeline) -> Iterator[str]:
    """Yields the lines of a pipeline as a Mermaid flow chart: a node for each outermost step.

    A dotted arrow is a side input. A step in a double frame has a shuffle.
    """
    steps = pipeline.transforms_stack[0].parts
    makers = {value: at for at, step in enumerate(steps) for value in step.outputs.values()}
    arrows = []
    yield "flowchart LR"
    for at, step in enumerate(steps):
        parts = list(_all_parts(step))
        kind = type(step.transform).__name__
        own = kind not in ("ParDo", "Flatten", "Create", step.full_label) and kind[0] != "_"
        name = f"{step.full_label}: {kind}" if own else step.full_label
        shuffles = any(isinstance(part.transform, beam.GroupByKey) for part in parts)
        left, right = ("[[", "]]") if shuffles else ("[", "]")
        yield f'    s{at}{left}"{name}"{right}'
        views = {view.pvalue for part in parts for view in part.side_inputs}
        main = {makers[value] for value in step.main_inputs.values() if value in makers}
        side = {makers[value] for value in views if value in makers} - {at}
        arrows += [f"    s{maker} --> s{at}" for maker in sorted(main)]
        arrows += [f"    s{maker} -.-> s{at}" for maker in sorted(side - main)]
    yield from arrows


def _all_parts(step: AppliedPTransform) -> Iterator[AppliedPTransform]:
    yield step
    for part in step.parts:
        yield from _all_parts(part)


def with_drawings(page: str) -> str:
    """Returns a page of the docs with the graphs of all jobs between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    charts = ((job, "\n".join(drawn(graph(job)))) for job in JOBS)
    parts = [f"**{job}**\n\n```mermaid\n{chart}\n```\n" for job, chart in charts]
    return "\n".join([f"{before}{BEGIN}", *parts, f"{END}{after}"])


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_drawings(page.read_text("utf-8")), "utf-8")
