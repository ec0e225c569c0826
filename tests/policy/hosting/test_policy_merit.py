"""Domains may have a share of the table that links from seeds earn; a farm's own links earn none."""

import random
from collections import defaultdict

import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import PAGES, to_frame
from nutbeam.policy.hosting.hosts import page_findings
from nutbeam.policy.hosting.merit import (
    DomainRoom,
    Merits,
    domain_links,
    drop_unvouched_links,
    linking_domains,
    merits_of,
    room_of_domains,
    within_room,
)
from nutbeam.policy.hosting.sketches import number_of_domains
from nutbeam.policy.traps import BudgetOptions

OPTIONS = BudgetOptions(domain_budget=2, unlinked_domain_budget=2)


def merits_with(seeds, budgets, least):
    columns = {"key": sorted(budgets), "budget": [budgets[key] for key in sorted(budgets)]}
    schema = {"key": pl.String, "budget": pl.Int64}
    return Merits(names(*seeds), pl.DataFrame(columns, schema=schema), least)


def names(*domains):
    return pl.Series(sorted(domains), dtype=pl.String)


def budgets_of(hosts, seeds, urls):
    """Returns the budgets by domain."""
    return dict(merits_of(hosts, names(*seeds), urls, OPTIONS).budgets.rows())


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
    found = linking_domains(pairs.filter(pl.col("source") == "com.b"))
    assert [(key, number_of_domains(sketch)) for key, sketch in found.rows()] == [("com.a", 1)]


def test_the_best_have_room():
    new = pl.DataFrame({
        "key": ["com.a:http/1", "com.a.x:http/2", "com.a:http/3", "com.b:http/", "com.seed:http/"],
        "inlink_score": [0.1, 0.9, 0.5, 0.1, 0.1],
    })  # fmt: skip
    merits = merits_with({"com.seed"}, {"com.a": 5, "com.b": 1}, 10)
    urls = pl.DataFrame({"key": ["com.a", "com.b"], "domain_urls": [3, 1]})
    kept, counts = within_room(new, DomainRoom(merits, urls))
    assert kept["key"].to_list() == ["com.a.x:http/2", "com.a:http/3", "com.seed:http/"]
    assert counts == {"dropped/domain_full": 2}
    assert within_room(new, None) == (new, {})


def hosts_with(links):
    """Returns ``key`` and ``linking_domains`` of domains, from the domains that link to each."""
    pairs = pl.DataFrame(
        [(source, target) for target, sources in links.items() for source in sources],
        schema={"source": pl.String, "target": pl.String}, orient="row",
    )  # fmt: skip
    return linking_domains(pairs)


def test_room_is_a_share_of_the_table():
    # Two seeds: one links to a and b, the other to a alone.
    hosts = hosts_with({"com.a": ["com.s", "com.t"], "com.b": ["com.s"], "com.s": ["com.a"]})
    merits = merits_of(hosts, names("com.s", "com.t"), 400, OPTIONS)
    budgets = dict(merits.budgets.rows())
    assert budgets["com.a"] > 2 * budgets["com.b"] > 0
    assert sum(budgets.values()) in (799, 800)  # twice the URLs
    urls = pl.DataFrame({"key": ["com.b", "com.d"], "domain_urls": [5, 9]})
    found = room_of_domains(urls, pl.Series(["com.b", "com.d", "com.e", "com.s", ""]), merits)
    assert found == {"com.b": budgets["com.b"] - 5, "com.d": 0, "com.e": 2}


def test_a_small_crawl_has_a_few_urls_of_each_linked_domain():
    hosts = hosts_with({f"com.d{n}": ["com.s"] for n in range(50)})
    merits = merits_of(hosts, names("com.s"), 1, OPTIONS)
    assert set(merits.budgets["budget"]) == {4}
    assert merits.are_vouching(names("com.d0", "com.d49", "com.s", "com.x")).to_list() == [
        True, True, True, False
    ]  # fmt: skip
    assert budgets_of(hosts, {"com.s"}, 5_000)["com.d0"] == 200


def test_merit_without_links_or_without_seeds_is_defined():
    assert budgets_of(hosts_with({}), {"com.s"}, 9) == {}
    assert budgets_of(hosts_with({"com.a": ["com.b"]}), (), 9) == {"com.a": 0}


def test_a_domain_with_very_many_links_gets_the_merit_of_those_in_its_sketch():
    # The sketch has 256 of 1,000 linking domains. No more counts than these have.
    many = [f"com.x{n}" for n in range(1_000)]
    hosts = hosts_with({"com.wide": many, **{name: ["com.s"] for name in many}})
    budgets = budgets_of(hosts, {"com.s"}, 100_000)
    # Half of the merit of 256 of 1,000 equal ones.
    assert budgets["com.wide"] == pytest.approx(200_000 * 0.128 / (1 + 0.128), rel=0.01)


def test_links_that_do_not_count_lead_to_no_unknown_domain():
    merits = merits_with({"com.s"}, {"com.a": 5, "com.f": 1}, 2)
    new = [f"com.n{n}:http/" for n in range(5)]
    documents = frame_of(
        DOCUMENTS,
        page("com.s:http/", *new),
        page("com.a.x:http/", *new[:4], "com.n0:http/2", "com.a:http/", "com.f:http/9"),
        page("com.a.y:http/", *new),
        page("com.f:http/", *new, "com.f:http/2", "com.a:http/7", "com.s:http/8"),
        {"key": "com.f:http/3"},
    )
    kept, counts = drop_unvouched_links(documents, merits)
    assert [[link["key"] for link in links] for links in kept["outlinks"].to_list()] == [
        new,
        [*new[:3], "com.a:http/", "com.f:http/9"],
        [new[4]],
        ["com.f:http/2", "com.a:http/7", "com.s:http/8"],
        [],
    ]
    assert counts == {"dropped/domain_unvouched": 2 + 4 + 5}
    assert kept.drop("outlinks").equals(documents.drop("outlinks"))
    same, counts = drop_unvouched_links(documents[:1], merits)
    assert same.equals(documents[:1])
    assert counts == {}


@pytest.mark.long
@pytest.mark.parametrize("comments", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_farm_has_no_more_than_the_links_to_it_bring(seed, comments):
    numbers = random.Random(seed)
    honest, farm = [f"com.h{n}" for n in range(50)], [f"com.f{n}" for n in range(300)]
    links = defaultdict(set)
    for domain in honest:
        for other in numbers.sample(honest, 20):
            links[other].add(domain)
    # Each comment leads from another honest domain to another domain of the farm.
    for n in range(comments):
        links[farm[n]].add(honest[n])
    for domain in farm:
        links[domain] |= set(farm) - {domain}
    budgets = budgets_of(hosts_with(links), honest[:10], 10_000)
    of_farm = sum(budgets[domain] for domain in farm)
    # A domain of a seed has 20 links; a tenth of the seeds' merit is that of one of them.
    assert of_farm < 0.01 * comments * sum(budgets.values())
    assert min(budgets[name] for name in honest[10:]) > 100


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
