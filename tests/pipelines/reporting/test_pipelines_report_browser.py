"""The report in a real browser: without scripts and network, at both sizes, for people with disabilities."""

import pytest
from chromium import PROGRAM as BROWSER
from chromium import browser_of_module
from crawling import json_lines, nutbeam

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium: make browser")


browser = browser_of_module()


@pytest.fixture(scope="module")
def address(reported_table, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    assert nutbeam("report", reported_table, "-o", file, "--compare", "1") == 0
    return file.as_uri()


@pytest.mark.few(2)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_fits_and_shuts_nobody_out(browser, address, width, dark):
    browser.resize(width, dark=dark)
    browser.open(address)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.faults() == []
    times = "[...document.querySelectorAll('td time')].every(t => t.getClientRects().length === 1)"
    assert browser.evaluate(times)
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == (
        "rgb(22, 24, 27)" if dark else "rgb(255, 255, 255)"
    )  # the policy takes the style


def test_the_page_requests_nothing_and_runs_nothing(browser, address):
    browser.requested.clear()
    browser.open(address)
    assert set(browser.requested) <= {address}
    assert browser.evaluate("document.title").startswith("Report on ")
    assert (
        browser.evaluate("document.querySelectorAll('script, img, [onclick], [style]').length") == 0
    )


def test_figures_are_there_without_scripts(browser, address, reported_table, capsys):
    capsys.readouterr()
    query = "SELECT status, count(*) AS n FROM state GROUP BY 1"
    assert nutbeam("sql", reported_table, query, "--format", "json") == 0
    rows = {row["status"]: f"{row['n']:,}" for row in json_lines(capsys.readouterr().out)}
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(address)
        text = browser.evaluate("document.querySelector('#state table').innerText")
        drawn = browser.evaluate("document.querySelector('#state svg .bar rect').getBBox().width")
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
    cells = [line.split("\t") for line in text.splitlines()]
    assert {cell[0]: cell[1] for cell in cells if cell[0] in rows} == rows
    assert drawn > 10


def test_tables_and_sections_are_reached_with_the_keyboard(browser, address):
    browser.open(address)
    reached = []
    for _ in range(60):
        browser.press("Tab")
        reached.append(
            browser.evaluate(
                "document.activeElement.hash || document.activeElement.getAttribute('aria-label')"
            )
        )
    assert "#hosts" in reached
    assert "Table: URLs by status" in reached
    browser.evaluate("document.querySelector('nav a[href=\"#hosts\"]').focus()")
    browser.press("Enter")
    browser.wait_for(
        "location.hash === '#hosts' && document.querySelector('#hosts').getBoundingClientRect().top < 900"
    )
