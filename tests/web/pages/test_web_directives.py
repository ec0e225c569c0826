"""What documents say to robots, in meta elements and X-Robots-Tag."""

import pytest
from html_trees import FETCHED, URL
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.web.pages.directives import parse_moment, robots_directives
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document


def test_robots_meta(page):
    markup = "<head><title>t</title><meta name=ROBOTS content='{}'></head><body>x <a href=a>y</a>"
    assert page(markup.format("index,follow")).directives == set()
    unindexed = page(markup.format("NoIndex"))
    assert (unindexed.title, unindexed.text, unindexed.hrefs) == ("", "", ["a"])
    unfollowed = page(markup.format("nofollow"))
    assert (unfollowed.title, unfollowed.text, unfollowed.hrefs) == ("t", "x y", [])
    assert unfollowed.dropped == {"page_nofollow": 1}
    assert page(markup.format("none, noarchive")).directives == {
        "noindex",
        "nofollow",
        "noarchive",
    }
    assert page("<meta http-equiv=Pragma content=no-cache>x").directives == {"noarchive"}


def test_robots_header(page):
    assert page("<a href=a>x</a>", robots_header="noindex").text == ""
    found = page("<meta name=robots content=noarchive><a href=a>x</a>", robots_header="nofollow")
    assert (found.directives, found.hrefs) == ({"nofollow", "noarchive"}, [])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", set()),
        ("noindex;nofollow", {"noindex", "nofollow"}),
        ("max-image-preview:none, noarchive", {"noarchive"}),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST, noindex", {"noindex"}),
        ("noindex, otherbot: nofollow", {"noindex"}),
        ("nofollowing", set()),
        ("x" * 100_000 + ", noindex", {"noindex"}),
    ],
)
def test_robots_directives(value, expected):
    assert robots_directives(value) == expected


# By whom a rule is meant for: ours are bot and sister.
ADDRESSED = [
    ("googlebot: noindex", set()),
    ("bot: noindex", {"noindex"}),
    ("BOT : NoIndex", {"noindex"}),
    ("sister: nofollow", {"nofollow"}),
    ("botany: noindex", set()),
    ("otherbot: noindex, bot: nofollow", {"nofollow"}),
    ("bot: nofollow, otherbot: noindex, noarchive", {"nofollow"}),
    ("noarchive, bot: nofollow, noindex", {"noarchive", "nofollow", "noindex"}),
    ("otherbot: unavailable_after: 25 Jun 2010 15:00:00 PST", set()),
    ("bot: unavailable_after: 25 Jun 2010 15:00:00 PST", {"noindex"}),
    ("max-snippet: 5, otherbot: none", set()),
]
OURS = {"agent_name": "Bot", "robots_agents": ("sister",)}


@pytest.mark.parametrize(("value", "expected"), ADDRESSED)
def test_directives_for_one_robot_count_only_for_our_robot(page, value, expected):
    assert page("x", value, **OURS).directives == expected


def test_each_header_begins_without_a_name(page):
    headers = [("x-robots-tag", "otherbot: noarchive"), ("x-robots-tag", "nofollow")]
    assert page("x", headers=headers).directives == {"nofollow"}


def test_directives_after_long_values_count(page):
    long = "x," * 100_000
    assert page(f"<meta name=robots content='{long}nofollow'>x", f"{long}noindex").directives == {
        "noindex", "nofollow",
    }  # fmt: skip


def test_headers_that_say_different_things_all_count(page):
    headers = [("x-robots-tag", "all"), ("x-robots-tag", "bot: noindex"), ("x-robots-tag", "noarchive")]  # fmt: skip
    assert page("x", headers=headers, **OURS).directives == {"noindex", "noarchive"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("googlebot", set()),
        ("otherbot", set()),
        ("bot", {"noindex"}),
        ("Sister", {"noindex"}),
        ("robots", {"noindex"}),
        ("nutbeam", set()),
    ],
)
def test_meta_elements_of_one_robot_count_if_it_is_ours(page, name, expected):
    found = page(f"<meta name={name} content=noindex><title>t</title>x", **OURS)
    assert found.directives == expected
    assert found.text == ("" if expected else "x")


def test_without_a_name_the_crawler_is_nutbeam(page):
    assert page("<meta name=NutBeam content=nofollow>x").directives == {"nofollow"}


def test_directives_of_several_meta_elements_are_united(page):
    found = page(
        "<meta name=robots content='index, noarchive'><meta name=bot content=nofollow>"
        "<meta name=sister content=follow><meta name=other content=noindex>x",
        **OURS,
    )
    assert found.directives == {"noarchive", "nofollow"}


# The formats that Google documents, each an hour before and after FETCHED.
DATES = [
    ("25 Jun 2025 {}:00:00 GMT", "RFC 822"),
    ("Wed, 25 Jun 25 {}:00:00 +0000", "RFC 822"),
    ("Wed, 25 Jun 2025 {}:00:00 UT", "RFC 822"),
    ("Wednesday, 25-Jun-25 {}:00:00 GMT", "RFC 850"),
    ("25-Jun-2025 {}:00:00 GMT", "RFC 850"),
    ("2025-06-25T{}:00:00Z", "ISO 8601"),
    ("2025-06-25T{}:00:00+00:00", "ISO 8601"),
    ("2025-06-25T{}:00", "ISO 8601"),
    ("2025-06-25 {}:00:00", "ISO 8601"),
    ("20250625T{}0000Z", "ISO 8601"),
]


@pytest.mark.parametrize("date", [date for date, _ in DATES])
def test_after_its_date_a_page_is_as_noindex(page, date):
    markup = "<title>t</title><meta name=robots content='{}'><a href=a>x</a>"
    before = page(markup.format(f"unavailable_after: {date.format(16)}, noarchive"))
    assert (before.title, before.text, before.directives) == ("t", "x", {"noarchive"})
    after = page(markup.format(f"unavailable_after: {date.format(14)}, noarchive"))
    assert (after.title, after.text, after.hrefs) == ("", "", ["a"])
    assert after.directives == {"noindex", "noarchive"}
    assert page("x", f"unavailable_after: {date.format(14)}").directives == {"noindex"}


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("25 Jun 2010 15:00:00 PST", "2010-06-25T23:00:00+00:00"),
        ("Sat, 1 Jan 2000 00:00:00 EST", "2000-01-01T05:00:00+00:00"),
        ("2020-09-21", "2020-09-21T00:00:00+00:00"),
        ("2020-09-21T10:00:00-0700", "2020-09-21T17:00:00+00:00"),
        ("25 Jun 2010", "2010-06-25T00:00:00+00:00"),
    ],
)
def test_dates(date, expected):
    assert parse_moment(date) == parse_moment(expected)


@pytest.mark.parametrize("date", ["", "soon", "32 Jun 2010", "2020-13-01", ":", "Wednesday", "0"])
def test_a_date_that_is_none_is_passed_over(page, date):
    found = page("x", f"unavailable_after: {date}, nofollow")
    assert "noindex" not in found.directives


def test_the_clock_is_that_of_the_fetch(page):
    rule = "unavailable_after: 2025-06-25"
    assert page("x", rule, fetch_time=FETCHED - 86_400_000).directives == set()
    assert page("x", rule, fetch_time=FETCHED).directives == {"noindex"}
    assert page("x", rule, fetch_time=None).directives == set()


def test_headers_count_for_documents_of_other_types():
    headers = [("x-robots-tag", "otherbot: none"), ("x-robots-tag", "bot: none")]
    source = Source(URL, b"see http://a.example.com/", "text/plain", headers, FETCHED)
    found = parse_document(source, ParseOptions(agent_name="bot"))
    assert (found.text, found.hrefs, found.dropped) == ("", [], {"page_nofollow": 1})
    assert (
        parse_document(source, ParseOptions(agent_name="third")).text == "see http://a.example.com/"
    )


@given(st.text(st.sampled_from("noindex unavailable_after:,;25JunZ-+T") | st.characters()))
def test_any_value_is_read(value):
    known = {"noindex", "nofollow", "noarchive"}
    assert robots_directives(value, {"bot"}, FETCHED) <= known
    assert robots_directives(f"unavailable_after:{value}", {"bot"}, FETCHED) <= known
