"""The functions of the link table: keys, edges, changes, anchors; a row-by-row reference beside them."""

import random

import polars as pl
import pytest
from frames import frame_of
from linked_web import link_key

from nutbeam.policy.components.link_rows import (
    INLINKS,
    MAX_HALF,
    best_inlinks,
    half,
    keep_best,
    link_keys,
    range_of_target,
)
from nutbeam.policy.components.schema import empty, to_frame
from nutbeam.policy.inlinks.edges import (
    LINK_CHANGES,
    MAX_TEXTS,
    InvertOptions,
    anchors_of,
    clean_anchors,
    edges_of,
    page_edges,
    tombstones_of,
    with_halves,
)
from nutbeam.policy.inlinks.link_decisions import apply_links
from nutbeam.web.base.clock import EARLIEST_MS

LONG = "com.a:http/" + 4080 * "x"
DAY = 86_400_000
NOW = EARLIEST_MS + 365 * DAY


def documents(pages, time=1, score=1.0):
    """DOCUMENTS rows: links (target, anchor, rel) by key."""
    links = [[dict(zip(("key", "anchor", "rel"), link, strict=True)) for link in links]
             for links in pages.values()]  # fmt: skip
    kind = pl.List(pl.Struct(dict.fromkeys(("key", "anchor", "rel"), pl.String)))
    return pl.DataFrame(
        {"key": pl.Series(list(pages), dtype=pl.String), "outlinks": pl.Series(links, dtype=kind)}
    ).with_columns(fetch_time=pl.lit(time, pl.Int64), score=pl.lit(score, pl.Float32))


def invert(changes):
    """The link table of changes alone, without ended links."""
    wide = pl.concat([to_frame(LINK_CHANGES.empty_table()), changes], how="diagonal_relaxed")
    return apply_links(empty(INLINKS), wide, NOW)[0].filter(pl.col("gone_since").is_null())


def table_of(pages, **how):
    return invert(edges_of(documents(pages), InvertOptions(**how))[0])


def test_keys_of_a_page_are_one_range_also_of_long_ones():
    targets = ["com.a:http/", "com.a:http/!", "com.a:http/a", "com.a.b:http/", LONG, f"{LONG}y"]
    sources = ["org.b:http/", "[::1]:http/", LONG]
    keys = {link_key(target, source): target for target in targets for source in sources}
    assert len(keys) == len(targets) * len(sources)
    assert max(map(len, keys)) <= 4096
    for target in targets:
        low, high = range_of_target(target)
        assert {found for key, found in keys.items() if low <= key < high} == {target}
    assert len(half(LONG)) == MAX_HALF
    pairs = [(target, source) for target in targets for source in sources]
    columns = [pl.Series(column) for column in zip(*pairs, strict=True)]
    assert link_keys(*columns).to_list() == [link_key(*pair) for pair in pairs]


def test_long_keys_are_whole_in_the_table():
    rows = table_of({LONG: [("com.b:http/", "x", None)], "com.b:http/": [(LONG, "y", None)]})
    assert set(rows.select("target", "source").rows()) == {
        ("com.b:http/", LONG), (LONG, "com.b:http/"),
    }  # fmt: skip


def test_several_links_to_one_page_are_one():
    links = [("com.b:http/", "one", "nofollow ugc"), ("com.b:http/", "", "UGC"),
             ("com.b:http/", "two", "ugc sponsored"), ("com.b:http/", "one", "ugc")]  # fmt: skip
    assert table_of({"com.a:http/": links}).select("anchor", "rel").rows() == [("two\none", "ugc")]
    links[1] = ("com.b:http/", "", "")
    assert table_of({"com.a:http/": links}).select("rel").rows() == [(None,)]
    many = [("com.b:http/", str(n), None) for n in range(10_000)]
    (anchor,) = table_of({"com.a:http/": many}).get_column("anchor")
    assert anchor.split("\n") == [str(n) for n in range(MAX_TEXTS)]


def test_nofollow_links_are_distinguished():
    pages = documents({"com.a:http/": [("com.b:http/", "B", "ugc"), ("com.d:http/", "D", None)]})
    unfollowed = documents(
        {"com.a:http/": [("com.c:http/", "C", "ugc nofollow"), ("com.d:http/", "d", "nofollow")]}
    ).get_column("outlinks")
    pages = pages.with_columns(unfollowed.alias("nofollow_links"))
    rows = invert(edges_of(pages, InvertOptions())[0])
    assert rows.select("target", "rel").rows() == [
        ("com.b:http/", "ugc"), ("com.c:http/", "nofollow ugc"), ("com.d:http/", None),
    ]  # fmt: skip
    assert rows.get_column("anchor").to_list() == ["B", "C", "D"]
    assert anchors_of(rows) == ["B", "D"]
    times = pl.DataFrame({"key": ["com.a:http/"], "time": [2]})
    assert len(tombstones_of(pages, times)) == 3


def test_own_internal_and_external_links():
    pages = {"com.a:http/": [("com.a:http/", "", None), ("com.a:http/b", "", None),
                             ("com.a.b:http/", "", None)]}  # fmt: skip

    def targets(**how):
        return table_of(pages, **how).get_column("target").to_list()

    assert targets() == ["com.a.b:http/", "com.a:http/b"]
    assert targets(ignore_internal_links=True) == ["com.a.b:http/"]
    assert targets(ignore_external_links=True) == ["com.a:http/b"]
    with pytest.raises(ValueError, match="together leave no link, got true and true"):
        InvertOptions(ignore_internal_links=True, ignore_external_links=True)
    _, counts = edges_of(documents(pages), InvertOptions(ignore_internal_links=True))
    assert counts == {"dropped/own_url": 1, "dropped/internal_link": 1}


def test_changes_of_one_link_at_one_time_are_one_and_the_newest_time_counts():
    pair = "com.b:http/ com.a:http/"
    texts = [(1, None, "a", "ugc", 1.0), (2, 0, "x\ny", "ugc", 1.0), (2, None, "y\nz", None, 3.0)]
    changes = pl.DataFrame(
        [(pair, *row, False) for row in texts], schema=["key", "time", "first", "anchor", "rel", "score", "gone"],
        orient="row", schema_overrides={"score": pl.Float32, "first": pl.Int64},
    )  # fmt: skip
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        (row,) = invert(changes[order]).to_dicts()
        assert (row["first_seen"], row["last_seen"], row["score"]) == (0, 2, 3.0)
        assert (set(row["anchor"].split("\n")), row["rel"]) == ({"x", "y", "z"}, None)
        assert row["anchor"] == "y\nz\nx"


def test_tombstones_are_for_links_that_options_leave_out_too():
    pages = documents({"com.a:http/": [("com.a:http/b", "", None), ("com.b:http/", "", None)]})
    times = pl.DataFrame({"key": ["com.a:http/"], "time": [2]})
    assert len(tombstones_of(pages, times)) == 2


@pytest.mark.parametrize(
    ("source", "target", "external"),
    [
        ("http://a.com:80/", "http://a.com/x", False), ("http://me:pw@A.com/", "http://a.com/x", False),
        ("http://[::1]:8080/", "http://[::1]/x", False), ("http://[::1]/", "http://[::2]/", True),
        ("http://a.com/@b.com", "http://b.com/", True), ("HTTP://a.com/", "http://a.com/x", False),
    ],
)  # fmt: skip
def test_hosts_of_urls_are_compared_without_port_and_user(source, target, external):
    pages = pl.DataFrame({"url": [source], "links": [[{"url": target, "anchor": "", "rel": ""}]]})
    assert page_edges(pages)["external"].to_list() == [external]


@pytest.mark.parametrize(
    ("anchor", "kept"),
    [
        ("a\x00b\x1b[31mc", "a b [31mc"), ("x\u202ey", "x y"), ("  ", None), ("\n", None),
        ("a" * (1 << 20), "a" * 100), (" " * 50 + "b", "b"), ("é" * 101, "é" * 100),
    ],
)  # fmt: skip
def test_anchors_are_one_clean_line(anchor, kept):
    assert clean_anchors(pl.Series([anchor, "z"]), 100).to_list() == [kept, "z"]
    assert clean_anchors(pl.Series([anchor]), 0).to_list() == [None]


def test_anchors_as_nutch_collects_them():
    links = pl.DataFrame({"source": ["com.a:http/1", "com.a:http/2", "com.b:http/", "com.b:http/2"],
                          "anchor": ["Home", "Home", "Home\nStart", None]})  # fmt: skip
    assert anchors_of(links) == ["Home", "Home", "Start"]


def test_the_best_sources():
    links = pl.DataFrame(
        {"target": ["com.a:http/"] * 4, "source": [f"com.{c}:http/" for c in "abcd"],
         "score": [1.0, 1.0, None, 2.0]}
    )  # fmt: skip
    best = best_inlinks(links, 3).get_column("source").to_list()
    assert best == ["com.d:http/", "com.b:http/", "com.a:http/"]
    assert not len(best_inlinks(links, 0))


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("most", [1, 4])
def test_the_best_sources_of_pieces_are_those_of_the_whole(size, most):
    some = random.Random(size)
    pairs = [(f"com.t{some.randrange(4)}:http/", f"com.s{n}:http/") for n in range(60)]
    links = pl.DataFrame(pairs, schema=["target", "source"], orient="row").with_columns(
        score=pl.Series([some.choice([None, 1.0, 2.0]) for _ in pairs])
    )
    links = links.with_columns(link_keys(links["target"], links["source"])).sort("key")
    pieces = (links[at : at + size] for at in range(0, len(links), size))
    kept = pl.concat(keep_best(pieces, most))
    assert kept.equals(best_inlinks(links, most).sort("key"))


KEYS = [f"com.{host}:http/{page}" for host in "ab" for page in range(3)]


class Reference:
    """The link table row by row: what each page's newest document says."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.newest = {}  # links by page, and the time
        self.rows = empty(INLINKS)

    def step(self, time):
        """Some pages are fetched: they have other links, the same, or are gone."""
        some = self.random
        pages = some.sample(KEYS, some.randrange(1, 4))
        old = {p: self.newest[p][0] for p in pages if p in self.newest}
        new = {p: self.links() for p in pages if some.random() < 0.8}
        for page in pages:
            self.newest.pop(page, None)
            if page in new:
                self.newest[page] = new[page], time
        return self.changes(old, new, time)

    def links(self):
        some = self.random
        return [(some.choice(KEYS), some.choice(["", "x", "y"]), some.choice([None, "ugc"]))
                for _ in range(some.randrange(4))]  # fmt: skip

    def changes(self, old, new, time):
        edges, _ = edges_of(documents(new, time), InvertOptions())
        times = pl.DataFrame({"key": list(old)}, {"key": pl.String}).with_columns(time=pl.lit(time))
        dead = tombstones_of(documents(old), times)
        return pl.concat([edges, dead], how="diagonal_relaxed")

    def truth(self):
        found = {}
        for source, (links, _) in self.newest.items():
            for target, anchor, rel in links:
                if target != source:
                    found.setdefault((target, source), []).append((anchor, rel))
        return {
            pair: (
                "\n".join(dict.fromkeys(a for a, _ in links if a)) or None,
                "ugc" if all(rel == "ugc" for _, rel in links) else None,
            )
            for pair, links in found.items()
        }

    def stored(self):
        alive = self.rows.filter(pl.col("gone_since").is_null())
        return {
            (t, s): (a, r)
            for t, s, a, r in alive.select("target", "source", "anchor", "rel").rows()
        }


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(8))
def test_random_histories_are_those_of_the_newest_documents(seed):
    reference = Reference(seed)
    for time in range(1, 16):
        changes = reference.step(time)
        wide = with_halves(changes).filter(~pl.col("gone"))
        assert wide.select("target", "source").null_count().row(0) == (0, 0)
        for _ in range(2):  # the same again changes nothing
            reference.rows, _counts = apply_links(
                reference.rows, changes.sample(fraction=1, shuffle=True, seed=seed), NOW
            )
        assert reference.rows.get_column("key").is_sorted()
        assert not reference.rows.get_column("key").is_duplicated().any()
        assert reference.stored() == reference.truth()


@pytest.mark.parametrize("seed", range(5))
def test_a_tombstone_that_comes_late_kills_only_older_links(seed):
    reference = Reference(seed)
    steps = [reference.step(time) for time in range(1, 12)]
    links = [step.filter(~pl.col("gone")) for step in steps]
    dead = [step.filter("gone") for step in steps]
    for changes in links:
        reference.rows, _ = apply_links(reference.rows, changes, NOW)
    reference.random.shuffle(dead)
    # A link that is found again in the step of its tombstone lives on.
    found = pl.concat(links).select("key", "time")
    for changes in dead:
        ended = changes.join(found, on=["key", "time"], how="anti")
        reference.rows, _ = apply_links(reference.rows, ended, NOW)
    assert reference.stored() == reference.truth()


AHEAD = NOW + 54 * 365 * DAY
PAIR = "com.b:http/ com.a:http/"
LEFT_BY_A_CLOCK_AHEAD = {
    "seen": {"first_seen": NOW - DAY, "last_seen": AHEAD},
    "gone": {"first_seen": AHEAD, "last_seen": AHEAD, "gone_since": AHEAD},
}


@pytest.mark.parametrize("row", LEFT_BY_A_CLOCK_AHEAD.values(), ids=LEFT_BY_A_CLOCK_AHEAD)
@pytest.mark.parametrize("gone", [False, True])
def test_a_change_is_newer_than_a_link_that_a_clock_ahead_has_left(row, gone):
    old = frame_of(INLINKS, {"key": PAIR, "anchor": "old"} | row)
    time = NOW - 9 * DAY  # an old batch is inverted now
    change = {"key": PAIR, "anchor": "new", "time": time, "gone": gone}
    rows, counts = apply_links(old, frame_of(LINK_CHANGES, change), NOW)
    (link,) = rows.to_dicts()
    assert link["last_seen"] == time
    assert link["first_seen"] <= NOW
    assert counts["clock"] == 1
    assert link["gone_since"] == (time if gone else None)
    assert gone or link["anchor"] == "new"


def test_a_link_of_a_page_that_was_fetched_ahead_is_seen_now():
    change = {"key": PAIR, "time": AHEAD, "first": AHEAD, "gone": False}
    rows, _ = apply_links(empty(INLINKS), frame_of(LINK_CHANGES, change), NOW)
    assert rows.select("first_seen", "last_seen", "gone_since").row(0) == (NOW, NOW, None)
