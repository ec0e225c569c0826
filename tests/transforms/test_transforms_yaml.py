"""The transforms in Beam YAML: the listing of them, and the examples in templates/yaml."""

import json

import apache_beam as beam
import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions
from crawling import answer
from simulated_web import SimWeb

from nutbeam.transforms.parse_pages import ParsePages
from nutbeam.web.base.options import options_of
from nutbeam.web.pages.page import Source
from nutbeam.web.parsers.dispatch import parse_document

pytest.importorskip("pandas", reason="Beam YAML is not installed: pip install nutbeam[yaml]")

from apache_beam.yaml import main, yaml_provider, yaml_transform
from here import ROOT

FOLDER = ROOT / "templates" / "yaml"
LISTINGS = ("providers.yaml", "providers-package.yaml")
pytestmark = [
    pytest.mark.yaml,
    pytest.mark.skipif(not FOLDER.exists(), reason="templates/ is not part of the wheel"),
]


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=3, pages=10, crawl_delay=0) as server:
        yield server


def run_file(name, web, **variables):
    """Runs an example as ``python -m apache_beam.yaml.main`` does."""
    variables = {"connect_to": list(web.connect_to), "server_delay": 0, **variables}
    main.run(
        [
            "--runner=FnApiRunner",
            f"--yaml_pipeline_file={FOLDER / name}",
            f"--jinja_variables={json.dumps(variables)}",
        ]
    )


def records(folder, name):
    """Returns the records of JSON lines that a pipeline has written."""
    (path,) = folder.glob(f"{name}*")
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def text_of(site, url):
    return parse_document(
        Source(url, answer(site, url).body, "text/html"), ParsePages().options
    ).text


def test_the_longest_pages_of_each_host(web, tmp_path):
    pages = sorted(web.site.urls("page"))
    (tmp_path / "seeds.txt").write_text("\n".join([*pages, "nonsense", web.seeds[0] + "nope", ""]))
    run_file("crawl.yaml", web, seeds=str(tmp_path / "seeds.txt"), output=str(tmp_path), n=2)
    found = records(tmp_path, "pages.jsonl")
    ranked = sorted(((len(text_of(web.site, url)), url) for url in pages), reverse=True)
    right = {
        (host, url, length)
        for host in web.site.names
        for length, url in [r for r in ranked if r[1].split("/")[2] == host][:2]
    }
    assert {(page["host"], page["url"], page["length"]) for page in found} == right
    assert all(isinstance(link, str) for page in found for link in page["links"])
    failures = records(tmp_path, "failures.jsonl")
    assert {(f["url"], f["reason"]) for f in failures} == {
        ("nonsense", "malformed"),
        (web.seeds[0] + "nope", "http_404"),
    }


def test_pages_and_their_copies(web, tmp_path):
    pages = sorted(web.site.urls("page"))
    lines = [f"{url},{n}" for n, url in enumerate(pages)]
    (tmp_path / "seeds.csv").write_text("\n".join(["url,score", *lines, ""]))
    run_file("duplicates.yaml", web, seeds=str(tmp_path / "seeds.csv"), output=str(tmp_path))
    kept = {page["url"] for page in records(tmp_path, "pages.jsonl")}
    copies = {page["url"] for page in records(tmp_path, "copies.jsonl")}
    assert kept | copies == set(pages)
    assert kept & copies == set()
    assert web.site.duplicates()
    lost = {url for some in web.site.duplicates() for url in some - {max(some, key=pages.index)}}
    assert copies == lost


def transform_of(text, pipeline):
    """Applies transforms given as YAML, with the listing, to a pipeline."""
    (listed, _) = (yaml.safe_load((FOLDER / name).read_text()) for name in LISTINGS)
    spec = yaml.load(text, Loader=yaml_transform.SafeLineLoader)
    providers = yaml_provider.parse_providers(str(FOLDER), listed)
    return pipeline | yaml_transform.YamlTransform(spec, providers=list(providers))


CREATE = """
type: chain
transforms:
  - type: Create
    config:
      elements:
        - {host: a.test, url: "http://a.test/1", n: 1}
        - {host: a.test, url: "http://a.test/2", n: 2}
        - {host: b.test, url: "http://b.test/1", n: 3}
"""


@pytest.mark.parametrize(
    ("step", "right"),
    [
        ("{type: TopNPerKey, config: {n: 1, key: host, order_by: n}}", [2, 3]),
        ("{type: TopNPerKey, config: {n: 1, key: host, order_by: [n], partitions: 2}}", [2, 3]),
        ("{type: PartitionByHost, config: {partitions: 3, slot: slot}}", [1, 2, 3]),
        ("{type: PartitionByHost, config: {partitions: 3, url: url}}", [1, 2, 3]),
    ],
)
def test_steps_of_a_chain(step, right):
    text = f"{CREATE}  - {step}\n  - {{type: MapToFields, config: {{fields: {{n: n}}}}}}"
    elements = json.dumps([{"n": n} for n in right])
    text += f"\n  - {{type: AssertEqual, config: {{elements: {elements}}}}}"
    with beam.Pipeline("FnApiRunner", options=PipelineOptions([])) as pipeline:
        transform_of(text, pipeline)


LINKS = """
type: chain
transforms:
  - type: Create
    config:
      elements:
        - {source: "http://a.com/", target: "http://b.com/"}
        - {source: "http://c.com/", target: "http://b.com/"}
        - {source: "http://b.com/", target: "http://c.com/"}
"""


def test_ranks_of_links(tmp_path):
    graph = f"{{type: GraphBlocks, config: {{folder: {tmp_path / 'graph'}}}}}"
    ranks = "{type: RankIterations, config: {ranking: pagerank}}"
    fields = "{type: MapToFields, config: {fields: {node: node, in_links: in_links}}}"
    elements = json.dumps(
        [{"node": f"http://{c}.com/", "in_links": n} for c, n in (("a", 0), ("b", 2), ("c", 1))]
    )
    check = f"{{type: AssertEqual, config: {{elements: {elements}}}}}"
    with beam.Pipeline("FnApiRunner", options=PipelineOptions([])) as pipeline:
        steps = "".join(f"  - {step}\n" for step in (graph, ranks, fields, check))
        transform_of(LINKS + steps, pipeline)


PAGES = """
type: chain
transforms:
  - type: Create
    config:
      elements:
        - url: http://a.com/
          score: 2.0
          links:
            - {url: "http://b.com/", anchor: "B ", rel: "UGC"}
            - {url: "http://a.com/x", anchor: X, rel: ""}
        - url: http://c.com/
          score: 1.0
          links:
            - {url: "http://b.com/", anchor: "", rel: "nofollow noopener"}
"""


def test_links_of_pages_are_inverted():
    """Pages have a list of rows; so have the documents of ParsePages."""
    fields = {name: {"expression": f"{name} or ''"} for name in ("url", "source", "anchor", "rel")}
    language = "{language: python, fields: %s}" % json.dumps(fields)  # noqa: UP031
    rows = [
        ("http://b.com/", "http://a.com/", "B", "ugc"),
        ("http://b.com/", "http://c.com/", "", "nofollow"),
    ]
    elements = json.dumps([dict(zip(fields, row, strict=True)) for row in rows])
    steps = ("{type: InvertLinks, config: {ignore_internal_links: true}}",
             f"{{type: MapToFields, config: {language}}}",
             f"{{type: AssertEqual, config: {{elements: {elements}}}}}")  # fmt: skip
    text = PAGES + "".join(f"  - {step}\n" for step in steps)
    with beam.Pipeline("FnApiRunner", options=PipelineOptions([])) as pipeline:
        transform_of(text, pipeline)


NEAR = """
type: composite
transforms:
  - type: Create
    name: Pages
    config:
      elements:
        - {key: a, hash: 8, score: 1.0}
        - {key: b, hash: 9, score: 2.0}
        - {key: c, hash: -9, score: 1.0}
        - {key: d, hash: -1, score: 3.0}
  - type: Create
    name: Owners
    config:
      elements:
        - {hash: -9, owner: me, since: 1}
        - {hash: 9, owner: you, since: 2}
"""
BY_NAME = "name: Step, input: {rows: Pages, others: Owners}"


@pytest.mark.parametrize(
    ("step", "fields", "right"),
    [
        (
            "type: NearPairs, name: Step, input: Pages, config: {distance: 1}",
            {"low": {"expression": "min(hash, other)"}, "high": {"expression": "max(hash, other)"}},
            [(8, 9), (-9, -1)],
        ),
        (
            "type: LeadNearPages, name: Step, input: Pages, config: {distance: 1, "  # noqa: ISC004
            "order_by: [score, key], descending: [true, false]}",
            {"key": "key", "winner": "winner", "leads": "leads"},
            [("a", "b", False), ("b", "b", True), ("c", "d", False), ("d", "d", True)],
        ),
        (
            f"type: JoinByHash, {BY_NAME}, config: {{hash: hash, columns: {{owner: by}}}}",
            {"key": "key", "by": {"expression": "by or ''"}},
            [("a", ""), ("b", "you"), ("c", "me"), ("d", "")],
        ),
    ],
)
def test_near_pages_and_joins(step, fields, right):
    language = "{language: python, fields: %s}" % json.dumps(fields)  # noqa: UP031
    elements = json.dumps([dict(zip(fields, row, strict=True)) for row in right])
    text = f"""{NEAR}
  - {{{step}}}
  - {{type: MapToFields, name: Fields, input: Step, config: {language}}}
  - {{type: AssertEqual, input: Fields, config: {{elements: {elements}}}}}
"""
    with beam.Pipeline("FnApiRunner", options=PipelineOptions([])) as pipeline:
        transform_of(text, pipeline)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            "{type: TopNPerKey, config: {n: 0, key: host, order_by: n}}",
            "n must be at least 1, got 0",
        ),
        ("{type: TopNPerKey, config: {n: 1, key: hots, order_by: n}}", "needs the column 'hots'"),
        ("{type: FetchPages, config: {server_delay: 1}}", "add agent_name=NAME"),
        ("{type: FetchPages, config: {delay: 1}}", "'delay'"),
        ("{type: ParsePages}", "needs the column 'body'"),
    ],
)
def test_invalid_steps_are_refused_when_the_pipeline_is_built(step, message):
    with pytest.raises(ValueError, match=message) as raised:
        transform_of(f"{CREATE}  - {step}", beam.Pipeline("FnApiRunner"))
    assert raised


@pytest.mark.parametrize("listing", LISTINGS)
def test_the_listings_name_the_same_transforms(listing):
    (spec,) = yaml.safe_load((FOLDER / listing).read_text())
    assert spec["type"] == ("pythonPackage" if "package" in listing else "python")
    (listed,) = yaml.safe_load((FOLDER / LISTINGS[0]).read_text())
    assert spec["transforms"] == listed["transforms"]


def test_every_option_has_a_type_and_a_description():
    (provider,) = yaml_provider.load_providers(str(FOLDER / LISTINGS[0]))
    for name in provider.provided_transforms():
        schema = provider.config_schema(name)
        assert [field.name for field in schema.fields if not field.description] == []
        assert provider.description(name)
    fields = {f.name: f.type for f in provider.config_schema("ParsePages").fields}
    names = {option.name for option in options_of(type(ParsePages().options))}
    assert names <= fields.keys()
    kinds = {name: kind.WhichOneof("type_info") for name, kind in fields.items()}
    assert {kinds[name] for name in names} == {"atomic_type", "array_type"}
    fetch = {f.name: f.type for f in provider.config_schema("FetchPages").fields}
    assert fetch["connect_to"].WhichOneof("type_info") == "array_type"
    assert fetch["error_handling"].WhichOneof("type_info") == "map_type"
    assert fetch["min_crawl_delay"].nullable
