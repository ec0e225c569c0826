"""What pages allow their content to be used for: from robots.txt, headers and pages to the table."""

import pytest
from file_changes import changes_of, update_state
from frames import frame_of, table_of

from nutbeam.policy.components.host_rows import Seeds
from nutbeam.policy.components.page_facts import COLUMNS_OF_PAGES, BatchOrigin
from nutbeam.policy.components.schema import PAGES, STATE, to_frame
from nutbeam.policy.links import LinkOptions
from nutbeam.policy.parsing.documents import DocumentOptions, ParseRules, documents_of
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.content.usage import read_usage, usage_of_page
from nutbeam.web.exchange.status import FETCH_RETRY, FETCH_SUCCESS
from nutbeam.web.robots.robots import RobotsRecord, RobotsRules

KEY = "com.example:http/a"
OPTIONS = UpdateOptions()


def page(body=b"<p>x", robots=None, status=FETCH_SUCCESS, time=7, **headers):
    named = [{"name": n.replace("_", "-"), "value": v} for n, v in headers.items()]
    return {
        "key": KEY, "fetch_status": status, "fetch_time": time, "content_type": "text/html",
        "body": body, "headers": named, "usage": robots, "score": 1.0, "distance": 0,
        "protocol_status": 1,
    }  # fmt: skip


def usage(**columns):
    table, _ = documents_of(
        table_of(PAGES, page(**columns)), ParseRules(DocumentOptions(), Seeds())
    )
    (document,) = table.to_pylist()
    return document["usage"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, None),
        ({"Content_Usage": "train-ai=n"}, "train-ai=n"),
        ({"Content_Usage": "search=y", "robots": "search=n"}, "search=n"),
        ({"X_Robots_Tag": "noai"}, "train-ai=n"),
        ({"X_Robots_Tag": "otherbot: noai"}, None),
        ({"TDM_Reservation": "1"}, "train-ai=n"),
        ({"TDM_Reservation": "0"}, None),
        ({"body": b"<meta name=robots content='noai, noimageai'><p>x"}, "train-ai=n"),
        ({"body": b"\0", "robots": "train-ai=n"}, "train-ai=n"),
    ],
)
def test_documents_have_the_usage(columns, expected):
    assert usage(**columns) == expected


def test_a_file_of_an_earlier_version_has_no_usage_of_robots_txt():
    table = table_of(PAGES, page()).drop_columns(["usage"])
    assert (
        documents_of(table, ParseRules(DocumentOptions(), Seeds()))[0].to_pylist()[0]["usage"]
        is None
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("train-ai=n, search=y", {"train-ai": False, "search": True}),
        ("Train-AI=N;x=1 , search = y", {"train-ai": False, "search": True}),
        ("train-ai, search=?0, =n, a=maybe,,", {}),
        ("search=y, search=n", {"search": False}),
        (",".join(f"c{n}=n" for n in range(1000)), {f"c{n}": False for n in range(20)}),
        ("é=n" * 10_000, {}),
    ],
)
def test_content_usage(value, expected):
    assert read_usage(value) == expected


def test_robots_txt_says_it_by_path_and_agent():
    text = """User-agent: *
Content-Usage: search=n

User-agent: bot
Content-Usage: train-ai=n
Content-Usage: /open/ train-ai=y
Content-Usage: /open/ search=y
content-usage : /*.pdf$ train-ai=n, search=n
Disallow: /no
"""
    rules = RobotsRules(RobotsRecord(200, text, 0), "bot")
    assert rules.usage("http://h/") == "train-ai=n"
    assert rules.usage("http://h/open/x") == "search=y, train-ai=y"
    assert rules.usage("http://h/a.pdf") == "search=n, train-ai=n"
    assert RobotsRules(RobotsRecord(200, text, 0), "other").usage("http://h/") == "search=n"
    assert not rules.allows("http://h/no")
    assert RobotsRules(RobotsRecord(404, "", 0), "bot").usage("http://h/") is None


def updated(rows, row, now):
    documents, _ = documents_of(table_of(PAGES, row), ParseRules(DocumentOptions(), Seeds()))
    pages = to_frame(table_of(PAGES, row)).select(COLUMNS_OF_PAGES)
    origin = BatchOrigin(0, "1-1", "d")
    changes, _ = changes_of(pages, to_frame(documents), origin, Seeds(), LinkOptions())
    return update_state(rows, changes, now, OPTIONS)[:2]


def test_the_table_keeps_the_usage_of_the_newest_body():
    state = frame_of(STATE, {"key": KEY, "status": 1, "fetch_time": 0, "score": 1.0})
    day = 86_400_000
    start = 1_700_000_000_000
    state, outcome = updated(state, page(robots="train-ai=n", time=start), start)
    assert (state["usage"].item(), outcome["usage"].item()) == ("train-ai=n", "train-ai=n")
    failed = page(status=FETCH_RETRY, time=start + day) | {"protocol_status": 16}
    state, _ = updated(state, failed, start + day)
    assert state["usage"].item() == "train-ai=n"
    state, outcome = updated(state, page(time=start + 2 * day), start + 2 * day)
    assert (state["usage"].item(), outcome["usage"].item()) == (None, None)


def test_a_contradiction_means_no():
    assert usage_of_page("search=y", [("content-usage", "search=n")], ()) == "search=n"
