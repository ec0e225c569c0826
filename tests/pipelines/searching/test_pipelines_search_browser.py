"""The search page in a real browser: sizes, colours, keys, completion; hostile titles do nothing."""

import subprocess
import threading

import pytest
from chromium import PROGRAM as BROWSER
from chromium import browser_of_module
from crawling import nutbeam
from index_shards import commit_shards, page, write_shards

from nutbeam.pipelines.base.served_address import ServedAddress
from nutbeam.pipelines.searching.search_serving import SearchServer
from nutbeam.pipelines.searching.searched_table import SearchedTable

Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium: make browser")
DARK = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")
EVIL = "<script>document.title='obeyed'</script><img src=x onerror=\"document.title='obeyed'\">"
PAGES = [
    page("http://a.com/" + "long-" * 60, "W" * 300, "river " + "x" * 500, boost=100.0),
    page("http://a.com/2", EVIL, "river " + EVIL),
    page("http://a.com/3", "東京", "東京都の天気は晴れです river", lang="ja"),
    *(
        page(
            f"http://b.com/{n}",
            f"Valleys {n}",
            "a valley and its mill",
            type=["text/html"],
            tstamp=n * 86_400_000 * 300,
        )
        for n in range(1, 30)
    ),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    assert nutbeam("inject", folder / "table", "http://a.com/") == 0
    commit_shards(folder / "table", write_shards(folder / "table", PAGES), "first")
    searched = SearchedTable(str(folder / "table"), "main", str(folder / "cache"))
    with SearchServer(searched, ServedAddress(), 10) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.port}/?q=river"
        server.shutdown()
        thread.join()


def browse(tmp_path, *words):
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *(f"--user-data-dir={tmp_path / 'profile'}", *words),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_fits_and_has_the_colours_of_the_system(address, tmp_path, width, dark):
    picture = tmp_path / "page.png"
    size = f"--window-size={width},900"
    browse(tmp_path, size, *(DARK if dark else ()), f"--screenshot={picture}", address)
    image = Image.open(picture).convert("L")
    assert image.size == (width, 900)
    paper = image.getpixel((0, 0))
    assert paper < 60 if dark else paper > 200
    for edge in ((0, 0, 8, 900), (width - 8, 0, width, 900)):  # nothing is cut off at the sides
        assert image.crop(edge).getextrema() == (paper, paper)
    low, high = image.getextrema()
    assert high - low > 150  # there is text, and it can be read


def test_scripts_in_titles_do_not_run(address, tmp_path):
    dom = browse(tmp_path, "--dump-dom", address)
    assert "<title>river - search</title>" in dom
    assert "&lt;script&gt;document.title='obeyed'&lt;/script&gt;" in dom
    assert dom.count("<script") == 1  # that of the page
    assert "<img" not in dom


browser = browser_of_module()


@pytest.fixture
def page_of(browser, address):
    """Opens the page of a query with the focus in the query."""

    def open_page(query, width=1400, *, dark=False):
        browser.resize(width, dark=dark)
        browser.open(address.replace("?q=river", f"?q={query}"))
        browser.wait_for("document.getElementById('query').getAttribute('role') === 'combobox'")
        browser.evaluate("document.getElementById('query').select()")
        return browser

    return open_page


def value_of(browser):
    return browser.evaluate("document.getElementById('query').value")


def active_option(browser):
    return browser.evaluate(
        "document.getElementById("
        "document.activeElement.getAttribute('aria-activedescendant') ?? 'none')?.textContent"
    )


OPEN = "document.activeElement.getAttribute('aria-expanded') === 'true'"


def test_a_query_is_completed_with_the_keyboard_alone(page_of):
    browser = page_of("")
    browser.type("val")
    browser.wait_for(OPEN)
    browser.press("ArrowDown")
    assert (value_of(browser), active_option(browser)) == ("valley", "valley")
    browser.press("ArrowUp")  # back to what was typed
    assert (value_of(browser), active_option(browser)) == ("val", None)
    browser.press("ArrowDown")
    browser.press("Escape")
    assert (value_of(browser), browser.evaluate(OPEN)) == ("val", False)
    browser.type("l")
    browser.wait_for(OPEN)
    browser.press("ArrowDown")
    browser.press("Enter")
    browser.wait_for("location.search === '?q=valley' && document.querySelector('ol li')")


def test_enter_without_a_choice_searches_for_the_typed_text(page_of):
    browser = page_of("")
    browser.type("riv")
    browser.wait_for(OPEN)
    browser.press("Enter")
    browser.wait_for("location.search === '?q=riv'")


def test_a_title_that_is_chosen_opens_its_page(page_of):
    browser = page_of("")
    browser.type("valleys 17")
    browser.wait_for("document.querySelector('#completions small')")
    browser.press("ArrowUp")  # the last one
    assert "http://b.com/17" in active_option(browser)
    browser.requested.clear()
    browser.press("Enter")
    browser.wait_for("location.protocol === 'chrome-error:'")  # that site is not there
    assert "http://b.com/17" in browser.requested


def test_titles_of_strangers_are_texts_among_completions(page_of):
    browser = page_of("")
    browser.type("script")
    browser.wait_for("document.querySelector('#completions small')")
    assert "<script>document.title" in browser.evaluate(
        "document.querySelector('#completions').textContent"
    )
    assert (
        browser.evaluate("document.querySelectorAll('#completions :is(script, img)').length") == 0
    )
    assert browser.evaluate("document.title") != "obeyed"


def test_the_form_works_without_scripts(browser, address):
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(address.replace("?q=river", ""))
        browser.type("valley")  # the query has the focus
        browser.press("Enter")
        browser.wait_for("location.search === '?q=valley'")
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.few(1)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_no_part_of_the_page_shuts_people_out(page_of, width, dark):
    for query in ("valley&start=10", "valley+site:b.com", "nothing", "%22", ""):
        browser = page_of(query, width, dark=dark)
        assert browser.faults() == [], query
    browser.type("riv")
    browser.wait_for(OPEN)
    browser.press("ArrowDown")
    assert browser.faults() == []


def test_faults_of_a_page_are_found(browser, address):
    browser.open(address)
    browser.evaluate("document.querySelector('h1').innerHTML = '<img src=x>'")
    assert "image-alt" in [name for name, _ in browser.faults()]


@pytest.mark.parametrize("width", [1400, 400])
def test_nothing_is_wider_than_the_window(page_of, width):
    for query in ("river", "valley"):
        browser = page_of(query, width)
        browser.evaluate(
            "document.querySelectorAll('details').forEach((one) => { one.open = true })"
        )
        assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_asks_no_other_server(browser, page_of, address):
    browser.requested.clear()
    page_of("river")
    browser.type("riv")
    browser.wait_for(OPEN)
    start = address.partition("?")[0]
    assert [url for url in browser.requested if not url.startswith(start)] == []
    assert any("complete.json?q=riv" in url for url in browser.requested)
