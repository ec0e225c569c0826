"""Seed lists: URLs, one a line, with Nutch's ``name=value`` pieces behind tabs."""

import dataclasses
import io
import itertools
import logging
from collections.abc import Iterator, Sequence

import polars as pl

from ...policy.rule_counts import by_rule
from ...policy.schema import FETCH_DELAY, MAX_DELAY, SEEDS, conform, to_frame
from ...web.base.errors import Unavailable, UsageError, UserError
from ...web.base.json_logs import without_login
from ...web.rules.url_rules import UrlRules
from ..storage.files import opened
from ..storage.places import Place, in_store, place_of
from ..storage.reach import absolute, files_in, is_shared
from ..storage.store_errors import StoreUnreachable

LINES = 100_000
SHOWN = 10  # dropped lines that are shown; all are counted
_LOG = logging.getLogger("nutbeam.inject")
_LONGEST = 2**31 - 1  # s, what the table holds
_LARGEST = 3.4e38  # score, the same


def _score(text: str) -> float:
    score = float(text)
    if not -_LARGEST <= score <= _LARGEST:  # NaN is refused, too
        raise ValueError(text)
    return score


def _seconds(text: str) -> int:
    seconds = int(text)
    if not 0 <= seconds <= _LONGEST:
        raise ValueError(text)
    return seconds


def _delay(text: str) -> str:
    seconds = float(text)
    if not 0 <= seconds <= MAX_DELAY:
        raise ValueError(text)
    return f"{seconds:g}"


_FIELDS = {
    "nutch.score": ("score", _score),
    "nutch.fetchInterval": ("fetch_interval", _seconds),
    "nutch.fetchInterval.fixed": ("fixed_interval", _seconds),
}


@dataclasses.dataclass(frozen=True)
class Source:
    """Where seeds come from: URLs, or one file.

    Attributes:
        number: Its place among the sources; later ones win.
        urls: Seed lines; none where it is a file.
        path: A file, or None.
    """

    number: int
    urls: tuple[str, ...] = ()
    path: str | None = None


def sources(words: Sequence[str]) -> list[Source]:
    """Returns what the words of a command line name: URLs, files, folders of files.

    URLs that follow each other are one source: each source costs milliseconds.

    Raises:
        UsageError: A file is missing, is not text, or a folder has no files.
        Unavailable: The store of one does not answer.
    """
    found: list[Source] = []
    for urls, group in itertools.groupby(words, _is_url):
        if urls:
            found.append(Source(len(found), tuple(group)))
            continue
        for path in (path for word in group for path in _files(place_of(word))):
            found.append(Source(len(found), path=str(absolute(path))))
    return found


def _is_url(word: str) -> bool:
    if not word.strip():
        raise UsageError(f"a seed is a URL, a file or a folder, got {word!r}")
    return is_url(word) and not in_store(word)


def is_url(word: str) -> bool:
    """Returns whether a word of a command line is a URL, and no path.

    >>> is_url("http://a/"), is_url("file:/a"), is_url("seeds/file")
    (True, True, False)
    """
    return "://" in word or word.startswith("file:/")


def _files(path: Place) -> list[Place]:
    try:
        files = files_in(path)
        if not files:
            raise UsageError(f"no seed files in folder {str(path)!r}")
        for file in files:
            with opened(file) as content:
                if b"\0" in content.read(8_192):
                    raise UsageError(f"seed file {str(file)!r} is binary, expected lines of text")
    except OSError as error:
        missing = isinstance(error, FileNotFoundError) and not is_shared(path)
        hint = "; a URL begins with http:// or https://" if missing else ""
        kind = Unavailable if isinstance(error, StoreUnreachable) else UsageError
        raise kind(f"cannot read seeds {str(path)!r}: {_reason(error)}{hint}") from error
    return files


def _reason(error: OSError) -> str:
    """Returns what an error says; clients of stores set no ``strerror``."""
    default = "No such file" if isinstance(error, FileNotFoundError) else str(error)
    return error.strerror or default


def read_seeds(
    source: Source, rules: UrlRules, count_rules: bool = False
) -> Iterator[tuple[pl.DataFrame, dict[str, int]]]:
    """Reads a source, at most 100,000 lines at a time.

    Lines that are empty or begin with ``#`` do not count; a line that is no
    URL, or that a filter refuses, is dropped and counted with its reason. A score,
    an interval or a delay that is none is left out and counted as ``bad_values``.

    Args:
        source: What is read.
        rules: What normalizes and filters.
        count_rules: Whether to count what filters refuse by rule, too.

    Yields:
        (SEEDS rows, counts).

    Raises:
        UserError: The file cannot be read.
    """
    shown = 0
    for number, lines in _batches(source):
        counts: dict[str, int] = {"lines": len(lines)}
        parsed = [_parse(line, counts) for _, line in lines]
        urls = pl.Series([p["url"] for p in parsed], dtype=pl.String)
        admitted = rules.admit(urls, "inject", by=count_rules)
        counts |= by_rule(admitted)
        frame = pl.DataFrame(
            [
                {**piece, "order": (number << 40) + at}
                for piece, (at, _) in zip(parsed, lines, strict=True)
            ],
            schema={
                "url": pl.String, "score": pl.Float64, "fetch_interval": pl.Int64,
                "fixed_interval": pl.Int64, "metadata": pl.Object, "order": pl.Int64,
            },
        )  # fmt: skip
        bad = admitted.get_column("reason").is_not_null()
        for row, reason in zip(
            bad.arg_true(), admitted.get_column("reason").filter(bad), strict=True
        ):
            counts[f"dropped/{reason}"] = counts.get(f"dropped/{reason}", 0) + 1
            if shown < SHOWN:
                shown += 1
                _LOG.warning(
                    "%s: %s: %r",
                    _where(source, lines[row][0]),
                    reason,
                    without_login(lines[row][1][:200]),
                )
        yield _rows(frame, admitted).filter(~bad), counts


def _rows(frame: pl.DataFrame, admitted: pl.DataFrame) -> pl.DataFrame:
    metadata = pl.Series(
        [list(m.items()) if m else None for m in frame.get_column("metadata")], dtype=pl.Object
    )
    import pyarrow as pa

    table = frame.drop("metadata").with_columns(key=admitted.get_column("key")).to_arrow()
    column = pa.array(metadata.to_list(), SEEDS.field("metadata").type)
    return to_frame(conform(table.append_column("metadata", column), SEEDS))


def _where(source: Source, line: int) -> str:
    return f"{source.path}:{line}" if source.path else "seed"


def _batches(source: Source) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    numbered = enumerate(source.urls, 1) if source.urls else _numbered(source)
    while lines := list(itertools.islice(numbered, LINES)):
        yield source.number, lines


def _numbered(source: Source) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(_lines(place_of(str(source.path))), 1):
        text = line.strip()
        if text and not text.startswith("#"):
            yield number, text


def _lines(path: Place) -> Iterator[str]:
    try:
        # A byte order mark, which Windows writes, is not part of the first URL.
        with (
            opened(path) as file,
            io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace") as text,
        ):
            yield from text
    except OSError as error:
        raise UserError(f"cannot read seeds {str(path)!r}: {_reason(error)}") from error


def _parse(line: str, counts: dict[str, int]) -> dict[str, object]:
    url, *pieces = line.split("\t")
    seed: dict[str, object] = {
        "url": url.strip(), "score": None, "fetch_interval": None,
        "fixed_interval": None, "metadata": None,
    }  # fmt: skip
    metadata: dict[str, str] = {}
    for piece in pieces:
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals:
            continue
        try:
            if name in _FIELDS:
                field, kind = _FIELDS[name]
                seed[field] = kind(value)
            elif name == FETCH_DELAY:
                metadata[name] = _delay(value)
            else:
                metadata[name] = value
        except ValueError:
            counts["bad_values"] = counts.get("bad_values", 0) + 1
    if seed["fixed_interval"] is not None:
        seed["fetch_interval"] = seed["fixed_interval"]
    seed["metadata"] = metadata or None
    return seed
