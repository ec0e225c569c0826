"""The search page in a real browser: wide and narrow, light and dark; hostile titles do nothing."""

import shutil
import subprocess
import threading

import pytest
from crawling import nutbeam
from index_shards import commit_shards, page, write_shards

from nutbeam.pipelines.indexing.search_address import SearchAddress
from nutbeam.pipelines.indexing.search_serving import SearchServer
from nutbeam.pipelines.indexing.searched_table import SearchedTable

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium: make browser")
DARK = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")
EVIL = "<script>document.title='obeyed'</script><img src=x onerror=\"document.title='obeyed'\">"
PAGES = [
    page("http://a.com/" + "long-" * 60, "W" * 300, "river " + "x" * 500, boost=100.0),
    page("http://a.com/2", EVIL, "river " + EVIL),
    page("http://a.com/3", "東京", "東京都の天気は晴れです river", lang="ja"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    assert nutbeam("inject", folder / "table", "http://a.com/") == 0
    commit_shards(folder / "table", write_shards(folder / "table", PAGES), "first")
    searched = SearchedTable(str(folder / "table"), "main", str(folder / "cache"))
    with SearchServer(searched, SearchAddress(), 10) as server:
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
