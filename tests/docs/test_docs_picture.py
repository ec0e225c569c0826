"""The picture in the README shows what the command prints."""

import html
import importlib.util
import re

import pytest
from here import ROOT

SCRIPT, PICTURE = ROOT / "docs/images/crawl.py", ROOT / "docs/images/crawl.svg"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="docs/ is not part of the wheel")


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("crawl_picture", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(path):
    """Returns the words of a picture, without numbers and lines, which differ from run to run."""
    text = html.unescape(" ".join(re.findall(r">([^<>]+)</text>", path.read_text("utf-8"))))
    return set(re.findall(r"[a-z_]{4,}", text))


def test_the_picture_is_of_a_crawl_as_it_is_today(script, tmp_path):
    script.main(str(tmp_path / "crawl.svg"))
    assert words(tmp_path / "crawl.svg") == words(PICTURE)
    assert {"generate", "dedup", "db_fetched", "robots_denied", "score"} <= words(PICTURE)


def test_the_picture_is_in_the_readme_and_loads_nothing():
    assert "](docs/images/crawl.svg)" in (ROOT / "README.md").read_text("utf-8")
    assert not re.findall(r"url\(\W?http|href|@import", PICTURE.read_text("utf-8"))


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("plain\r\nlines\r\n", ["plain", "lines", ""]),
        ("1 page\r\x1b[2K2 pages\r\n", ["2 pages", ""]),
        ("a\r\nb\r\x1b[2K\x1b[1A\x1b[2Kc\r\n", ["c", ""]),
        ("\x1b[?25lred \x1b[31mhost\x1b[0m\x1b[?25h", ["red \x1b[31mhost\x1b[0m"]),
    ],
)
def test_cleared_lines_are_not_shown(script, output, shown):
    assert script.screen(output) == shown
