"""Domains may have more URLs the more foreign domains link to them; a farm's own do not count."""

import random

import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.hosting.domain_sketch import number_of_domains
from nutbeam.policy.hosting.hosts import merge_hosts
from nutbeam.policy.hosting.merit import (
    KnownUrls,
    room_of_domains,
    vouching_domains,
    within_room,
)
from nutbeam.policy.hosting.page_findings import domain_links, linking_domains, page_findings
from nutbeam.policy.schema import DOCUMENTS, HOSTS, PAGES, empty, to_frame
from nutbeam.policy.traps import BudgetOptions

OPTIONS = BudgetOptions(domain_budget=10, unlinked_domain_budget=2)
NOW = 1_700_000_000_000


def page(key, *targets):
    return {"key": key, "outlinks": [{"key": target} for target in targets]}


def test_pairs_of_domains_without_links_within_a_domain():
    documents = frame_of(
        DOCUMENTS,
        page("com.a.www:http/", "com.a:http/", "com.b.x:http/1", "com.b.y:http/2", ":file/x"),
        page("com.a:http/", "com.b:http/"),
        page("com.b:http/", "com.a:http/"),
        {"key": "com.c:http/"},
    )
    pairs = domain_links(documents)
    assert pairs.rows() == [("com.b", "com.a"), ("com.a", "com.b")]
    found = linking_domains(pairs, {"com.b"})
    assert [(key, number_of_domains(sketch)) for key, sketch in found.rows()] == [("com.a", 1)]


def test_the_best_have_room():
    new = pl.DataFrame({
        "key": ["com.a:http/1", "com.a.x:http/2", "com.a:http/3", "com.b:http/", "com.seed:http/"],
        "inlink_score": [0.1, 0.9, 0.5, 0.1, 0.1],
    })  # fmt: skip
    kept, counts = within_room(new, lambda _: {"com.a": 2, "com.b": 0})
    assert kept["key"].to_list() == ["com.a.x:http/2", "com.a:http/3", "com.seed:http/"]
    assert counts == {"dropped/domain_full": 2}
    assert within_room(new, None) == (new, {})
    assert KnownUrls().room is None


def hosts_with(links, urls=None):
    """Returns the rows of domains, with the domains that link to each."""
    pairs = pl.DataFrame(
        [(source, target) for target, sources in links.items() for source in sources],
        schema={"source": pl.String, "target": pl.String}, orient="row",
    )  # fmt: skip
    rows = linking_domains(pairs, set(pairs["source"]))
    counts = pl.DataFrame({"key": list(urls or {}), "domain_urls": list((urls or {}).values())},
                          schema={"key": pl.String, "domain_urls": pl.Int64})  # fmt: skip
    return rows.join(counts, on="key", how="full", coalesce=True)


def test_room_grows_with_the_domains_that_link():
    hosts = hosts_with({"com.a": ["com.x", "com.y"], "com.b": ["com.x"]}, {"com.a": 5, "com.c": 9})
    found = room_of_domains(hosts, ["com.a", "com.b", "com.c", "com.d"], OPTIONS)
    assert found == {"com.a": 2 + 40 - 5, "com.b": 12, "com.c": 0, "com.d": 2}


def test_links_count_of_seeds_and_of_domains_that_two_counting_ones_link_to():
    hosts = hosts_with({"com.a": ["com.x", "com.y"], "com.b": ["com.x"]})
    assert vouching_domains(hosts, {"com.s", "com.t"}, OPTIONS) == {"com.s", "com.t", "com.a"}
    # With one seed, only one domain can link to others at first.
    assert vouching_domains(hosts, {"com.s"}, OPTIONS) == {"com.s", "com.a", "com.b"}


@pytest.mark.parametrize("seed", range(3))
def test_a_farm_stays_small_while_honest_domains_grow(seed):
    numbers = random.Random(seed)
    honest, farm = [f"com.h{n}" for n in range(30)], [f"com.f{n}" for n in range(50)]
    seeds, rows = honest[:3], empty(HOSTS)
    for _ in range(6):
        documents = [
            page(f"{domain}:http/", *(f"{other}:http/" for other in numbers.sample(honest, 4)))
            for domain in honest
        ]
        documents[0]["outlinks"].append({"key": "com.f0:http/"})
        documents += [page(f"{d}:http/", *(f"{other}:http/x" for other in farm)) for d in farm]
        pairs = domain_links(frame_of(DOCUMENTS, *documents))
        found = linking_domains(pairs, vouching_domains(rows, seeds, OPTIONS))
        findings = pl.concat([empty(HOSTS), found], how="diagonal")
        rows, _ = merge_hosts(rows, findings, NOW)
    room = room_of_domains(rows, [*honest, *farm], OPTIONS)
    of_farm = sum(room[domain] for domain in farm)
    assert of_farm == 10 + 2 * len(farm)
    assert of_farm < 0.05 * sum(room[domain] for domain in honest)


def test_findings_of_pages():
    pages = to_frame(frame_of(PAGES,
        {"key": "com.a:http/", "fetch_status": 33, "response_ms": 100},
        {"key": "com.a:https/", "fetch_status": 33, "response_ms": 100},
        {"key": "com.b:http/", "fetch_status": 37},
        {"key": ":file/", "fetch_status": 33, "response_ms": 1},
    ).to_arrow())  # fmt: skip
    found = {row["key"]: row for row in page_findings(pages).to_dicts()}
    assert found["com.a"]["homepage"] == "com.a:https/"
    assert found.keys() == {"com.a"}
