"""An index as files: written whole or not at all, replaced, and searched by a browser alone."""

import functools
import gzip
import http.server
import json
import random
import re
import threading

import pytest
from chromium import PROGRAM as BROWSER
from chromium import Browser
from crawling import nutbeam
from index_shards import commit_shards, page, write_shards

from nutbeam.pipelines.searching import static_export
from nutbeam.pipelines.searching.searched_table import SearchedTable
from nutbeam.policy.searching.search_query import parse_search

needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium: make browser")
EVIL = "<script>document.title='obeyed'</script><img src=x onerror=\"document.title='obeyed'\">"
WORDS = """
river stone valley mill bridge heron otter reed ferry island harbour lantern anchor basket candle desert
engine feather garden hammer jacket kettle ladder magnet needle orchard pepper quarry ribbon saddle
temple umbrella violin window yellow
"""
TOPICS = WORDS.split()


def made_pages():
    draw = random.Random(47)
    for number in range(120):
        title = " ".join(draw.sample(TOPICS, 2))
        text = " ".join(
            draw.choice([*TOPICS, "the", "of", "water"]) for _ in range(draw.randrange(20, 300))
        )
        yield page(
            f"http://a.com/{number}",
            title,
            text,
            boost=draw.choice([None, 1.0, 40.0]),
            tstamp=86_400_000,
        )


PAGES = [
    *made_pages(),
    page("http://a.com/evil", EVIL, f"quagga {EVIL}", url="javascript:alert('quagga')"),
    page(
        "http://docs.c.com/manual.pdf",
        "Manual",
        "How a dodo is kept",
        date=1_780_000_000_000,
        type=["application/pdf", "application", "pdf"],
    ),
    page(
        "http://c.com/dodo",
        "Dodo",
        "A dodo, kept well",
        type=["text/html", "text", "html"],
        tstamp=1_500_000_000_000,
    ),
    page("http://c.com/odd", "Odd", "A dodo of nowhere", lang="e n", type=['x/"y'], date=10**17),
    page("http://c.com/doudou", "Dodo", "Der Dodo und die Zeit, die nicht mehr ist", lang="de"),
    page("http://a.com/tokyo", "東京", "東京都の天気は晴れです", lang="ja"),
    page("http://a.com/books", "本", "これは図書(としょ)館です。", lang="ja"),
    page("http://a.com/kyoto", "京都", "京都の天気は雨です", lang="ja"),
    page("http://a.com/cafe", "Menú", "Una información del café", lang="es"),
    page("http://a.com/long", "Words apart", f"aardvark {'filler ' * 400} zebra", tstamp=0),
    page("http://b.com/numbat", "Small animals", "Small animals\n\nThe numbat eats termites."),
    page("http://a.com/near", "Words near", "an aardvark and a zebra", published="2020-02-29"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static")
    assert nutbeam("inject", folder / "table", "http://a.com/") == 0
    commit_shards(folder / "table", write_shards(folder / "table", PAGES), "first")
    return SearchedTable(str(folder / "table"), "main", str(folder / "cache"))


@pytest.fixture
def export(table, tmp_path, capsys):
    def run(folder=None, *words, code=0):
        target = tmp_path / "site" if folder is None else folder
        command = ("search", table.address, "--export", target, *words)
        assert nutbeam(*command, "--cache_folder", tmp_path / "cache") == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return run


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.long
def test_its_size_is_printed(export, tmp_path):
    out = export()
    written = files(tmp_path / "site")
    size = sum(map(len, written.values())) / 1e6
    assert re.fullmatch(
        rf"132 pages in \S+/site: {len(written)} files, {size:.1f} MB; "
        r"a first search for a word loads about \d+ kB\n",
        out,
    )


@pytest.mark.long
def test_the_same_index_gives_the_same_files(export, tmp_path):
    export(tmp_path / "one")
    export(tmp_path / "two")
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_an_earlier_export_is_replaced(export, tmp_path):
    export()
    about = json.loads((tmp_path / "site" / "about.json").read_text())
    (tmp_path / "site" / "data-0123456789abcdef").mkdir()
    (tmp_path / "site" / about["data"] / "words-99.bin").write_text("left over")
    export()
    folders = [path.name for path in (tmp_path / "site").iterdir() if path.is_dir()]
    assert folders == [about["data"]]
    assert not (tmp_path / "site" / about["data"] / "words-99.bin").exists()


@pytest.mark.long
def test_an_export_that_was_killed_is_done_again(table, export, tmp_path, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    for place in ("_shards", "export_page"):  # before and after the data has its name
        with monkeypatch.context() as patch:
            patch.setattr(static_export, place, kill)
            with pytest.raises(KeyboardInterrupt):
                static_export.export_index(table.newest(), tmp_path / "site", "Rivers")
        assert not (tmp_path / "site" / "about.json").exists()
    export()
    assert not [path for path in (tmp_path / "site").iterdir() if path.suffix == ".part"]


@pytest.mark.parametrize("about", [None, "{", '{"what": "other"}', "[]"])
def test_a_folder_with_other_files_is_left_alone(export, tmp_path, about):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("mine")
    if about:
        (tmp_path / "site" / "about.json").write_text(about)
    before = files(tmp_path / "site")
    error = export(code=2)
    assert "--export takes a new or an empty folder, or one with an export, got '" in error
    assert files(tmp_path / "site") == before


def test_a_file_in_the_place_of_the_folder_is_an_error(export, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "a file" in export(tmp_path / "file", code=2)
    assert "file/below: Not a directory" in export(tmp_path / "file" / "below", code=3)


def test_an_index_with_too_many_pages_is_refused(export, tmp_path, monkeypatch):
    monkeypatch.setattr(static_export, "MOST_PAGES", 100)
    assert "--export takes at most 100 pages, and the index has 132: serve it" in export(code=2)
    assert not (tmp_path / "site").exists()


def test_a_query_or_a_server_beside_it_is_refused(export):
    assert "--export takes no query and no --serve" in export(None, "pear", code=2)
    assert "--export takes no query and no --serve" in export(None, "--serve", code=2)


def test_a_word_has_the_scores_that_the_search_gives_it(table, export, tmp_path):
    export()
    about = json.loads((tmp_path / "site" / "about.json").read_text())
    data = tmp_path / "site" / about["data"]
    pages = [json.loads(gzip.decompress((data / f"page-{n}.bin").read_bytes())) for n in range(132)]
    for word in ("otter", "rivers", "information", "informacion"):
        hits = table.newest().search(parse_search(word), 200).hits
        shards = [json.loads(gzip.decompress(path.read_bytes())) for path in data.glob("words-*")]
        lists = [one["lists"][one["forms"][word][0]] for one in shards if word in one["forms"]]
        if not lists:
            assert word in ("rivers", "information")  # no page has it so
            continue
        ((gaps, scores),) = lists
        places = [sum(gaps[: at + 1]) for at in range(len(gaps))]
        found = {
            pages[at]["url"]: score / about["scale"]
            for at, score in zip(places, scores, strict=True)
        }
        assert found == pytest.approx({hit.url: hit.score for hit in hits}, abs=0.006)


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(table, tmp_path_factory):
    """Serves an export below a path, and opens it."""
    folder = tmp_path_factory.mktemp("served")
    below = folder / "docs" / "search"
    assert nutbeam("search", table.address, "--export", below, "--page_name", "Rivers",
                   "--cache_folder", folder / "cache") == 0  # fmt: skip
    handler = functools.partial(_Files, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        with Browser(folder / "profile") as browser:
            browser.start = f"http://127.0.0.1:{server.server_port}/docs/search/"
            yield browser
        server.shutdown()
        thread.join()


def look_up(site, query):
    """Returns (number of pages, URLs of the first ten) as the page of a query has them."""
    site.open(f"{site.start}?q={query}")
    ends = "/page|cannot/.test(document.querySelector('[role=status], [role=alert]')?.textContent)"
    site.wait_for(ends)
    return site.evaluate("document.querySelector('main').innerText")


def answer(site, query):
    site.open(site.start)
    script = f"import('./static_search.js').then((it) => it.answer({json.dumps(query)}))"
    script += ".then((it) => [it.total, it.texts.map((one) => one.url)])"
    return site.evaluate(script)


@pytest.mark.long
@needs_browser
def test_most_queries_have_the_first_result_of_the_server(site, table):
    draw, same, queries = random.Random(7), 0, []
    for number in (1, 2, 3):
        queries += [" ".join(draw.sample(TOPICS, number)) for _ in range(12)]
    for query in queries:
        results = table.newest().search(parse_search(query), 10)
        total, urls = answer(site, query)
        assert total == results.total, query
        same += urls[0] == results.hits[0].url
        assert urls[0] in [hit.url for hit in results.hits[:4]], query
    assert same >= 0.85 * len(queries)


@needs_browser
@pytest.mark.parametrize(
    ("query", "urls"),
    [
        ("aardvark zebra", ["near", "long"]),  # words near one another count more
        ('"aardvark and a zebra"', ["near"]),
        ("aardvark -near", ["long"]),
        ("aardvark site:com", ["near", "long"]),
        ("aardvark site:b.com", []),
        ("numbat -site:b.com", []),
        ("SITE:b.com", ["numbat"]),
        ("dodo site:c.com -site:docs.c.com", ["dodo", "doudou", "odd"]),
        ("dodo type:PDF", ["manual.pdf"]),
        ("filetype:pdf", ["manual.pdf"]),
        ("dodo -type:pdf lang:de", ["doudou"]),
        ("dodo after:2017 before:2018-01", ["dodo"]),
        ("zbera", ["near", "long"]),  # is corrected
        ('"zbera"', []),
        ("dodoo", ["dodo", "doudou", "odd", "manual.pdf"]),
        # Not a sure correction, but nothing else is found.
        ("dodu", ["dodo", "doudou", "odd", "manual.pdf"]),
        ("dodu zebra", ["near", "long"]),
        ('"zebra aardvark"', []),
        ("aardvarks", ["near", "long"]),  # another form, which no page has
        ("información", ["cafe"]),
        ("informacion", ["cafe"]),
        ("INFORMACIÓN", ["cafe"]),
        ("東京", ["tokyo"]),
        ("図書館", ["books"]),
        ("としょ", ["books"]),
        ("what is the aardvark", ["near", "long"]),  # common words are not required
        ("xyzzy", []),
        ("aardvark xyzzy", ["near", "long"]),  # where no page has enough words, one is enough
        ("constructor", []),
        ("", []),
        ('"', []),
        ("🦦", []),
    ],
)
def test_queries_find_pages_without_a_server(site, query, urls):
    assert [url.rpartition("/")[2] for url in answer(site, query)[1]] == urls


@needs_browser
def test_the_page_shows_results_and_obeys_no_title(site):
    site.requested.clear()
    text = look_up(site, "quagga")
    assert "1 page" in text
    assert "<script>document.title='obeyed'</script>" in text
    assert site.evaluate("document.title") == "quagga - search"
    assert site.evaluate("document.querySelectorAll('main :is(ol a, script, img)').length") == 0
    assert [url for url in site.requested if not url.startswith(site.start)] == []
    assert "published 2020-02-29" in look_up(site, "zebra")


@needs_browser
def test_pages_of_results_are_turned(site):
    assert re.search(r"11–20 of \d+ pages", look_up(site, "river&start=10"))  # noqa: RUF001
    site.evaluate(
        "[...document.querySelectorAll('nav a')].find((a) => a.textContent === 'Next').click()"
    )
    site.wait_for("/^21–/.test(document.querySelector('[role=status]')?.textContent)")  # noqa: RUF001
    assert re.search(r"of \d+ pages", look_up(site, "river&start=99999"))


@needs_browser
def test_operators_that_need_a_server_are_named(site):
    text = look_up(site, "river+inurl:a+after:yesterday")
    assert "not searched here: inurl:a after:yesterday" in text


@needs_browser
def test_a_misspelt_word_is_corrected_unless_it_is_quoted(site):
    text = look_up(site, "qaugga+-zebra")
    assert "no page has: qaugga; searched for: quagga -zebra" in text
    assert "1 page" in text
    site.evaluate("[...document.querySelectorAll('.notice a')].at(-1).click()")
    site.wait_for('/^"qaugga" -zebra/.test(document.title)')
    site.wait_for("/No page found/.test(document.querySelector('[role=status]')?.textContent)")
    assert "no page has: dodu; did you mean: dodo zebra" in look_up(site, "dodu+zebra")
    assert "no page has: xyzzy\n" in look_up(site, "xyzzy")


@needs_browser
def test_facets_count_and_narrow_the_pages(site):
    look_up(site, "dodo")
    site.evaluate("document.querySelector('details').open = true")
    facets = site.evaluate("document.querySelector('.facets').innerText")
    assert facets.partition("\n")[0] == "Narrow by host, type, language, year"
    for line in ("c.com 4", "docs.c.com 1", "pdf 1", "German 1", "English 2", "2026 1", "2017 1"):
        assert line in facets.split("\n")
    site.evaluate(
        "[...document.querySelectorAll('.facets a')].find((a) => a.text === '2017').click()"
    )
    site.wait_for("/^1 page$/.test(document.querySelector('[role=status]')?.textContent)")
    assert site.evaluate("document.querySelector('#query').value") == "dodo after:2017 before:2018"
    site.evaluate("document.querySelector('.facets [aria-current]').click()")
    site.wait_for("/^4 pages$/.test(document.querySelector('[role=status]')?.textContent)")


@needs_browser
def test_pages_are_sorted_by_date(site):
    look_up(site, "dodo")
    site.evaluate("[...document.querySelectorAll('nav a')].find((a) => a.text === 'Date').click()")
    site.wait_for("document.querySelector('[name=order]') && document.querySelector('ol')")
    urls = "[...document.querySelectorAll('.where span:first-child')].map((one) => one.textContent)"
    assert site.evaluate(urls) == [
        f"http://{url}"
        for url in ("c.com/odd", "docs.c.com/manual.pdf", "c.com/dodo", "c.com/doudou")
    ]


@needs_browser
def test_a_snippet_does_not_repeat_the_title(site):
    text = look_up(site, "numbat")
    assert text.count("Small animals") == 1
    assert "The numbat eats termites." in text


@needs_browser
def test_words_are_completed_from_the_files(site):
    site.open(site.start)
    site.wait_for("document.getElementById('query').getAttribute('role') === 'combobox'")
    site.evaluate("document.getElementById('query').focus()")
    site.type("river lan")
    site.wait_for("document.querySelector('#completions li')")
    assert site.evaluate("document.querySelector('#completions li').textContent") == "river lantern"


@needs_browser
@pytest.mark.parametrize("query", ["dodo", "zbera", ""])
def test_the_exported_page_shuts_nobody_out(site, query):
    if query:
        look_up(site, query)
    else:
        site.open(site.start)
    assert site.faults() == []


@needs_browser
def test_a_missing_file_is_an_alert_in_words(site):
    site.open(f"{site.start}about.json")
    name = json.loads(site.evaluate("document.body.innerText"))["data"]
    site.send("Network.setBlockedURLs", urls=[f"*{name}*"])
    try:
        assert "The index cannot be read" in look_up(site, "lantern")
    finally:
        site.send("Network.setBlockedURLs", urls=[])
