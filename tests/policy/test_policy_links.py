import pytest
from file_changes import changes_of
from frames import frame_of

from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.host_rows import Seeds
from nutbeam.policy.components.page_facts import COLUMNS_OF_PAGES, DOCUMENT_COLUMNS, BatchOrigin
from nutbeam.policy.components.schema import CHANGES, PAGES
from nutbeam.policy.links import LinkOptions
from nutbeam.web.exchange.status import FETCH_REDIR_TEMP, FETCH_RETRY, FETCH_SUCCESS
from nutbeam.web.urls.row_keys import to_key

ORIGIN = BatchOrigin(order=7, batch="b", document="documents/d")
HOME = to_key("http://a.example.com/")


def key(path):
    return to_key(f"http://a.example.com/{path}")


def page(path="", status=FETCH_SUCCESS, **columns):
    return {"key": key(path), "score": 1.0, "distance": 2, "fetch_status": status, **columns}


def document(path="", links=(), **columns):
    outlinks = [{"key": link, "anchor": "", "rel": ""} for link in links]
    return {"key": key(path), "score": 1.0, "distance": 2, "outlinks": outlinks or None, **columns}


def changes(pages, documents, origin=ORIGIN, **options):
    rows, counts = changes_of(
        frame_of(PAGES, *pages).select(COLUMNS_OF_PAGES),
        frame_of(DOCUMENTS, *documents).select(DOCUMENT_COLUMNS),
        origin,
        Seeds(),
        LinkOptions(**options),
    )
    assert rows.schema == frame_of(CHANGES).schema
    assert set(rows["order"]) <= {origin.order}
    events = [row for row in rows.to_dicts() if row["fetch_status"] is not None]
    links = {
        row["key"]: (row["inlink_score"], row["inlink_distance"])
        for row in rows.to_dicts()
        if row["inlink_score"] is not None
    }
    heirs = [row for row in rows.to_dicts() if row["repr_url"] is not None]
    # A row per page, a sum per target, and what targets of redirects inherit.
    assert len(rows) == len(events) + len(links) + len(heirs)
    return events, links, counts


def test_an_event_per_page():
    brought = {"http_code": 200, "fetch_time": 5, "etag": "e", "retry_after": 3}
    events, links, counts = changes(
        [page(**brought), page("late", FETCH_RETRY)], [document(signature=b"s", parse_status=1)]
    )
    success, retry = events
    assert {name: success[name] for name in brought} == brought
    assert [success[name] for name in ("signature", "parse_status")] == [b"s", 1]
    assert [success[name] for name in ("batch_id", "page", "document")] == [
        "b", "pages/7", "documents/d"
    ]  # fmt: skip
    assert [retry[name] for name in ("page", "document", "signature")] == ["pages/7", None, None]
    assert (links, counts) == ({}, {})


def test_pages_that_were_not_parsed():
    events, links, _ = changes([page()], [], BatchOrigin(7, "b"))
    assert (events[0]["document"], events[0]["signature"], links) == (None, None, {})


def test_a_page_divides_its_score_among_its_links_and_sums_are_per_target():
    documents = [
        document("1", [key("x"), key("y")], score=1.0),
        document("2", [key("x"), key("x"), key("y"), key("z")], score=2.0, distance=0),
        document("3", [], score=5.0),
    ]
    _, links, _ = changes([page(str(n)) for n in (1, 2, 3)], documents)
    assert links == {key("x"): (1.5, 1), key("y"): (1.0, 1), key("z"): (0.5, 1)}


def test_a_page_without_a_score_still_shows_its_links():
    _, links, _ = changes([page()], [document(links=[key("x")], score=None, distance=None)])
    assert links == {key("x"): (0.0, 1)}


@pytest.mark.parametrize(("internal", "external"), [(1.0, 1.0), (0.5, 2.0), (0.0, 1.0), (3.0, 3.0)])
def test_factors(internal, external):
    other = to_key("http://b.example.com/")
    _, links, _ = changes(
        [page()], [document(links=[key("x"), other])],
        internal_link_factor=internal, external_link_factor=external,
    )  # fmt: skip
    assert links == {key("x"): (0.5 * internal, 3), other: (0.5 * external, 3)}


def test_a_page_that_stands_twice_counts_once():
    pages = [page(http_code=200), page(status=FETCH_RETRY, http_code=500)]
    documents = [document(links=[key("x")]), document(links=[key("y")])]
    events, links, _ = changes(pages, documents)
    assert [event["http_code"] for event in events] == [200]
    assert links == {key("x"): (1.0, 3)}


@pytest.mark.parametrize("where", ["redirect", "refresh"])
def test_targets_of_redirects_are_as_far_away_and_get_no_score(where):
    url = "http://A.example.com:80/x#frag"
    pages = [page(status=FETCH_REDIR_TEMP, redirect=url if where == "redirect" else None)]
    documents = [document(refresh=url)] if where == "refresh" else []
    _, links, counts = changes(pages, documents)
    assert (links, counts) == ({key("x"): (0.0, 2)}, {})


def test_a_target_of_both_is_one():
    _, links, _ = changes(
        [page(), page("r", FETCH_REDIR_TEMP, redirect="http://a.example.com/x", distance=0)],
        [document(links=[key("x")])],
    )
    assert links == {key("x"): (1.0, 0)}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://elsewhere.org/", "out_of_scope"),
        ("http://a.example.com/logo.png", "filtered"),
        ("ftp://elsewhere.org/", "scheme_not_allowed"),
        ("http://a.example.com/", "own_url"),
        ("nonsense", "malformed"),
    ],
)
def test_redirects_that_lead_nowhere_are_counted(url, reason):
    events, links, counts = changes([page(status=FETCH_REDIR_TEMP, redirect=url)], [])
    assert (len(events), links) == (1, {})
    assert counts == {f"dropped/redirect_{reason}": 1}


def test_redirects_out_of_scope_are_followed_where_that_is_wanted():
    pages = [page(status=FETCH_REDIR_TEMP, redirect="http://elsewhere.org/")]
    _, links, counts = changes(pages, [], scope="any")
    assert (links, counts) == ({to_key("http://elsewhere.org/"): (0.0, 2)}, {})


def test_no_pages():
    assert changes([], []) == ([], {}, {})
