"""What rules of a robots.txt mean: as Protego has it, but where RFC 9309 says otherwise."""

import re

import pytest
from protego import Protego
from robots_texts import honest, honest_urls, made_up, made_up_urls
from short_form import first

from nutbeam.web.robots.match import Matcher, TooCostly
from nutbeam.web.robots.robots import RobotsRecord, RobotsRules, deciding_line
from nutbeam.web.robots.robots_text import decode_robots
from nutbeam.web.robots.rules import RobotsRule

TOKEN = "nutbot"


def rules_of(text, *agents):
    return RobotsRules(RobotsRecord(200, text, 0), agents or TOKEN)


def compare(text, urls):
    """Compares what is said of URLs with Protego; returns which verdicts there were."""
    ours = rules_of(text)
    assert ours.crawl_delay == Protego.parse(text).crawl_delay(TOKEN)
    # A crawl delay ends no group; for Protego it does.
    lines = r"(?i)(?<![^\r\n]) *(crawl-delay|request-rate|visit-time)[^\r\n]*"
    oracle = Protego.parse(re.sub(lines, "", text))
    verdicts = {url: ours.verdict(url) for url in urls}
    expected = {url: "allowed" if oracle.can_fetch(url, TOKEN) else "denied" for url in urls}
    assert verdicts == expected, text
    return list(verdicts.values())


@pytest.mark.parametrize("part", first(1, range(20)))
def test_verdicts_of_random_texts_agree_with_protego(part):
    verdicts = []
    for number in range(part * 400, part * 400 + 400):
        verdicts += compare(made_up(number), made_up_urls(number, 10))
    assert min(verdicts.count("allowed"), verdicts.count("denied")) > 400


@pytest.mark.parametrize("part", first(1, range(10)))
def test_verdicts_of_realistic_texts_agree_with_protego(part):
    verdicts = []
    for number in range(part * 100, part * 100 + 100):
        text = decode_robots(honest(number).encode())
        verdicts += compare(text, honest_urls(number))
        assert rules_of(text).sitemaps == tuple(dict.fromkeys(Protego.parse(text).sitemaps))
    assert min(verdicts.count("allowed"), verdicts.count("denied")) > 300


# Text, URL, and what RFC 9309 says of it; Protego 0.7 says the contrary. Why.
DIFFERENCES = [
    # 2.2.4: other records do not interfere with those that are defined, so they end no group.
    ("User-agent: nutbot\nNoindex: /x\nUser-agent: *\nDisallow: /a", "/a", "denied"),
    ("User-agent: nutbot\nClean-param: x\nUser-agent: *\nDisallow: /a", "/a", "denied"),
    ("User-agent: nutbot\nDisallow /b: c\nUser-agent: *\nDisallow: /a", "/a", "denied"),
    ("User-agent: nutbot\nCrawl-delay: 5\nUser-agent: *\nDisallow: /a", "/a", "denied"),
    # 2.2: lines end with CR, LF or both; a path may have all other characters that are no ASCII.
    ("User-agent: *\nDisallow: /a\u2028b", "/a", "allowed"),
    ("User-agent: *\nDisallow: /a\u0085b", "/a", "allowed"),
    # 2.2.1: names are compared as a whole; one that is only the beginning of ours is another robot.
    ("User-agent: *\nDisallow: /a\n\nUser-agent: nutb\nDisallow:", "/a", "denied"),
    ("User-agent: nutb*\nDisallow: /a", "/a", "allowed"),
    # 2.2.1: a name is a product token, so what follows the token is none of it.
    ("User-agent: nutbot/2.1\nDisallow: /a", "/a", "denied"),
    # 2.2.2: /robots.txt is allowed, other paths are not.
    ("User-agent: *\nDisallow: /", "/robots.txt;x", "denied"),
]


@pytest.mark.parametrize(("text", "path", "verdict"), DIFFERENCES)
def test_verdicts_differ_from_protego_in_listed_cases(text, path, verdict):
    url = f"http://a.example.com{path}"
    assert rules_of(text).verdict(url) == verdict
    assert Protego.parse(text).can_fetch(url, TOKEN) == (verdict == "denied")


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        # The tables of RFC 9309 2.2.2 and 2.2.3.
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz", True),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar", True),
        ("/foo/bar/\U00016ac0", "/foo/bar/%F0%96%AB%80", True),
        ("/foo/bar/%F0%96%AB%80", "/foo/bar/\U00016ac0", True),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-b.html", False),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/path/foo-%24", "/path/foo-", False),
        ("/allow/this/$", "/allow/this/x", False),
        # What stands between wildcards stands in that order, and nothing twice.
        ("/*ab*ba", "/xabay", False),
        ("/*ab*ba", "/xabxba", True),
        ("/a*a$", "/a", False),
        ("/a*a$", "/aa", True),
        ("/*.gif$", "/a.gif.gif", True),
        ("/*.gif$", "/a.gif?x", False),
        ("/****a***$", "/xax", True),
        ("*", "/", True),
        ("/a%2Fb", "/a/b", False),
        ("/a%2fb", "/a%2Fb", True),
        ("x", "/x", False),
    ],
)
@pytest.mark.parametrize("others", [0, 100])  # with an index, and without
def test_patterns(rule, path, matches, others):
    lines = [f"Disallow: /other{n}/*{n}?x$" for n in range(others)]
    text = "\n".join(["User-agent: *", *lines[:50], f"Disallow: {rule}", *lines[50:]])
    assert (rules_of(text).verdict(f"http://a{path}") == "denied") == matches
    line = deciding_line(text, f"http://a{path}", (TOKEN,))
    assert (line and line.number) == (2 + others // 2 if matches else None)


@pytest.mark.parametrize("others", [0, 100])
def test_the_longest_rule_decides_and_of_equally_long_ones_one_that_allows(others):
    more = "".join(f"\nDisallow: /x{n}*y" for n in range(others))
    text = f"User-agent: *\nDisallow: /a*\nAllow: /ab\nAllow: /a**c\nDisallow: /aa*c{more}"
    lines = {
        path: deciding_line(text, f"http://a{path}", (TOKEN,))
        for path in ("/a", "/ab", "/aac", "/b")
    }
    assert {path: line and line.number for path, line in lines.items()} == {
        "/a": 2, "/ab": 3, "/aac": 4, "/b": None
    }  # fmt: skip


@pytest.mark.parametrize("token", ["bot2", "360Spider", "a_b-c9"])
def test_names_with_digits(token):
    text = (
        "User-agent: bot2\nDisallow: /2\n\nUser-agent: 360spider/1.0\nDisallow: /360\n\n"
        "User-agent: A_B-C9 # we\nDisallow: /c9\n\nUser-agent: bot\nDisallow: /bot\n\n"
        "User-agent: *\nDisallow: /all\n"
    )
    denied = {path for path in ("2", "360", "c9", "bot", "all")
              if not rules_of(text, token).allows(f"http://a/{path}")}  # fmt: skip
    assert denied == {{"bot2": "2", "360Spider": "360", "a_b-c9": "c9"}[token]}
    # As one of several names, too.
    assert not rules_of(text, "bot", token).allows(f"http://a/{denied.pop()}")
    assert not rules_of(text, "bot", token).allows("http://a/bot")


@pytest.mark.parametrize(
    "value",
    [
        "NutBot/1.0 (what it is for; http://bot.example/)",
        *("nutbot/1.0 (what, why)", "nutbot Images", "nutbot;", "nutbot;q=1", "nutbot, Other"),
        *("Other; nutbot", "Other/1; nutbot/2 (x)"),
        *("Other, nutbot", "Other/2.0 (x), nutbot/1", "nutbot*", "*nutbot*", "nutbot.", "nutbot|x"),
        *('"nutbot"', "'nutbot'", "“nutbot”", "<nutbot>", "[nutbot]", ": nutbot", "= nutbot"),
        *("\u200bnutbot\u200b", "\xa0nutbot\xa0x", "nutboté", "nutbot日本", "*, nutbot"),
    ],
)
@pytest.mark.parametrize("field", ["User-agent", "user_agent", "User–agent", "User-Agents"])  # noqa: RUF001
def test_text_beside_an_agent_name_does_not_hide_it(field, value):
    rules = rules_of(f"{field}: {value}\nDisallow: /x\n\nUser-agent: *\nDisallow: /y")
    assert [rules.allows(f"http://a/{path}") for path in "xy"] == [False, True]


@pytest.mark.parametrize(
    "value", ["* (all robots)", "* all", "**", '"*"', "*.*", "*;", "*/*", "Other, *", "* nutbot"]
)
def test_an_asterisk_means_all_agents_with_any_text_beside_it(value):
    assert not rules_of(f"User-agent: {value}\nDisallow: /x").allows("http://a/x")
    own = f"User-agent: {value}\nDisallow: /x\n\nUser-agent: nutbot\nDisallow: /y"
    assert rules_of(own).allows("http://a/x")


@pytest.mark.parametrize(
    "value",
    ["n", "nutb", "nutb*", "nutbot2", "nutbot-images", "nutbot_x", "my nutbot", "é-nutbot", "énutbot", "",
     "Mozilla/5.0 (compatible; nutbot/1.0)", "(nutbot)", "2nutbot", "(a, nutbot, b)"],
)  # fmt: skip
def test_the_group_of_another_agent_neither_opens_nor_locks(value):
    opening = rules_of(f"User-agent: {value}\nDisallow:\n\nUser-agent: *\nDisallow: /x")
    locking = rules_of(f"User-agent: {value}\nDisallow: /")
    assert (opening.allows("http://a/x"), locking.allows("http://a/x")) == (False, True)


@pytest.mark.parametrize(
    "other",
    [
        *(
            "Crawl-delay: 5",
            "Request-rate: 1/5",
            "Sitemap: http://a/s.xml",
            "Noindex: /y",
            "Host: a",
        ),
        *(
            "Clean-param: s",
            "# a comment",
            "",
            "Content-Usage: train-ai=n",
            "Nothing that is known",
        ),
    ],
)
def test_only_lines_about_paths_end_a_group(other):
    one = f"User-agent: nutbot\n{other}\nUser-agent: b\nDisallow: /x\nUser-agent: c\nDisallow: /y"
    for agent in ("nutbot", "b"):
        assert [rules_of(one, agent).allows(f"http://a/{path}") for path in "xy"] == [False, True]
    two = f"User-agent: nutbot\nDisallow: /y\n{other}\nUser-agent: b\nDisallow: /x"
    assert [rules_of(two).allows(f"http://a/{path}") for path in "xy"] == [True, False]


@pytest.mark.parametrize(
    ("text", "delays"),
    [
        # A delay is for the agents right above it, also if the rules below are for all of them.
        ("User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x", (5, None, None)),
        ("User-agent: a\nUser-agent: b\nCrawl-delay: 5\nUser-agent: c\nCrawl-delay: 9", (5, 5, 9)),
        ("User-agent: *\nCrawl-delay: 5\n\nUser-agent: b\nDisallow: /x", (5, None, 5)),
        (
            "User-agent: a\nDisallow: /x\nCrawl-delay: 5\nUser-agent: b\nDisallow: /y",
            (5, None, None),
        ),
        ("User-agent: a\nSitemap: /s\nUser-agent: b\nCrawl-delay: 5", (5, 5, None)),
        ("Crawl-delay: 7\nUser-agent: a\nDisallow: /x", (None, None, None)),
    ],
)
def test_a_crawl_delay_is_for_the_agents_right_above_it(text, delays):
    assert tuple(rules_of(text, agent).crawl_delay for agent in "abc") == delays


@pytest.mark.parametrize(
    "line",
    [
        *("Disallow\uff1a /x", "Disallow\uff1a/x", "Disallow \ufe55/x", "Disallow\u2236 /x"),
        *("Disallow; /x", "Disallow= /x", "Disallowed: /x", "DISALLOWS: /x", "Disallow : /x"),
        *("Disallow /x", "Disallow\t/x", "  Disallow:/x", "\xa0Disallow:\xa0/x\xa0"),
        *(f"Disallow: /y{end}Disallow: /x" for end in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"),
        "# a comment\u2028Disallow: /x\u2028",
        "Disallow: http://host.example/x",
        "Disallow: HTTPS://Host.Example:8080/x*",
    ],
)
def test_lines_as_people_write_them(line):
    text = f"User-agent: *\n{line}\n"
    rules = RobotsRules(RobotsRecord(200, text, 0), TOKEN, host="host.example")
    assert [rules.allows(f"http://host.example/{path}") for path in "xz"] == [False, True]
    decided = deciding_line(text, "http://host.example/x", (TOKEN,))
    assert decided
    assert decided.text.endswith(("/x", "/x*"))


@pytest.mark.parametrize(
    "value",
    [
        *('"/x"', "'/x'", "x", "x/", "\\x\\", "./x", "//host.example/x", "http://other.example/x"),
        *("/a\u2028x", "host.example/x", "[/x]", "(/x)", "…/x"),
    ],
)
def test_a_path_that_begins_with_no_slash_or_asterisk_denies_nothing(value):
    rules = RobotsRules(
        RobotsRecord(200, f"User-agent: *\nDisallow: {value}", 0), TOKEN, host="host.example"
    )
    assert rules.allows("http://host.example/x/")


def test_a_whole_url_in_allow_opens_nothing():
    text = "User-agent: *\nDisallow: /\nAllow: http://host.example/x"
    rules = RobotsRules(RobotsRecord(200, text, 0), TOKEN, host="host.example")
    assert not rules.allows("http://host.example/x")


@pytest.mark.parametrize("number", first(30, range(600)))
def test_an_index_finds_the_same_rule_as_comparing_with_each_rule(number):
    text = made_up(number)
    patterns = [
        line.partition(":")[2].strip() for line in text.split("\n") if "allow:" in line.lower()
    ]
    rules = [RobotsRule(n % 3 == 0, pattern, n) for n, pattern in enumerate(patterns) if pattern]
    rules += [RobotsRule(n % 2 == 0, f"/{n:b}*{n:o}", n) for n in range(40)]
    whole, parts = Matcher(rules), [Matcher(rules[n : n + 30]) for n in range(0, len(rules), 30)]
    for path in ("/", "/101*5", "/11/7/", *(url[20:] for url in made_up_urls(number, 5))):
        found = whole.decide(path)
        ruled = [(n * 30 + each.rule, each) for n, part in enumerate(parts)
                 if (each := part.decide(path)).rule is not None]  # fmt: skip
        assert (found.rule is None) == (not ruled)
        if ruled:
            assert rules[found.rule].allow == found.allow
            assert found.rule in {rule for rule, _ in ruled}


def test_a_url_that_takes_too_many_steps_is_not_decided():
    matcher = Matcher([RobotsRule(False, "/*a*b", 1), RobotsRule(True, "/a", 2)])
    steps = matcher.decide("/xab").steps
    assert matcher.decide("/xab", steps).rule == 0
    with pytest.raises(TooCostly):
        matcher.decide("/xab", steps - 1)
