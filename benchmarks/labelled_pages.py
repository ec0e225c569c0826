"""Pages of which the main content is known, for ``main_content.py`` and ``main_weights.py``.

- 983 pages of news, blogs, shops, forums and institutions in several languages: the evaluation of
  trafilatura (Apache-2.0). Of each some phrases are known that belong to its main content, and some that do not.
  The Go module github.com/markusmobius/go-trafilatura has them.
- 131 pages with their whole main content: the tests of Mozilla's Readability (Apache-2.0), in the Go module
  codeberg.org/readeck/go-readability.
- Documentation on this machine, of which a selector is known for what is content.

The pages belong to their publishers, so they are not in this repository; ``go mod download`` fetches them.
"""

import json
import pathlib
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from nutbeam.web.content.charset import to_utf8
from nutbeam.web.html.block_features import Blocks, blocks_of
from nutbeam.web.html.block_text import BlockText, block_text
from nutbeam.web.html.tree import NOT_TEXT, parse_tree

TRAFILATURA = "github.com/markusmobius/go-trafilatura@v1.12.2"
READABILITY = "codeberg.org/readeck/go-readability/v2@v2.1.3"
RUST = ".rustup/toolchains/*/share/doc/rust/html"
# (files, selector of the content, selector of what is not content in it)
DOCUMENTATION = (
    ("usr/share/doc/postgresql-doc-*/html/*.html", "body", ".navheader,.navfooter"),
    ("usr/share/doc/python3*/html/**/*.html", "div.body", ""),
    ("usr/share/doc/fish/**/*.html", "div.body", ""),
    ("usr/share/doc/nodejs/api/*.html", "#apicontent", ""),
    ("usr/share/doc/valgrind/html/*.html", "body", "table.nav"),
    ("usr/share/doc/libffi8/html/*.html", "body", "div.header,div.nav-panel"),
    ("usr/share/debian-reference/*.en.html", "body", ".navheader,.navfooter"),
    ("usr/share/gtk-doc/html/**/*.html", "body", ".navigation,.footer"),
    ("usr/share/doc/libxslt1-dev/gtk-doc/html/**/*.html", "body", ".navigation,.footer"),
    ("usr/lib/node_modules/npm/docs/output/**/*.html", "#content", "#edit,#table_of_contents"),
    (f"root/{RUST}/std/**/*.html", "#main-content", ""),
    (f"root/{RUST}/book/**/*.html", "main", ""),
    (f"root/{RUST}/reference/**/*.html", "main", ""),
    (f"root/{RUST}/cargo/**/*.html", "main", ""),
)
_PAGES_OF_A_SITE = 60
_STRING = r'"(?:[^"\\\n]|\\.)*"|`[^`]*`'
_TOKEN = re.compile(rf"//[^\n]*|({_STRING})|(\w+)(?=:)|([{{}}])")
_KINDS = ("comparison", "mock", "simple")
_GOLD = "data-main"


class PhrasesPage(NamedTuple):
    """A page of the evaluation of trafilatura, in UTF-8, with its phrases."""

    url: str
    utf8: bytes
    phrases: list[str]
    others: list[str]


class BlocksPage(NamedTuple):
    """A page whose blocks are known.

    Attributes:
        kind: Where it comes from.
        site: A name that the pages of its site have in common.
        page: Its text.
        blocks: The blocks of this.
        labels: Of each block: 1 is main content, 0 is not, -1 is not known.
        phrases: Phrases of its main content, if these are all that is known.
        others: Phrases that are not in that.
    """

    kind: str
    site: str
    page: BlockText
    blocks: Blocks
    labels: list[int]
    phrases: list[str] = []  # noqa: RUF012 - of a tuple
    others: list[str] = []  # noqa: RUF012


def module_folder(module: str) -> pathlib.Path:
    """Returns the folder of a Go module, which is downloaded if needed."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["go", "mod", "download", "-json", module]
        printed = subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout
    return pathlib.Path(json.loads(printed)["Dir"])


def phrases_pages() -> list[PhrasesPage]:
    """Returns the evaluation of trafilatura."""
    folder = module_folder(TRAFILATURA)
    source = (folder / "scripts/comparison/data.go").read_text("utf-8")
    pages = []
    for url, fields in _entries(source[source.index("var comparisonData") :]):
        files = (folder / "test-files" / kind / fields["File"][0] for kind in _KINDS)
        file = next(file for file in files if file.exists())
        utf8, _ = to_utf8(file.read_bytes(), None, url)
        pages.append(PhrasesPage(url, utf8, fields.get("With", []), fields.get("Without", [])))
    return pages


def _entries(source: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yields URL and fields of the entries of a map in Go."""
    depth, url, field = 0, "", ""
    fields: dict[str, list[str]] = {}
    for string, name, bracket in _TOKEN.findall(source):
        if bracket:
            depth += 1 if bracket == "{" else -1
            if bracket == "}" and depth == 1:
                yield url, fields
                fields = {}
        elif name and depth == 2:
            field = name
        elif string:
            value = string[1:-1] if string[0] == "`" else json.loads(string, strict=False)
            if depth == 1:
                url = value
            else:
                fields.setdefault(field, []).append(value)


def block_texts(page: BlockText, blocks: Blocks) -> list[str]:
    """Returns the texts of the blocks of a page, each in one line."""
    places = zip(blocks.starts.tolist(), blocks.ends.tolist(), strict=True)
    return [" ".join(page.text[start:end].split()) for start, end in places]


def labelled_pages() -> Iterator[BlocksPage]:
    """Yields all pages that have blocks."""
    for pages in (_with_phrases(), _with_content(), _documentation()):
        yield from (page for page in pages if len(page.blocks.starts))


def read_page(document: LexborHTMLParser) -> tuple[BlockText, Blocks]:
    """Returns the text of a page and its blocks; this destroys the tree."""
    not_text = document.css(",".join(NOT_TEXT))
    has_scripts = any(node.tag == "script" for node in not_text)
    for node in not_text:
        node.decompose()
    body = document.body
    page = block_text((body and body.html) or "", with_noscript=not has_scripts)
    return page, blocks_of([page])


def _with_phrases() -> Iterator[BlocksPage]:
    for each in phrases_pages():
        page, blocks = read_page(parse_tree(each.utf8))
        texts = block_texts(page, blocks)
        labels = [-1] * len(texts)
        for phrase in each.others:
            for number, text in enumerate(texts):
                if phrase in text:
                    labels[number] = 0
        for phrase in each.phrases:
            numbers = [number for number, text in enumerate(texts) if phrase in text]
            if numbers:  # once is enough
                labels[max(numbers, key=lambda number: len(texts[number]))] = 1
        site = ".".join((urlsplit(each.url).hostname or "").split(".")[-2:])
        yield BlocksPage("articles", site, page, blocks, labels, each.phrases, each.others)


def _with_content() -> Iterator[BlocksPage]:
    for folder in sorted((module_folder(READABILITY) / "test-pages").iterdir()):
        if not (folder / "expected.html").exists():
            continue
        page, blocks = read_page(parse_tree((folder / "source.html").read_bytes()))
        content = read_page(parse_tree((folder / "expected.html").read_bytes()))
        lines = set(map(_letters, block_texts(*content)))
        whole = _letters(content[0].text)
        labels = []
        for text in map(_letters, block_texts(page, blocks)):
            is_main = text in lines or (len(text) > 25 and text in whole)
            labels.append(1 if text and is_main else 0 if text and text not in whole else -1)
        yield BlocksPage("whole articles", folder.name, page, blocks, labels)


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def _documentation() -> Iterator[BlocksPage]:
    for pattern, content, others in DOCUMENTATION:
        files = sorted(pathlib.Path("/").glob(pattern))
        random.Random(1).shuffle(files)
        for file in files[:_PAGES_OF_A_SITE]:
            document = parse_tree(file.read_bytes())
            root: Any = document.css_first(content)
            if root is None or file.stat().st_size > 400_000:
                continue
            root.attrs[_GOLD] = "1"
            for node in document.css(others) if others else ():
                node.attrs[_GOLD] = "0"
            page, blocks = read_page(document)
            labels = [int(content == "body")]
            containers = page.containers
            for number in range(1, len(containers.tags)):
                mark = re.search(rf' {_GOLD}="(\d)"', containers.attributes[number])
                labels.append(int(mark[1]) if mark else labels[containers.parents[number]])
            labels = np.array(labels)[blocks.containers].tolist()
            yield BlocksPage("documentation", pattern, page, blocks, labels)
