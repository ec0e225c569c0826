"""filterchecker, normalizerchecker, robotsparser and parsechecker, as typed."""

import gzip
import io
import json
import os

import polars as pl
import pytest
from robots_texts import ATTACKS, MOST
from web_servers import reply, serve

from nutbeam.pipelines.command_line.cli import main
from nutbeam.web.rules.url_rules import UrlRules


@pytest.fixture
def typed(capsys, monkeypatch):
    """Runs a command in this process; returns its exit code, and what it printed and said."""

    def run(*words, stdin=None):
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = main(list(map(str, words)))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def records(printed):
    return [json.loads(line) for line in printed.splitlines()]


def test_filterchecker(typed):
    urls = ["http://foo.com/", "http://foo.com/a.gif"]
    code, printed, said = typed("filterchecker", *urls)
    assert code == 0
    accepted, denied = (line.split("\t") for line in printed.splitlines())
    assert accepted == ["+http://foo.com/", "regex-urlfilter.txt:27: +."]
    assert denied[0] == "-http://foo.com/a.gif"
    assert denied[1].startswith("regex-urlfilter.txt:20: -")
    assert said == "filters: built-in regex-urlfilter.txt\n"
    _, printed, _ = typed("filterchecker", "--format", "json", stdin="\n".join(urls))
    taken, refused = records(printed)
    assert taken == {
        "url": urls[0], "accepted": True, "reason": None, "by": "regex-urlfilter.txt:27", "rule": "+.",
        "file": "built-in regex-urlfilter.txt",
    }  # fmt: skip
    assert (refused["accepted"], refused["reason"]) == (False, "filtered")
    assert [r["accepted"] for r in (taken, refused)] == [
        reason is None for reason in UrlRules().admit(pl.Series(urls))["reason"]
    ]


def test_filterchecker_of_one_filter(typed, tmp_path):
    (tmp_path / "suffix-urlfilter.txt").write_text("+I\n.html\n")
    (tmp_path / "db-ignore-external-exemptions.txt").write_text("+(?i)[.]jpg$\n")
    folder = ("--url_rules_dir", tmp_path)
    code, printed, said = typed(
        "filterchecker", "http://a/x.HTML", "--filter_name", "suffix", *folder
    )
    assert (code, printed, said) == (
        0,
        "-http://a/x.HTML\tsuffix-urlfilter.txt:2: .html\n",
        f"filters: {tmp_path}/suffix-urlfilter.txt\n",
    )
    words = ("filterchecker", "http://a/x.jpg", "http://a/", "--filter_name", "ignoreexempt")
    assert [line.split("\t")[0] for line in typed(*words, *folder)[1].splitlines()] == [
        "+http://a/x.jpg", "-http://a/",
    ]  # fmt: skip
    assert typed("filterchecker", "--no_filter", stdin="x")[1:] == ("+x\n", "filters: none\n")


def test_filterchecker_names_the_pattern_that_decides(typed):
    urls = [f"http://a.com/{name}" for name in ("docs/", "docs/old", "docs/a.gif", "blog/")]
    words = ("--include", "/docs/", "--exclude", "old$", "--exclude", "blog", "--format", "json")
    code, printed, said = typed("filterchecker", *urls, *words)
    assert code == 0
    assert said == "filters: --exclude, built-in regex-urlfilter.txt, --include\n"
    assert [(r["reason"], r["by"], r["rule"], r["file"]) for r in records(printed)] == [
        (None, "--include:1", "+/docs/", None),
        ("excluded", "--exclude:1", "-old$", None),
        ("filtered", "regex-urlfilter.txt:20", records(printed)[2]["rule"],
         "built-in regex-urlfilter.txt"),
        ("excluded", "--exclude:2", "-blog", None),
    ]  # fmt: skip
    alone = ("--filter_name", "regex", "--include", "/none/")
    assert typed("filterchecker", urls[0], *alone)[1].startswith(f"+{urls[0]}\tregex-")


def test_filterchecker_names_the_rule_files_and_the_lines_that_never_match(typed, tmp_path, caplog):
    (tmp_path / "regex-urlfilter.txt").write_text("-нэб\n+.\n", "utf-8")
    (tmp_path / "fast-urlfilter.txt").write_text("")
    words = (
        "--url_rules_dir",
        tmp_path,
        "--url_filters",
        "fast,regex",
        "--fast_url_max_length",
        "14",
    )
    _, printed, said = typed(
        "filterchecker", "http://a.com/", "http://a.com/xyz", *words, "--format", "json"
    )
    taken, refused = records(printed)
    assert (taken["by"], taken["file"]) == (
        "regex-urlfilter.txt:2",
        f"{tmp_path}/regex-urlfilter.txt",
    )
    assert (refused["by"], refused["file"]) == (
        "fast-urlfilter.txt",
        f"{tmp_path}/fast-urlfilter.txt",
    )
    assert refused["rule"] == "refuses urls longer than fast_url_max_length, 14 characters"
    assert f"filters: {tmp_path}/fast-urlfilter.txt, {tmp_path}/regex-urlfilter.txt\n" in said
    (warning,) = caplog.messages
    assert warning.startswith("regex-urlfilter.txt:1: never found: urls are ascii")
    assert typed("normalizerchecker", "http://a/", *words)[2].endswith(
        "normalizers: basic, regex (built-in regex-normalize.xml)\n"
    )


def test_normalizerchecker(typed):
    found = typed("normalizerchecker", "-", stdin=" HTTP://Foo.com:80/?sid=1&b=2#x \nfoo\n")
    assert found == (
        0,
        "http://foo.com/?b=2\n\n",
        "normalizers: basic, regex (built-in regex-normalize.xml)\nrefused, malformed: 'foo'\n",
    )
    _, printed, _ = typed("normalizerchecker", "--format", "json", stdin="HTTP://a/?&x\nfoo")
    good, bad = records(printed)
    assert good["normalized"] == "http://a/?x"
    assert [step["url"] for step in good["steps"]] == ["http://a/?&x", "http://a/?x"]
    assert bad == {"url": "foo", "normalized": None, "reason": "malformed", "steps": []}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("javascript:alert(1)", "scheme_not_allowed"),
        ("mailto:a@b.org", "scheme_not_allowed"),
        ("data:,x", "scheme_not_allowed"),
        ("http://moved.org/", "scheme_not_allowed"),  # by a rule
        ("ftp://foo.com/", None),
        ("http://foo.com/123456", "url_too_long"),
    ],
)
def test_normalizerchecker_gives_the_reason_for_urls_that_a_crawl_refuses(
    typed, tmp_path, url, reason
):
    (tmp_path / "protocols.txt").write_text("moved.org https\n")
    words = ("normalizerchecker", url, "--url_rules_dir", tmp_path, "--url_normalizers",
             "basic,protocol", "--schemes", "http,ftp", "--max_url_length", "20")  # fmt: skip
    assert typed(*words)[:2] == (0, f"{'' if reason else url}\n")
    (record,) = records(typed(*words, "--format", "json")[1])
    assert (record["normalized"], record["reason"]) == (None if reason else url, reason)


@pytest.mark.parametrize("command", ["normalizerchecker", "filterchecker"])
def test_a_file_of_urls_is_read(typed, tmp_path, command):
    file = tmp_path / "urls.txt"
    file.write_bytes("http://a.com/1\r\n\r\nhttp://a.com/2".encode("utf-16"))
    code, printed, _ = typed(command, file, "http://a.com/3")
    found = [line.lstrip("+").partition("\t")[0] for line in printed.splitlines()]
    assert (code, found) == (0, [f"http://a.com/{n}" for n in (1, 2, 3)])
    assert typed(command, tmp_path)[1].count("http://a.com/") == 2  # of the folder's file


LISTED = {
    "http://a.com/1": "http://a.com/1",
    "# a comment": None,
    "http://a.com/x y # two words": "write a tab before name=value, and %20",
    "http://a.com/2  # a comment": "http://a.com/2",
    "http://a.com/3\tnutch.score=2": "http://a.com/3",
    "- http://b.com/": "write http://b.com/",
    "1. http://c.com/": "write http://c.com/",
    '"http://d.com/"': "write http://d.com/",
    "<http://e.com/>": "write http://e.com/",
    "[a page](http://f.com/)": "write http://f.com/",
    "url: http://g.com/": "write http://g.com/",
    "https//h.com/": "write https://h.com/",
    "http:i.com/": "http://i.com/",
    "www.example.com": "write https://www.example.com",
}


@pytest.mark.parametrize("how", ["plain", "packed", "stdin"])
def test_one_reader_reads_all_lists_of_urls(typed, tmp_path, caplog, how):
    text = "\n".join(LISTED)
    file = tmp_path / "urls.txt"
    file.write_bytes(gzip.compress(text.encode()) if how == "packed" else text.encode())
    expected = [url for url in LISTED.values() if url and url.startswith("http")]
    stdin = text if how == "stdin" else None
    words = [] if how == "stdin" else [file]
    code, printed, said = typed("normalizerchecker", *words, stdin=stdin)
    assert (code, printed.split()) == (0, expected)
    for hint in set(LISTED.values()) - {*expected, None}:
        assert hint in said + caplog.text
    caplog.clear()
    assert typed("inject", tmp_path / "table", file)[0] == 0
    for hint in set(LISTED.values()) - {*expected, None}:
        assert hint in caplog.text or caplog.text.count("WARNING") == 10  # it shows ten lines


COMMANDS = ("normalizerchecker", "filterchecker", "parsechecker", "indexchecker", "explain T",
            "robotsparser robots.txt", "inject T", "crawl T")  # fmt: skip


@pytest.mark.few(6)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("nosuch.txt", "No such file or directory; write https://nosuch.txt if it is a URL"),
        ("urls", "No such file or directory; a URL begins with http:// or https://"),
        ("http:/x.com", "write http://x.com if it is a URL"),
        ("example.com", "no seed files in folder 'example.com'; write https://example.com if"),
        ("pipe", "it is no regular file: give - to read standard input"),
        ("program", "binary, expected lines of text"),
    ],
)
def test_a_word_that_is_neither_url_nor_list_is_refused(
    typed, tmp_path, monkeypatch, command, word, said
):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "robots.txt").write_text("")
    (tmp_path / "program").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "example.com").mkdir()
    if command == "explain T":
        assert typed("inject", "T", "http://a.com/")[0] == 0
    requests = command.startswith(("parse", "index", "robots", "crawl"))
    agent = ("--agent_name", "bot", "--agent_url", "http://bot.example/") if requests else ()
    code, printed, error = typed(*command.split(), word, *agent)
    assert (code, printed) == (2, "")
    assert said in error


def test_normalizerchecker_names_the_reason_of_a_refusal(typed):
    _, printed, said = typed("normalizerchecker", stdin="example.com\njavascript:x")
    assert printed == "\n\n"
    assert said.splitlines()[1:] == [
        "refused, malformed: 'example.com'; write https://example.com",
        "refused, scheme_not_allowed: 'javascript:x'",
    ]


def test_normalizerchecker_shows_the_steps_of_a_loop(typed, tmp_path):
    (tmp_path / "host-urlnormalizer.txt").write_text("a.com b.com\nb.com a.com\n")
    words = ("--url_rules_dir", tmp_path, "--url_normalizers", "basic,host")
    found = typed("normalizerchecker", "http://a.com/", *words, "--format", "json")
    (record,) = records(found[1])
    steps = [step["url"] for step in record["steps"]]
    assert (record["reason"], steps[:2], len(steps)) == (
        "normalizer_loop", ["http://b.com/", "http://a.com/"], 5
    )  # fmt: skip


def test_normalizerchecker_of_one_normalizer_and_of_a_scope(typed):
    one = typed("normalizerchecker", "http://A/?c&b", "--normalizer", "querystring")
    assert one[1:] == ("http://A/?b&c\n", "normalizers: querystring\n")
    words = (
        "normalizerchecker",
        "http://a/?_escaped_fragment_=b",
        "--url_normalizers",
        "ajax,basic",
    )
    assert typed(*words, "--url_scope", "indexer")[1] == "http://a/#!b\n"
    assert typed(*words, "--url_scope", "inject")[1] == "http://a/?_escaped_fragment_=b\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("filterchecker", "x", "--filter_name", "gif"), "--filter_name must be one of regex, "),
        (
            ("filterchecker", "x", "--filter_name", "fast"),
            "with fast-urlfilter.txt, which fast needs",
        ),
        (("filterchecker", "x", "--url_filter_file", "/no"), "must be readable, got '/no'"),
        (
            ("filterchecker", "x", "--url_rules_dir", "/no"),
            "must be a folder that can be read, got '/no'",
        ),
        (
            ("inject", "/no/table", "http://a/", "--url_rules_dir", "/no/such"),
            "must be a folder that can be read, got '/no/such'",
        ),
        (("normalizerchecker", "x", "--url_scope", "moon"), "--url_scope must be one of default"),
        (("normalizerchecker", "x", "--url_normalizers_in", "inject"), "--url_normalizers_in"),
        (("robotsparser", "/no/file", "x"), "there must be a file or a url, got '/no/file'"),
        (("robotsparser", "http://example.com/"), "add --agent_name NAME"),
        (("parsechecker", "http://example.com/"), "add --agent_name NAME"),
        (("parsechecker", "x", "--force_as", "html"), "--force_as"),
    ],
)
def test_bad_usage(typed, words, message):
    code, printed, said = typed(*words)
    assert (code, printed) == (2, "")
    assert message in said
    assert said.count("\n") == 1


ROBOTS = (
    "User-agent: bot\nDisallow: /x\nCrawl-delay: 0.5\n\nUser-agent: other\nDisallow: /y\n\n"
    "User-agent: *\nDisallow: /\n\nSitemap: http://a.com/map.xml\n"
)


def test_robotsparser_of_files(typed, tmp_path):
    robots, urls = tmp_path / "robots.txt", tmp_path / "urls.txt"
    robots.write_text(ROBOTS)
    urls.write_text("http://a.com/x\n\nhttp://a.com/y\n")
    code, printed, said = typed("robotsparser", robots, urls, "--agent_name", "bot")
    assert (code, printed) == (
        0, "not allowed:\thttp://a.com/x\tline 2: Disallow: /x\nallowed:\thttp://a.com/y\n",
    )  # fmt: skip
    assert said == "robots.txt: rules, crawl delay 0.5 s, 1 sitemaps\n"
    both = ("--agent_name", "bot", "--robots_agents", "other")
    assert typed("robotsparser", robots, urls, *both)[1].count("not allowed:") == 2
    _, printed, _ = typed(
        "robotsparser", robots, "-", "--robots_allowlist", "a.com", "--format", "json",
        stdin="http://www.a.com/x\nhttp://b.com/x\n",
    )  # fmt: skip
    assert json.loads(printed) == {
        "state": "rules", "status": 200, "error": None, "crawl_delay": None,
        "odd_delay": None, "sitemaps": ["http://a.com/map.xml"],
        "urls": [{"url": "http://www.a.com/x", "verdict": "allowlisted", "line": None, "rule": None},
                 {"url": "http://b.com/x", "verdict": "not allowed", "line": 9,
                  "rule": "Disallow: /"}],
    }  # fmt: skip
    odd = tmp_path / "odd.txt"
    odd.write_bytes("\ufeffUser-agent: *\r\nCrawl-delay: 1_0\r\nDisallow: /x".encode("utf-16-le"))
    code, printed, said = typed("robotsparser", odd, urls, "--agent_name", "bot")
    assert printed.startswith("not allowed:\thttp://a.com/x\tline 3: Disallow: /x\n")
    assert said == (
        "robots.txt: rules, its crawl delay '1_0' is no time, so it is not obeyed, 0 sitemaps\n"
    )
    urls.write_text(f"#c\nfoo\njavascript:/x\n{'x' * 5000}\nhttp://a.com/x\nhttp:\n")
    code, printed, _ = typed("robotsparser", robots, urls, "http://a.com/x", "--agent_name", "bot")
    assert code == 0  # one bad URL costs no other
    lines = [line.partition("\t") for line in printed.splitlines()]
    assert [(said, url[:12]) for said, _, url in lines] == [
        ("no url:", "foo"), ("no url:", "javascript:/"), ("no url:", "x" * 12),
        ("not allowed:", "http://a.com"), ("no url:", "http:"), ("not allowed:", "http://a.com"),
    ]  # fmt: skip
    (tmp_path / "binary").write_bytes(b"\xff\0")
    # Before any answer.
    assert typed("robotsparser", robots, "http://a.com/", tmp_path / "binary")[:2] == (2, "")


ODD = "http://a.com/\x0bb\x1c\x85\x1b[2J\u2028c\u202ed"
SHOWN = "http://a.com/\\x0bb\\x1c\\u0085\\x1b[2J\\u2028c\\u202ed"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("filterchecker",), f"+{SHOWN}\tregex-urlfilter.txt:27: +.\n"),
        (("normalizerchecker", "--normalizer", "querystring"), f"{SHOWN}\n"),
        (("robotsparser", "robots.txt"), f"not allowed:\t{SHOWN}\tline 9: Disallow: /\n"),
    ],
)
def test_a_line_is_one_url_and_its_control_characters_are_shown(
    typed, tmp_path, monkeypatch, caplog, words, answer
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robots.txt").write_text(ROBOTS)
    (tmp_path / "urls.txt").write_text(f"\ufeff{ODD}\r\n\r\n", "utf-8")
    assert typed(*words, ODD)[:2] == (0, answer)
    # In a list it is a line with blanks, as for inject.
    for found in (typed(*words, stdin=f"{ODD}\n"), typed(*words, "urls.txt")):
        assert found[:2] == (0, "")
        assert SHOWN.partition("\\")[0] in caplog.text
    record = json.loads(typed(*words, ODD, "--format", "json")[1])
    (urls,) = record.get("urls", [record])
    assert urls["url"] == ODD


PAGE = (
    "<html lang=en><title>A page</title><meta name=description content='of words'>"
    "<body>Text here<a href=/b#x>more</a><a href='http://far.com/'>far</a></body>"
)


def answer(path, connection):
    bodies = {"/robots.txt": ROBOTS, "/": PAGE, "/data": PAGE, "/gone": ""}
    if path == "/moved":
        return b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"
    status = "404 Not Found" if path not in bodies or path == "/gone" else "200 OK"
    kind = "application/x-thing" if path == "/data" else "text/html"
    body = bodies.get(path, "")
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def test_robotsparser_names_urls_that_are_too_costly(typed, tmp_path):
    make, path = ATTACKS["permutations"]
    (tmp_path / "robots.txt").write_text(make(MOST))
    urls = (f"http://a.com{path}", "http://a.com/zz")
    _, printed, _ = typed("robotsparser", tmp_path / "robots.txt", *urls)
    assert printed == f"too costly:\t{urls[0]}\nallowed:\t{urls[1]}\n"


@pytest.mark.long
def test_robotsparser_and_parsechecker_of_a_server(typed):
    with serve(answer) as server:
        there = ("--connect_to", f"a.com:80:127.0.0.1:{server.port}", "--agent_name", "bot")
        fast = (*there, "--server_delay", "0", "--min_crawl_delay", "0", "--max_crawl_delay", "9")
        code, printed, _ = typed("robotsparser", "http://a.com/some/page", "http://a.com/x", *there)
        assert (code, printed) == (0, "not allowed:\thttp://a.com/x\tline 2: Disallow: /x\n")

        code, printed, said = typed("parsechecker", "HTTP://a.com/#z", *fast, "--format", "json")
        assert said == ""
        (record,) = records(printed)
        assert code == 0
        assert (record["url"], record["fetch"]["url"]) == ("HTTP://a.com/#z", "http://a.com/")
        assert record["parse"]["title"] == "A page"
        assert record["parse"]["metadata"] == {"description": "of words"}
        assert [link["url"] for link in record["parse"]["links"]] == ["http://a.com/b"]
        assert record["parse"]["dropped"] == {"out_of_scope": 1}
        words = ("--content_limit", "-1", "--parser_memory", "3GiB")
        lines = typed("parsechecker", "http://a.com/", *fast, *words)[1].splitlines()
        assert "dropped: out_of_scope 1" in lines

        code, printed, _ = typed("parsechecker", "http://a.com/moved", "http://a.com/gone",
                                 "http://a.com/x", "foo:", *fast, "--format", "json")  # fmt: skip
        assert code == 1
        assert [r["error"]["reason"] for r in records(printed)] == [
            "redirected", "http_404", "robots_denied", "scheme_not_allowed"
        ]  # fmt: skip

        words = ("parsechecker", "http://a.com/moved", "http://a.com/data", "--scope", "any")
        code, printed, _ = typed(*words, *fast, "--follow_redirects", "--dump_text", "--force_as",
                                 "text/html", "--all_normalizers")  # fmt: skip
        assert code == 0
        for line in ("redirect from: http://a.com/moved", "title: A page", "outlinks: 2",
                     "  http://far.com/ far", "language: en"):  # fmt: skip
            assert line in printed.splitlines()
        assert printed.count("Text here") == 2


@pytest.mark.parametrize(("words", "title"), [((), ""), (("--http_cookies",), "welcome")])
def test_parsechecker_sends_back_the_cookies_of_redirects(typed, words, title):
    def answer_with_wall(path, connection):
        if path == "/set":
            return reply(b"", "302 Found", "Location: /", "Set-Cookie: seen=1; Path=/")
        if path == "/" and "seen=1" not in server.current.head:
            return reply(b"", "302 Found", "Location: /set")
        return reply(b"<title>welcome</title>")

    with serve(answer_with_wall) as server:
        code, printed, _ = typed(
            "parsechecker", "http://a.com/", "--follow_redirects", "--server_delay", "0", "--agent_name",
            "bot", "--connect_to", f"a.com:80:127.0.0.1:{server.port}", "--format", "json", *words,
        )  # fmt: skip
    (record,) = records(printed)
    assert (code, record.get("parse", {}).get("title", "")) == (0 if title else 1, title)
    assert server.paths.count("/robots.txt") == 1
