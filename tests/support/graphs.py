"""Lists the steps of the jobs and draws three graphs for docs/architecture.md: part of ``make docs``.

``PYTHONPATH=tests/support python -m graphs docs/architecture.md``
"""

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.pipeline import AppliedPTransform

from nutbeam.io.nutch.nutch_sources import NutchSources
from nutbeam.pipelines.command_line.cli import load
from nutbeam.pipelines.views.reading_job import Reading
from nutbeam.policy.components.blocklist import Names
from nutbeam.transforms.tickets import Ticket

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
    "mergedb": {"readings": (_OTHER,)},
    "freegen": {"words": ()},
    "import_warc": {"plans": ()},
    "import_nutch": {"sources": NutchSources([], {}, [])},
    "hostinject": {"values": {}},
    "sitemap": {"hosts": ("seeds",)},
}
JOBS = ("inject", "sitemap", "generate", "freegen", "import_warc", "import_nutch", "fetch", "parse", "updatedb", "invertlinks", "dedup",
        "filterdb", "compact", "purge", "copy", "mergelinkdb", "mergedb", "updatehostdb", "hostinject",
        "webgraph", "linkrank", "scoreupdater", "index", "round")  # fmt: skip
# The usual form of a job that changes rows, and the two that differ most from it.
DRAWN = ("updatedb", "generate", "dedup")
BEGIN, END = "<!-- graphs: make docs writes this -->\n", "<!-- end of graphs -->\n"


def job_pipeline(job: str) -> beam.Pipeline:
    """Returns the pipeline of a job, as it is for all workers of a cluster."""
    module: Any = load(job)
    build = functools.partial(module.build, **GIVEN.get(job, {}))
    options = module.Options(**SHOWN.get(job, {}))
    pipeline = beam.Pipeline("FnApiRunner")
    ticket = beam.Create([Ticket("table", "operation")])
    build(pipeline | "Ticket" >> ticket.with_output_types(Ticket), options)
    return pipeline


def step_rows(pipeline: beam.Pipeline) -> Iterator[tuple[str, bool, set[int], set[int]]]:
    """Yields (name, whether it shuffles, main inputs, side inputs) of each outermost step.

    Inputs are positions of earlier steps. A name is ``Label: Transform`` if the two differ.
    """
    steps = pipeline.transforms_stack[0].parts
    makers = {value: at for at, step in enumerate(steps) for value in step.outputs.values()}
    for at, step in enumerate(steps):
        parts = list(_all_parts(step))
        kind = type(step.transform).__name__
        own = (
            kind not in ("ParDo", "Flatten", "Create", "RoundPhase", step.full_label)
            and kind[0] != "_"
        )
        name = f"{step.full_label}: {kind}" if own else step.full_label
        shuffles = any(isinstance(part.transform, beam.GroupByKey) for part in parts)
        views = {view.pvalue for part in parts for view in part.side_inputs}
        main = {makers[value] for value in step.main_inputs.values() if value in makers}
        side = {makers[value] for value in views if value in makers} - {at} - main
        yield name, shuffles, main, side


def draw_graph(pipeline: beam.Pipeline) -> Iterator[str]:
    """Yields the lines of a pipeline as a Mermaid flow chart: a node for each outermost step.

    A dotted arrow is a side input. A step in a double frame has a shuffle.
    """
    arrows = []
    yield "flowchart LR"
    for at, (name, shuffles, main, side) in enumerate(step_rows(pipeline)):
        left, right = ("[[", "]]") if shuffles else ("[", "]")
        yield f'    s{at}{left}"{name}"{right}'
        arrows += [f"    s{maker} --> s{at}" for maker in sorted(main)]
        arrows += [f"    s{maker} -.-> s{at}" for maker in sorted(side)]
    yield from arrows


def table_row(job: str) -> str:
    """Returns a line of the table of jobs: the steps after the ticket; bold ones shuffle."""
    names = [
        f"**{name}**" if shuffles else name
        for name, shuffles, _, _ in step_rows(job_pipeline(job))
        if name != "Ticket"
    ]
    return f"| `{job}` | {' → '.join(names)} |"


def _all_parts(step: AppliedPTransform) -> Iterator[AppliedPTransform]:
    yield step
    for part in step.parts:
        yield from _all_parts(part)


def with_drawings(page: str) -> str:
    """Returns a page of the docs with the table of jobs and the graphs between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(["| job | steps |", "| --- | --- |", *map(table_row, JOBS)])
    charts = ((job, "\n".join(draw_graph(job_pipeline(job)))) for job in DRAWN)
    parts = [f"**{job}**\n\n```mermaid\n{chart}\n```\n" for job, chart in charts]
    return "\n".join([f"{before}{BEGIN}", f"{table}\n", *parts, f"{END}{after}"])


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_drawings(page.read_text("utf-8")), "utf-8")
