"""What a job's graph holds: the table's address and the options, but nothing of the table."""

import base64
import bz2
import dataclasses
import inspect
import json
import re
from pathlib import Path

import apache_beam as beam
import graphs
import pytest
from apache_beam.portability import common_urns, python_urns
from apache_beam.portability.api import beam_runner_api_pb2
from crawling import files_of, manifest_of
from here import ROOT
from simulated_web import SimWeb

from nutbeam.pipelines import compact, crawl, dedup, fetch, generate, inject, parse, update
from nutbeam.pipelines import round as round_module
from nutbeam.transforms.tickets import Ticket
from nutbeam.transforms.wiring.display import display_fields
from nutbeam.web.base.options import options_of

SECRETS = {
    "ca_file": "/root/hush/ca.pem",
    "http_credentials": "/root/hush/passwords",
    "http_proxy": "http://hush.example.com:3128",
    "http_cookies": True,  # no secret, but its name may be one's
    "agent_url": "https://user:hush@example.com/",
    "url_filter_file": "/root/hush/rules.txt",
    "url_normalizer_file": "/root/hush/rules.xml",
    "goldstandard_file": "/root/hush/gold.txt",
    "stopword_file": "/root/hush/stopwords.txt",
    "url_boost_file": "/root/hush/boosts.txt",
}


def build_inject(tickets, options):
    return inject.build(tickets, options, ["http://user:hush@example.com/", "/root/hush/seeds.txt"])


JOBS = {
    "inject": (build_inject, inject.Options),
    "generate": (generate.build, generate.Options),
    "fetch": (fetch.build, fetch.Options),
    "parse": (parse.build, parse.Options),
    "update": (update.build, update.Options),
    "dedup": (dedup.build, dedup.Options),
    "compact": (compact.build, compact.Options),
    "round": (round_module.build, round_module.Options),
    "crawl": (round_module.stages_of_round(crawl.Options(), 3), crawl.Options),
}


def options_for(kind):
    names = {option.name for option in options_of(kind)}
    return kind(**{name: value for name, value in SECRETS.items() if name in names})


def graph(job, table):
    """Returns a job's pipeline as a runner gets it."""
    build, kind = JOBS[job]
    pipeline = beam.Pipeline("FnApiRunner")  # with the steps that a cluster shows
    ticket = beam.Create([Ticket(str(table), "op")]).with_output_types(Ticket)
    build(pipeline | "Ticket" >> ticket, options_for(kind))
    return pipeline.to_runner_api()


def shown(proto):
    """Returns the display data of all steps, by step and name."""
    found = {}
    for step in proto.components.transforms.values():
        for item in step.display_data:
            payload = beam_runner_api_pb2.LabelledPayload.FromString(item.payload)
            value = getattr(payload, payload.WhichOneof("value"))
            found[step.unique_name, payload.key or payload.label] = value
    return found


@pytest.mark.few(4)
@pytest.mark.parametrize("job", JOBS)
def test_each_step_has_a_unique_and_readable_label(job, tmp_path):
    steps = graph(job, tmp_path / "table").components.transforms
    labels = [step.unique_name for step in steps.values() if step.unique_name]
    assert len(labels) == len(set(labels)) > 5
    for label in labels:
        assert not re.search(r"lambda at (?!core\.py)", label), label  # Beam's own has no name
        assert "0x" not in label  # no addresses


@pytest.mark.few(3)
@pytest.mark.parametrize("job", JOBS)
def test_display_data_shows_the_options_and_no_secret(job, tmp_path):
    found = shown(graph(job, tmp_path / "table"))
    assert json.loads(json.dumps(list(found.values())))
    by_name = {}
    for (_, name), value in found.items():
        by_name.setdefault(name, set()).add(value)
    for name, values in by_name.items():
        assert not any(isinstance(v, str) and ("hush" in v or str(tmp_path) in v) for v in values)
        assert name not in SECRETS
    # What a step is given is shown, in its own words.
    bases = [base for base in JOBS[job][1].__mro__ if dataclasses.is_dataclass(base)]
    launch = {"operation", "batch", "rounds", *SECRETS} | {
        option.name
        for base in bases
        if base.__module__.endswith((".job", ".launch", ".crawl", ".round"))
        for option in options_of(base)
        if option.name in inspect.get_annotations(base)
    }
    options = options_for(JOBS[job][1])
    for option in options_of(type(options)):
        value = getattr(options, option.name)
        if option.name in launch or value in (None, ()):
            continue
        if option.group == "index" and not getattr(options, "index", "main"):
            continue  # a round that brings nothing into an index has no such step
        want = ",".join(map(str, value)) if isinstance(value, tuple) else value
        assert want in by_name.get(option.name, ()), option.name


def test_possible_secrets_are_not_shown():
    @dataclasses.dataclass
    class Step:
        most: int = 3
        key: str = "host"
        agent_email: str = "me@example.com"
        proxy: str = "http://proxy:3128"
        api_token: str = "hush"
        password: str = "hush"
        signing_key: str = "hush"
        http_header: tuple[str, ...] = ("Authorization: hush",)
        seeds: str = "http://me:hush@example.com/"
        table: object = dataclasses.field(default_factory=lambda: {"hush": 1})

    assert display_fields(Step()) == {"most": 3, "key": "host", "agent_email": "me@example.com"}


@pytest.fixture(scope="module")
def crawled(kept_crawls, tmp_path_factory):
    """An address, and what the graphs were while nothing was there."""
    table = tmp_path_factory.mktemp("graph") / "table"
    before = {job: graph(job, table) for job in JOBS}
    assert not table.exists()  # to build a graph writes nothing
    with SimWeb(hosts=3, pages=12, seed=7, crawl_delay=0) as web:
        kept_crawls.make(web, table)
    return table, before


@pytest.mark.few(1)
@pytest.mark.parametrize("job", JOBS)
def test_the_graph_of_an_empty_table_is_that_of_any_other(job, crawled):
    table, before = crawled
    after = graph(job, table)
    assert len(after.SerializeToString()) < 600_000
    assert without_composites(after) == without_composites(before[job])
    names = [Path(path).name for path in files_of(table, "state")]
    data = contents(after)
    assert str(table).encode() in data
    for name in [*names, *manifest_of(table).batches, ".parquet"]:
        assert name.encode() not in data


def without_composites(proto):
    """Returns a graph without what composites pickle of themselves, under new ids each time."""
    copy = beam_runner_api_pb2.Pipeline()
    copy.CopyFrom(proto)
    for step in copy.components.transforms.values():
        if step.spec.urn == python_urns.PICKLED_TRANSFORM:
            step.spec.payload = b""
    return copy


def contents(proto):
    """Returns all bytes of a graph, with what is packed in it unpacked."""
    data = proto.SerializeToString()
    packed = re.findall(rb"QlpoOTFBWSZ[A-Za-z0-9+/]+=*", data)  # bz2 in base64
    assert len(packed) > 5
    return data + b"".join(bz2.decompress(base64.b64decode(part)) for part in packed)


ARCHITECTURE = ROOT / "docs" / "architecture.md"


@pytest.mark.long
@pytest.mark.skipif(not ARCHITECTURE.exists(), reason="docs/ is not part of the wheel")
def test_the_graphs_in_the_docs_are_up_to_date():
    page = ARCHITECTURE.read_text("utf-8")
    assert graphs.with_drawings(page) == page, "run make docs"
    # The page says so instead of drawing it twice.
    index, clean = (list(graphs.draw_graph(graphs.job_pipeline(job))) for job in ("index", "clean"))
    assert index == clean


@pytest.mark.parametrize(
    ("job", "transforms"),
    [
        ("inject", ["Begin", "ForEach", "ApplyChanges", "Commit"]),
        (
            "generate",
            ["Begin", "ForEach", "LimitGroups", "LocateHosts", "GroupByHost", "Commit"],
        ),
        ("fetch", ["Begin", "FetchBatch", "Commit"]),
        ("parse", ["Begin", "ParseBatch", "Commit"]),
        ("updatedb", ["Begin", "ForEach", "ApplyChanges", "Commit"]),
        ("dedup", ["Begin", *3 * ["ForEach"], "Judge", "ApplyChanges", "Commit"]),
    ],
)
def test_a_job_has_its_transforms_in_order(job, transforms):
    names = [
        step.split('"')[1].split(": ")[-1]
        for step in graphs.draw_graph(graphs.job_pipeline(job))
        if '"' in step
    ]
    assert [name for name in names if name in transforms] == transforms


# How many shuffles a job has: each costs a stage at every start of a pipeline.
SHUFFLES = {"inject": 4, "generate": 7, "fetch": 2, "parse": 2, "updatedb": 5, "dedup": 14}


@pytest.mark.parametrize("job", SHUFFLES)
def test_a_job_has_no_more_shuffles_than_it_needs(job):
    steps = graphs.job_pipeline(job).to_runner_api().components.transforms.values()
    group = common_urns.primitives.GROUP_BY_KEY.urn
    assert sum(step.spec.urn == group for step in steps) <= SHUFFLES[job]
