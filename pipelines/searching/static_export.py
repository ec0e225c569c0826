"""Exports an index as files that a browser searches without a server, from any place of static files.

The folder has a page, its scripts, ``about.json``, and one folder of data. The words of the index are
sorted and cut into files, so a browser loads only those in which the words of a query are; a list of a
word has the score that the search gives each page for this word alone. A file per page has its title
and text, for snippets and for the words that are near one another; one file has host, type, language
and time of all pages, for operators, facets and the order by date. ``static_search.js`` reads them.

Each file of data is a JSON text in gzip, named ``.bin`` so that no server unpacks it on the way.
"""

import gzip
import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ...policy.searching.search_query import TYPE_NAMES
from ...web.base.errors import UsageError, UserError
from ...web.base.wording import quote_value
from ...web.urls.domains import sites_of
from .index_search import ShardSearch
from .search_page import SERVED_FILES, day_of, export_page
from .whole_index import StoredPage, WholeIndex, without_accents

MOST_PAGES = 20_000
_SCALE = 100  # scores are whole numbers of hundredths
_SHARD_BYTES = 40_000  # of the JSON text of a file of words, about
_LONGEST_TEXT = 200_000  # characters of a page: as many as are searched for snippets
_PER_PAGE = 10  # as in static_search.js
_SCRIPTS = {
    path.name: path.read_text("utf-8") for path in Path(__file__).parent.glob("static_*.js")
}
_OWN_FILES = {name: SERVED_FILES[name] for name in ("combobox.js", "icon.svg")} | _SCRIPTS
_ABOUT, _PAGE, _PROPERTIES = "about.json", "index.html", "properties"
_WORD = re.compile(r"\w+")
_UNFINISHED = re.compile(r"data-[0-9a-f]{16}|.+\.part")  # of an export that was killed
_MARK = "nutbeam static search"
_VERSION = 2


class ExportedSize(NamedTuple):
    """What an export has written.

    Attributes:
        pages: Number of pages.
        files: Number of files.
        bytes: Their size.
        first_bytes: What the first search for a word loads, about.
    """

    pages: int
    files: int
    bytes: int
    first_bytes: int


def export_index(search: ShardSearch, folder: Path, name: str) -> ExportedSize:
    """Writes an index as files into a folder; an earlier export there is replaced.

    Args:
        search: The index.
        folder: The folder; it is made if it is not there.
        name: Name of the page.

    Raises:
        UsageError: The folder has other files, or the index has too many pages.
        UserError: A file cannot be written.
    """
    if search.documents > MOST_PAGES:
        raise UsageError(
            f"--export takes at most {MOST_PAGES:,} pages, and the index has {search.documents:,}: "
            "serve it with --serve, or export an index of fewer pages"
        )
    try:
        _check_folder(folder)
        return _write(search.whole(), folder, name)
    except OSError as error:
        raise UserError(f"--export {folder}: {error.strerror or error}") from error


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True)
    if not folder.is_dir():
        raise UsageError(f"--export takes a folder, got {quote_value(str(folder))}, a file")
    others = [path for path in folder.iterdir() if not _UNFINISHED.fullmatch(path.name)]
    if others and not _is_export(folder):
        raise UsageError(
            f"--export takes a new or an empty folder, or one with an export, got {quote_value(str(folder))}"
        )


def _is_export(folder: Path) -> bool:
    try:
        return json.loads((folder / _ABOUT).read_bytes())["what"] == _MARK
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _write(index: WholeIndex, folder: Path, name: str) -> ExportedSize:
    data = _DataFolder(folder / "data.part")
    numbers, mean_words = _write_pages(index, data)
    shards, common = _write_words(index, numbers, data)
    target = data.rename(folder)
    about = {
        "what": _MARK, "version": _VERSION, "data": target.name, "scale": _SCALE,
        "shards": shards or [""], "common": common, "words": mean_words, "types": TYPE_NAMES,
    }  # fmt: skip
    own = _OWN_FILES | {_PAGE: export_page(name), _ABOUT: json.dumps(about, ensure_ascii=False)}
    for file, text in own.items():  # what names the data comes last
        (folder / f"{file}.part").write_text(text, "utf-8")
        (folder / f"{file}.part").replace(folder / file)
    for old in folder.glob("data-*"):
        if old != target:
            shutil.rmtree(old, ignore_errors=True)
    own_bytes = sum(len(text.encode()) for text in own.values())
    return ExportedSize(
        len(numbers),
        len(data.sizes) + len(own),
        sum(data.sizes.values()) + own_bytes,
        round(
            own_bytes
            + data.mean("words-")
            + _PER_PAGE * data.mean("page-")
            + data.sizes[_PROPERTIES]
        ),
    )


def _write_pages(index: WholeIndex, data: "_DataFolder") -> tuple[dict[Hashable, int], list[float]]:
    """Writes a file per page; returns their numbers, and the mean words of titles and of texts."""
    numbers, sums = dict[Hashable, int](), [0, 0]
    properties = _Properties(index)
    for number, page in enumerate(index.pages()):
        numbers[page.place] = number
        properties.add(page)
        texts = page.title, page.text[:_LONGEST_TEXT]
        words = [len(_WORD.findall(text)) for text in texts]
        sums = [total + count for total, count in zip(sums, words, strict=True)]
        day, kind = ("", "") if page.date is None else (day_of(page.date.time), page.date.kind)
        data.write(f"page-{number}", {
            "url": page.url, "title": texts[0], "text": texts[1], "words": words,
            "factor": round(page.factor, 4), "day": day, "kind": kind,
        })  # fmt: skip
    data.write(_PROPERTIES, properties.columns())
    return numbers, [max(1.0, round(total / max(1, len(numbers)), 2)) for total in sums]


class _Properties:
    """Host, type, language and time of each page; of the first three the numbers of values."""

    def __init__(self, index: WholeIndex) -> None:
        self._types, self._langs = index.values_of("type"), index.values_of("lang")
        self._numbers: dict[str, dict[str, int]] = {"host": {}, "type": {}, "lang": {}}
        self._columns: dict[str, list[int | None]] = {name: [] for name in (*self._numbers, "time")}

    def add(self, page: StoredPage) -> None:
        """Adds the next page."""
        types = (kind for kind in self._types.get(page.place, ()) if "/" in kind)
        self._add_value("host", urlsplit(page.url).hostname or "")
        self._add_value("type", next(types, ""))
        self._add_value("lang", next(iter(self._langs.get(page.place, ())), ""))
        self._columns["time"].append(None if page.date is None else page.date.time // 1000)

    def _add_value(self, name: str, value: str) -> None:
        numbers = self._numbers[name]
        self._columns[name].append(numbers.setdefault(value, len(numbers)))

    def columns(self) -> dict[str, Any]:
        """Returns the columns, the values that they name, and the domains of each host."""
        hosts, types, langs = self._numbers.values()
        sites = [sites_of(host) if host else [] for host in hosts]
        return {**self._columns, "sites": sites, "types": [*types], "langs": [*langs]}


def _write_words(
    index: WholeIndex, numbers: Mapping[Hashable, int], data: "_DataFolder"
) -> tuple[list[str], list[str]]:
    """Writes the files of words; returns the first word of each, and common words."""
    firsts, common = list[str](), list[str]()
    for shard in _shards(_words(index, numbers)):
        data.write(f"words-{len(firsts)}", {"lists": shard.lists, "forms": shard.forms})
        firsts.append(next(iter(shard.forms)))
        common += filter(index.is_common, shard.forms)
    return firsts, common


class _DataFolder:
    """A folder of data that is written; its name follows from its content.

    Attributes:
        sizes: Bytes of each file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._digest, self.sizes = folder, hashlib.sha256(), dict[str, int]()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()

    def write(self, name: str, value: Any) -> None:
        """Writes a value as one file."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        self._digest.update(text)
        packed = gzip.compress(text, 9, mtime=0)
        (self._folder / f"{name}.bin").write_bytes(packed)
        self.sizes[name] = len(packed)

    def mean(self, start: str) -> float:
        """Returns the mean size of files with a name that starts so."""
        chosen = [size for name, size in self.sizes.items() if name.startswith(start)]
        return sum(chosen) / max(1, len(chosen))

    def rename(self, folder: Path) -> Path:
        """Gives the folder its name below another one; returns it."""
        target = folder / f"data-{self._digest.hexdigest()[:16]}"
        if target.exists():  # the same export, or a part of it
            shutil.rmtree(target)
        return self._folder.rename(target)


class _Word(NamedTuple):
    """A word as people type it: the beginning that its forms share, its rarity, its pages."""

    form: str
    beginning: str
    rarity: float
    scores: Mapping[int, float]


def _words(index: WholeIndex, numbers: Mapping[Hashable, int]) -> Iterator[_Word]:
    """Yields the words of an index in the order in which JavaScript sorts them."""
    words = set(index.words())
    words |= {without_accents(word) for word in words if not word.isascii()} - {""}
    for word in sorted(words, key=lambda one: one.encode("utf-16-be")):
        scores = {numbers[place]: score for place, score in index.scores_of(word).items()}
        if scores:
            rarity = round(index.rarity_of(word), 3)
            yield _Word(word, index.beginning_of(word), rarity, scores)


class _Shard(NamedTuple):
    """A file of words: lists of pages, and words with the number of their list."""

    lists: list[tuple[list[int], list[int]]]
    forms: dict[str, tuple[int, str, float]]


def _shards(words: Iterable[_Word]) -> Iterator[_Shard]:
    """Yields files of words; words with equal lists, as the forms of a word, share one."""
    shard, places, size = _Shard([], {}), dict[bytes, int](), 0
    for word in words:
        pages = sorted(word.scores)
        gaps = [after - before for before, after in itertools.pairwise((0, *pages))]
        scores = [max(1, round(word.scores[page] * _SCALE)) for page in pages]
        key = hashlib.sha256(repr((gaps, scores)).encode()).digest()
        if key not in places:
            places[key] = len(shard.lists)
            shard.lists.append((gaps, scores))
            size += 6 * len(pages)
        shard.forms[word.form] = places[key], word.beginning, word.rarity
        size += len(word.form) + len(word.beginning) + 20
        if size > _SHARD_BYTES:
            yield shard
            shard, places, size = _Shard([], {}), {}, 0
    if shard.forms:
        yield shard
