"""The pictures in the README show what the commands print."""

import html
import importlib.util
import re

import pytest
from here import ROOT

FOLDER = ROOT / "docs" / "images"
SCRIPT = FOLDER / "pictures.py"
WORDS = {
    "crawl.svg": {"generate", "dedup", "db_fetched", "robots_denied", "score"},
    "demo.svg": {"make", "demo", "next", "pages", "first", "target_url", "links"},
}
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="docs/ is not part of the wheel")


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("pictures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(path):
    """Returns the words of a picture, without numbers and lines, which differ from run to run."""
    text = html.unescape(" ".join(re.findall(r">([^<>]+)</text>", path.read_text("utf-8"))))
    return set(re.findall(r"[a-z_]{4,}", text))


@pytest.fixture(scope="module")
def drawn(script, tmp_path_factory):
    """A folder with the pictures as they are drawn today."""
    folder = tmp_path_factory.mktemp("pictures")
    script.main(str(folder))
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", WORDS)
def test_a_picture_shows_the_current_output_of_its_commands(drawn, name):
    assert words(drawn / name) == words(FOLDER / name), "run make pictures"
    assert WORDS[name] <= words(FOLDER / name)


@pytest.mark.parametrize("name", WORDS)
def test_a_picture_is_in_the_readme_and_loads_nothing(name):
    assert f"](docs/images/{name})" in (ROOT / "README.md").read_text("utf-8")
    assert not re.findall(r"url\(\W?http|href|@import", (FOLDER / name).read_text("utf-8"))


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
