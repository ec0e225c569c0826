"""Crawls with --include and --exclude: which URLs are requested, whatever leads to them."""

import json
from collections import Counter

import pytest
from crawling import manifests_of, nutbeam
from web_servers import connect_to, reply, serve

SITE = "http://site.example.com"
LINKS = (
    "/docs/",
    "/docs/old",
    "/docs/moved",
    "/docs/secret",
    "/docs/photo.jpg",
    "/blog/",
    "/about",
)
MOVED = {"/": "/en/", "/docs/old": "/blog/old", "/docs/moved": "/docs/secret/2"}
# The seed, its redirect, and links that match; neither images nor what is excluded.
WANTED = {"/", "/en/", "/docs/", "/docs/old", "/docs/moved"}
PATTERNS = ("--include", "/docs/", "--include", "/manual/", "--exclude", "secret")
ROUNDS = ("--rounds", "-1")


def answer(path, head):
    if path in MOVED:
        return reply(b"", "302 Found", f"Location: {MOVED[path]}")
    page = "".join(f"<a href={link}>x</a>" for link in LINKS if path == "/en/")
    return reply(b"<title>x</title>" + page.encode(), "200 OK", "Content-Type: text/html")


@pytest.fixture
def site():
    with serve(answer) as server:
        yield server


def reach(site):
    return ["--connect_to", *connect_to(site.port), "--server_delay", "0"]


def asked(site):
    return {path for path, *_ in site.requests} - {"/robots.txt"}


def dropped(table):
    counts = Counter()
    for manifest in manifests_of(table):
        counts.update(manifest.counts)
    return {name.partition("/")[2]: n for name, n in counts.items() if name.startswith("dropped/")}


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--redirect_max", "3"),
        ("--follow_outlinks_depth", "3", "--redirect_max", "3"),
        ("--parse_while_fetching", "false"),
    ],
)
def test_links_and_redirects_need_a_match_but_seeds_do_not(site, tmp_path, words):
    table = tmp_path / "table"
    words = (*PATTERNS, *words, *reach(site), *ROUNDS)
    assert nutbeam("crawl", table, f"{SITE}/", *words) == 0
    assert asked(site) == WANTED
    reasons = dropped(table)
    assert (reasons["excluded"], reasons["filtered"], reasons["not_included"]) == (1, 1, 2)
    assert (reasons["redirect_excluded"], reasons["redirect_not_included"]) == (1, 1)


@pytest.mark.long
def test_a_file_of_options_has_patterns_with_commas(site, tmp_path, monkeypatch):
    table = tmp_path / "table"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nutbeam.toml").write_text(
        "include = ['/(docs|blog){1,2}/', 'about']\nexclude = '/[a-z]{5,6}$ secret'\n"
    )
    assert nutbeam("crawl", table, f"{SITE}/", *reach(site), *ROUNDS) == 0
    assert asked(site) == {"/", "/en/", "/docs/", "/docs/old", "/blog/", "/blog/old"}


@pytest.mark.long
def test_without_rule_files_the_patterns_alone_decide(site, tmp_path):
    words = ("--include", "/docs/[a-z.]+$", "--exclude", "o[lv]", "--no_filter")
    assert nutbeam("crawl", tmp_path / "table", f"{SITE}/", *words, *reach(site), *ROUNDS) == 0
    assert asked(site) == {"/", "/en/", "/docs/secret", "/docs/photo.jpg"}


def test_a_seed_needs_no_match_and_may_be_excluded(tmp_path, caplog):
    table = tmp_path / "table"
    seeds = (f"{SITE}/about", f"{SITE}/docs/secret")
    assert nutbeam("inject", table, *seeds, *PATTERNS, "--count_by_rule") == 0
    (manifest,) = manifests_of(table)
    counts = manifest.counts
    assert (counts["added"], counts["dropped/excluded"], counts["excluded/--exclude:1"]) == (
        1,
        1,
        1,
    )
    assert f"excluded: '{SITE}/docs/secret'" in caplog.text


@pytest.mark.long
def test_the_summary_names_the_pattern(site, tmp_path, capsys):
    words = (*PATTERNS, "--count_by_rule", "--format", "json", *reach(site), *ROUNDS)
    assert nutbeam("crawl", tmp_path / "table", f"{SITE}/", *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["refused_by"]["excluded/--exclude:1"] == 2
    assert found["refused_by"]["not_included/--include"] == 3
    assert found["dropped"]["not_included"] == 2


@pytest.mark.parametrize("flag", ["--include", "--exclude"])
def test_a_pattern_that_does_not_compile_is_one_line(tmp_path, capsys, flag):
    assert nutbeam("crawl", tmp_path / "table", f"{SITE}/", flag, "a", flag, "*/docs/*") == 2
    assert capsys.readouterr().err == (
        f"nutbeam crawl: {flag} must be a regular expression that is found in URLs, "
        "got '*/docs/*': * has nothing to repeat\n"
    )
    assert not (tmp_path / "table").exists()
