"""What Flink asks of a graph, and what no other runner would notice."""

import apache_beam as beam
import pytest
from apache_beam.portability import common_urns
from crawling import nutbeam

from nutbeam.pipelines import crawl, dedup, fetch, generate, inject, parse, update
from nutbeam.pipelines.launch.job import prepare
from nutbeam.pipelines.round import stages_of_round
from nutbeam.transforms.elements.chunks import Chunk
from nutbeam.transforms.fetch_pages import FetchPages
from nutbeam.transforms.tickets import Ticket

FLINK = ["--runner=PortableRunner", "--job_endpoint=localhost:1", "--environment_type=PROCESS",
         "--environment_options=process_command=/none"]  # fmt: skip
FLATTEN = common_urns.primitives.FLATTEN.urn
GROUP = common_urns.primitives.GROUP_BY_KEY.urn
RESHUFFLE = common_urns.composites.RESHUFFLE.urn


def library(tickets, options):
    chunks = tickets | "None" >> beam.FlatMap(lambda _: []).with_output_types(Chunk)
    return chunks | FetchPages(options)


JOBS = {
    "inject": (lambda tickets, options: inject.build(tickets, options, []), inject.Options()),
    "generate": (generate.build, generate.Options(max_count=100)),
    "fetch": (fetch.build, fetch.Options()),
    "parse": (parse.build, parse.Options()),
    "update": (update.build, update.Options()),
    "dedup": (dedup.build, dedup.Options()),
    "library": (library, fetch.Options(connect_to=("a.example.com:80:127.0.0.1:1",))),
    "round": (stages_of_round(crawl.Options(), 1), crawl.Options(max_count=100)),
}


@pytest.fixture(params=JOBS)
def graph(request, tmp_path):
    """The components of a job's graph, as Flink is given them."""
    build, options = JOBS[request.param]
    options = type(options)(**{**vars(options), "shared_path": True, "deliver": False,
                               "one_worker_urls": 0})  # fmt: skip
    assert nutbeam("inject", tmp_path, "http://a.com/") == 0  # it is due
    return prepare(Ticket(str(tmp_path), "x"), build, options, FLINK).to_runner_api().components


@pytest.mark.few(5)
def test_inputs_of_a_flatten_have_one_coder(graph):
    """Flink brings collections together as bytes, and decodes all with the coder of the output."""
    flattens = [t for t in graph.transforms.values() if t.spec.urn == FLATTEN]
    assert flattens
    for flatten in flattens:
        (output,) = flatten.outputs.values()
        coders = {graph.pcollections[part].coder_id for part in flatten.inputs.values()}
        assert coders == {graph.pcollections[output].coder_id}, flatten.unique_name


@pytest.mark.few(5)
def test_no_reshuffle_follows_another_one_without_a_grouping_between(graph):
    """Flink leaves out the second, which is the one that deals out work."""
    inside = {
        child
        for t in graph.transforms.values()
        if t.spec.urn == RESHUFFLE
        for child in below(graph, t)
    }
    # A Reshuffle is one step, whatever it consists of.
    steps = {
        name: t
        for name, t in graph.transforms.items()
        if name not in inside and (not t.subtransforms or t.spec.urn == RESHUFFLE)
    }
    producers = {out: t for t in steps.values() for out in t.outputs.values()}
    reshuffles = [t for t in steps.values() if t.spec.urn == RESHUFFLE]
    assert all(not behind_another(t, producers) for t in reshuffles)


def below(graph, transform):
    """Yields the names of all steps of which a composite consists."""
    for name in transform.subtransforms:
        yield name
        yield from below(graph, graph.transforms[name])


def behind_another(transform, producers):
    """Returns whether a Reshuffle is reached, against the stream, before a grouping."""
    waiting, seen = list(transform.inputs.values()), set()
    while waiting:
        name = waiting.pop()
        before = producers.get(name)
        if name in seen or before is None or before.spec.urn == GROUP:
            continue
        seen.add(name)
        if before.spec.urn == RESHUFFLE:
            return True
        waiting += before.inputs.values()
    return False
