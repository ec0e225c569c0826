"""Reads seed lists: one URL per line, then Nutch's ``name=value`` pieces after tabs."""

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from ...policy.components.rule_counts import by_rule
from ...policy.components.schema import FETCH_DELAY, MAX_DELAY, SEEDS, columns, conform, to_frame
from ...web.base.columns import put
from ...web.base.dataclass import dataclass
from ...web.base.errors import Unavailable, UsageError, UserError
from ...web.base.wording import quote_value
from ...web.rules.url_rules import UrlRules
from ..storage.address_kinds import is_place
from ..storage.place_addresses import place_of
from ..storage.places import Place
from ..storage.store_clients import StoreUnreachable
from .seed_lines import (
    BLANK_IN_URL,
    LONGEST_LINE,
    UrlLine,
    divide_line,
    dropped_line,
    hint_for,
    is_binary,
    line_blocks,
    open_unpacked,
    typed_line,
)

LINES = 100_000
SHOWN = 10  # number of dropped lines, and of bad values, to show; all are counted
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))  # what Python strips
_HIDDEN = (".", "_")  # first characters of names that Hadoop does not read in a folder, either
# What a line gives beside its URL, by index of the line.
_GIVEN = pa.schema([("at", pa.uint32()), *columns(SEEDS, *SEEDS.names[2:])])
_LOG = logging.getLogger("nutbeam.inject")
_LONGEST = 2**31 - 1  # s, the largest interval that the table holds
_LARGEST = 3.4e38  # the largest score that the table holds
# Column, type, smallest and largest value of each piece that is not metadata.
_FIELDS: dict[str, tuple[str, Callable[[str], float], float, float]] = {
    "nutch.score": ("score", float, -_LARGEST, _LARGEST),
    "nutch.fetchInterval": ("fetch_interval", int, 1, _LONGEST),
    "nutch.fetchInterval.fixed": ("fixed_interval", int, 1, _LONGEST),
}


@dataclass(frozen=True)
class SeedSource:
    """A source of seeds: URLs, or one file.

    Attributes:
        number: Its position among the sources; if two have the same URL, the later one counts.
        urls: Seed lines; empty for a file.
        path: The file; None for URLs.
    """

    number: int
    urls: tuple[str, ...] = ()
    path: str | None = None


def sources(words: Sequence[str]) -> list[SeedSource]:
    """Returns the seed sources in command-line arguments: URLs, files, folders of files.

    Of a folder, files whose name begins with a dot or an underscore are left out, and folders.

    Consecutive URLs are one source, because each source costs milliseconds.

    Raises:
        UsageError: A file is missing, is not text, or a folder has no files.
        Unavailable: A store does not answer.
    """
    seed_sources: list[SeedSource] = []
    for urls, group in itertools.groupby(words, _is_url):
        if urls:
            seed_sources.append(SeedSource(len(seed_sources), tuple(group)))
            continue
        for path in (path for word in group for path in _files(word)):
            seed_sources.append(SeedSource(len(seed_sources), path=str(path.absolute())))
    return seed_sources


def unread_folders(words: Sequence[str]) -> list[str]:
    """Returns the folders in the given folders: seed files in them are not read."""
    places = [place_of(word) for word in words if not _is_url(word)]
    return [folder for place in places for folder in place.folders_in() if not _is_hidden(folder)]


def _is_hidden(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2].startswith(_HIDDEN)


def _is_url(word: str) -> bool:
    if not word.strip():
        raise UsageError(f"a seed is a URL, a file or a folder, got {word!r}")
    return not is_place(word)


def _files(word: str) -> list[Place]:
    read = path = place_of(word)
    try:
        path.check_readable_twice()
        files = path.files_in()
        if files != [path]:
            files = [file for file in files if not _is_hidden(str(file))]
        if not files:
            raise UsageError(_no_files(path) + _hint_for_word(word))
        for read in files:
            with read.open_for_reading() as packed, open_unpacked(packed) as content:
                if is_binary(content.read(8_192)):
                    raise UsageError(f"seed file {str(read)!r} is binary, expected lines of text")
    except OSError as error:
        hint = ""
        if isinstance(error, FileNotFoundError):
            hint = _hint_for_word(word) or path.hint_if_missing
        kind = Unavailable if isinstance(error, StoreUnreachable) else UsageError
        raise kind(f"cannot read seeds {quote_value(str(read))}: {_reason(error)}{hint}") from error
    return files


def _hint_for_word(word: str) -> str:
    """Returns advice for a word that is no file; it may be empty."""
    hint = hint_for("malformed", word)
    return f"{hint} if it is a URL" if hint else ""


def _no_files(path: Place) -> str:
    below = path.folders_in()
    hint = f"; folders in it are not read: {', '.join(below[:3])}" if below else ""
    return f"no seed files in folder {str(path)!r}{hint}"


def _reason(error: OSError) -> str:
    """Returns the text of an error, also for clients of stores, which do not set ``strerror``."""
    default = "No such file" if isinstance(error, FileNotFoundError) else str(error)
    return error.strerror or default


def url_lines(words: Sequence[str]) -> Iterator[UrlLine]:
    """Yields the lines of lists of URLs, as ``read_seeds`` reads them.

    Args:
        words: URLs, files, folders of files.

    Raises:
        UsageError: See ``sources``.
        UserError: A file cannot be read.
    """
    for source in sources(words):
        if source.path is None:
            yield from map(typed_line, source.urls)
        else:
            for number, line in file_lines(source.path):
                yield UrlLine(f"{source.path}:{number}", line, divide_line(line).url)


def read_seeds(
    source: SeedSource, rules: UrlRules, count_rules: bool = False
) -> Iterator[tuple[pl.DataFrame, Counter[str]]]:
    """Reads a source, at most 100,000 lines at a time.

    Empty lines, lines that begin with ``#``, and comments after a URL are ignored. A line that is
    not a URL, or that a filter refuses, is dropped and counted by reason; so is one with blanks whose
    meaning is not sure, see ``divide_line``. A bad score, interval or delay is ignored and counted
    as ``bad_values``.

    Args:
        source: The source.
        rules: Normalizes and filters URLs.
        count_rules: Whether to count refused URLs by rule, too.

    Yields:
        (SEEDS rows, counts).

    Raises:
        UserError: The file cannot be read.
    """
    shown = bad_shown = 0
    for chunk in _line_chunks(source):
        numbers, texts = chunk.get_columns()
        counts = Counter({"lines": len(chunk)})
        too_long = texts.str.len_chars() >= LONGEST_LINE
        # Most lines are a URL alone.
        with_blanks = (texts.str.contains(r"\s") & ~too_long).arg_true()
        typed = source.path is None
        divided = [divide_line(line, typed=typed) for line in texts.gather(with_blanks)]
        parsed = {
            at: _values_of(line.pieces)
            for at, line in zip(with_blanks, divided, strict=True)
            if line.pieces
        }
        bad = [
            ("bad value, ignored", numbers[at], piece)
            for at, (_, pieces) in parsed.items()
            for piece in pieces
        ]
        counts.update({"bad_values": len(bad)} if bad else {})
        bad_shown += _show(source, bad[: SHOWN - bad_shown])
        url_texts = pl.Series([line.url for line in divided], dtype=pl.String)
        urls = put(texts, with_blanks, url_texts) if divided else texts
        admitted = rules.admit(urls, "inject", by=count_rules)
        counts.update(by_rule(admitted))
        reason = (
            pl.when(too_long).then(pl.lit("line_too_long"))
            .when(texts.str.contains("\0", literal=True)).then(pl.lit("malformed"))
            .when(urls.is_null()).then(pl.lit(BLANK_IN_URL)).otherwise("reason")
        )  # fmt: skip
        judged_rows = admitted.select("key", reason.alias("reason")).with_row_index("at")
        dropped = (
            chunk.select(judged_rows.get_column("reason"), "number", "text").drop_nulls().rows()
        )
        counts.update(f"dropped/{why}" for why, *_ in dropped)
        shown += _show(source, dropped[: SHOWN - shown])
        order = numbers + (source.number << 40)
        rows = judged_rows.with_columns(order=order).filter(pl.col("reason").is_null())
        yield to_frame(conform(_with_values(rows, parsed), SEEDS)), counts


def _with_values(
    rows: pl.DataFrame, parsed: Mapping[int, tuple[dict[str, Any], list[str]]]
) -> pl.DataFrame:
    """Returns rows with the values that their lines give: columns of ``SEEDS``.

    Args:
        rows: ``key``, ``order``, and ``at``: index of the line.
        parsed: The results of ``_values_of`` by index of the line.
    """
    if not parsed:
        return rows
    values = pa.Table.from_pylist([{"at": at, **seed} for at, (seed, _) in parsed.items()], _GIVEN)
    return rows.join(to_frame(values), on="at", how="left", maintain_order="left")


def _show(source: SeedSource, bad_lines: Sequence[tuple[str, int, str]]) -> int:
    """Logs (reason, line number, text) of lines; returns how many they are."""
    for reason, number, text in bad_lines:
        where = "seed" if source.path is None else f"{source.path}:{number}"
        _LOG.warning("%s", dropped_line(where, reason, text))
    return len(bad_lines)


def _line_chunks(source: SeedSource) -> Iterator[pl.DataFrame]:
    """Yields ``number`` and ``text`` of lines, at most ``LINES`` at a time."""
    texts = pl.Series(source.urls, dtype=pl.String)
    frames = _file_frames(source.path) if source.path is not None else [_numbered(texts, 1)]
    for frame in frames:
        yield from frame.iter_slices(LINES)


def _numbered(texts: pl.Series, first: int) -> pl.DataFrame:
    numbers = pl.int_range(first, first + len(texts), eager=True)
    return pl.DataFrame({"number": numbers, "text": texts.str.strip_chars(_BLANKS)})


def _file_frames(path: str) -> Iterator[pl.DataFrame]:
    """Yields ``number`` and ``text`` of the lines of a file, without empty lines and comments."""
    first = 1
    try:
        with place_of(path).open_for_reading() as file:
            for block in line_blocks(file):
                texts = pl.Series([block]).str.split("\n").explode().str.head(LONGEST_LINE)
                frame, first = _numbered(texts, first), first + len(texts)
                wanted = (pl.col("text") != "") | (texts.str.len_chars() >= LONGEST_LINE)
                yield frame.filter(wanted & ~pl.col("text").str.starts_with("#"))
    except OSError as error:
        raise UserError(f"cannot read seeds {path!r}: {_reason(error)}") from error


def file_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) of a file, without empty lines and comments."""
    for frame in _file_frames(path):
        yield from frame.iter_rows()


def _values_of(pieces: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Returns (the values of a line, by column; pieces whose value cannot be used)."""
    bad = []
    seed: dict[str, Any] = {}
    metadata: dict[str, str] = {}
    for piece in pieces:
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals:
            continue
        try:
            if name in _FIELDS:
                column, kind, low, high = _FIELDS[name]
                seed[column] = _number(value, kind, low, high)
            elif name == FETCH_DELAY:
                metadata[name] = f"{_number(value, float, 0, MAX_DELAY):g}"
            else:
                metadata[name] = value
        except ValueError:
            bad.append(piece.strip())
    if "fixed_interval" in seed:
        seed["fetch_interval"] = seed["fixed_interval"]
    seed["metadata"] = list(metadata.items()) or None
    return seed, bad


def _number(text: str, kind: Callable[[str], float], low: float, high: float) -> float:
    number = kind(text)
    if not low <= number <= high:  # NaN is refused, too
        raise ValueError(text)
    return number
