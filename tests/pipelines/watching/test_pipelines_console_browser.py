"""The console in a real browser: sizes, colours, keys, and names of strangers that do nothing."""

import threading

import pytest
from chromium import PROGRAM as BROWSER
from chromium import browser_of_module
from crawling import nutbeam
from simulated_web import served_web
from test_pipelines_console import beat

from nutbeam.pipelines.base.served_address import ServedAddress
from nutbeam.pipelines.watching.console_command import Options
from nutbeam.pipelines.watching.console_serving import ConsoleServer, SearchedIndex
from nutbeam.pipelines.watching.table_watch import TableWatch

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium: make browser")
web = served_web(hosts=1, pages=3, scope="module")


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    table = tmp_path_factory.mktemp("browser") / "table"
    assert nutbeam("inject", table, "http://a.example.com/") == 0
    beat(table)
    index = SearchedIndex(str(table), "main", "")
    watch = TableWatch(str(table), 3600.0, 1000)
    with ConsoleServer(watch, ServedAddress(), Options(), index) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.port}/", table
        server.shutdown()
        thread.join()


browser = browser_of_module()


READY = "document.getElementById('pause') && !document.getElementById('pause').hidden"


@pytest.mark.few(1)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_the_console_fits_and_has_no_faults(browser, console, width, dark):
    browser.resize(width, dark=dark)
    for address in (console[0], f"{console[0]}explain?url=http://a.example.com/"):
        browser.open(address)
        assert browser.faults() == []
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") != dark


def test_it_follows_the_table_by_itself_and_stops_when_it_is_paused(browser, console):
    address, table = console
    browser.resize(1400)
    browser.open(address)
    browser.wait_for(READY)
    assert browser.evaluate("document.title") == f"{table} - console"  # no name was obeyed
    assert browser.evaluate("document.querySelectorAll('main script').length") == 0
    browser.evaluate("document.querySelector('main a').focus()")
    asked = len(browser.requested)
    browser.wait_for("document.getElementById('looked').textContent")
    assert any(url.endswith("/live") for url in browser.requested[asked:])
    assert browser.evaluate("document.activeElement.tagName") == "A"  # the focus stays
    (table / "operations" / "77.beat").unlink()
    browser.wait_for("document.getElementById('state').textContent === 'well'")
    browser.evaluate("document.getElementById('pause').focus()")
    browser.press("Enter")
    assert browser.evaluate("document.getElementById('pause').textContent") == "Go on"
    beat(table)


def test_a_url_is_explained_by_the_keyboard_alone(browser, console):
    browser.open(console[0])
    browser.wait_for(READY)
    browser.evaluate("document.getElementById('pause').focus()")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.id") == "url"
    browser.type("http://a.example.com/")
    browser.press("Enter")
    browser.wait_for("location.pathname === '/explain' && document.querySelector('main .verdict')")
    assert "chosen next" in browser.evaluate("document.querySelector('main .verdict').textContent")
    sizes = [
        float(
            browser.evaluate(
                f"parseFloat(getComputedStyle(document.querySelector('{name}')).fontSize)"
            )
        )
        for name in ("main .verdict", "h1")
    ]
    assert sizes[0] < sizes[1]
