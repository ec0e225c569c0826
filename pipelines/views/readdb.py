"""readdb: shows the table: statistics, one URL, the URLs with the best scores, or all rows.

::

    state, tablet by tablet ─ figures, or rows as text ─▶ parts ─▶ one result
"""

import dataclasses
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ...io.batches.batches import live_file
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.storage.files import LARGEST_BYTES, creating, read_bytes, write_bytes
from ...io.storage.parquet_files import collect, scan
from ...io.storage.places import Place
from ...io.table.opening import open_table
from ...policy.components.columns import Form
from ...policy.components.document_schema import DOCUMENTS, DOCUMENTS_COLUMNS
from ...policy.components.kinds import KINDS
from ...policy.components.page_facts import unique_documents
from ...policy.components.schema import STATE, STATUS_NAMES, empty
from ...policy.components.views import shown_columns
from ...policy.components.vocabulary import code_name, iso, normal_text, record_of, shown_schema
from ...policy.conditions import RowOptions, chosen_rows, wanted_rows
from ...policy.figures import (
    KEY,
    NUMBER,
    WHICH,
    Statistics,
    by_status,
    from_json,
    merge,
    statistics_of,
    sum_key_counts,
    summary,
    to_json,
)
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.visible import visible_lines
from ...web.base.wording import format_count, in_words
from ...web.urls.row_keys import from_key, shown_url
from ..base.command import NUTCH_FILE, TABLE, Argument, Invocation, configuration
from ..launch.clock_warnings import warn_of_clocks
from ..launch.launch import LaunchOptions
from ..outputs.output_files import Output, output_of
from .item_reading import item_parts
from .reading_job import Reading, ReadItem, check_dump

ARGUMENTS = (
    TABLE,
    Argument("url", "Show the record of this URL. Without it, readdb shows figures.", "?"),
)
_COLUMNS = shown_columns(KINDS["state"])
# Results of parsing that the state does not have.
_PARSED = DOCUMENTS_COLUMNS.pick("parse_status", "parse_minor", "parse_message", "part_of")
_OF_ROWS = frozenset(field.name for field in dataclasses.fields(RowOptions))
_PIECES = 16  # whose statistics are kept apart until they are merged
_ENDINGS = ("jsonl", "csv", "parquet", "txt")
STATUS_CODES = {name: code for code, name in STATUS_NAMES.items()}


# What each part of the figures writes.
_STATISTICS, _BEST, _HOSTS = ".json", ".best", ".hosts"


@dataclass(frozen=True)
class Options(RowOptions, LaunchOptions):
    """Options of readdb: one of stats, top and dump, or a URL; and which rows."""

    stats: bool = option(
        False, "Show figures about the table (the default).", nutch="readdb -stats"
    )
    sort: bool = option(
        False, "With --stats: also the number of URLs of each host, by status.",
        nutch="readdb -sort",
    )  # fmt: skip
    dump: str = option(
        "", "Write records to a file that ends in .jsonl, .csv, .parquet, or .txt for Nutch's text; "
        "- is standard output, as JSON lines.", nutch="readdb -dump",
    )  # fmt: skip
    dump_format: str = option(
        "",
        "Form of the records of --dump; without it the ending of the file decides, and the file "
        f"{NUTCH_FILE} gets Nutch's text.",
        choices=("", *_ENDINGS),
        nutch="readdb -format",
    )
    top: int = option(
        0, "Show this many URLs with the highest scores.", minimum=0, nutch="readdb -topN"
    )
    min_score: float = option(0.0, "With --top: only URLs with at least this score.")

    def __post_init__(self) -> None:
        chosen = [n for n in ("stats", "dump", "top") if getattr(self, n)]
        if len(chosen) > 1:
            raise ValueError(f"--{chosen[0]} and --{chosen[1]} contradict each other: give one")
        if self.dump_format and not self.dump:
            raise ValueError(f"--dump_format {self.dump_format} is only for --dump FILE")
        file = "" if self.dump_format else self.dump
        check_dump(file, self.regex, *(f".{ending}" for ending in _ENDINGS))


@dataclass(frozen=True)
class Figures:
    """What to read of the table besides statistics.

    Attributes:
        best: Number of URLs with the highest scores.
        min_score: Lowest score of these URLs.
        hosts: Whether to count rows by host and status.
        rows: Which rows; None is all.
    """

    best: int = 0
    min_score: float = 0.0
    hosts: bool = False
    rows: RowOptions = dataclasses.field(default_factory=RowOptions)


def run(invocation: Invocation) -> int:
    options, address = invocation.options, str(invocation.table)
    url = invocation.arguments["url"]
    if url and (options.stats or options.dump or options.top):
        raise UsageError(f"a URL stands alone, without --stats, --dump or --top: {url!r}")
    for name in invocation.typed:
        if name == "min_score" and not options.top:
            raise UsageError("--min_score is only for --top NUMBER")
        if name == "sort" and (options.top or options.dump):
            raise UsageError("--sort is only for --stats")
        if url and name in _OF_ROWS:
            raise UsageError(f"a URL stands alone, without --{name}: {url!r}")
    with configuration():
        wanted_rows(options.expr)
    warn_of_clocks(address)
    if url:
        return _show_url(invocation, address, url)
    if options.dump:
        return _dump(address, options, invocation.beam_args)
    figures = Figures(options.top, options.min_score, options.sort, options)
    record, best = read_statistics(address, options, invocation.beam_args, figures)
    as_json = invocation.format == "json"
    if options.top:
        for row in best:
            print(json.dumps(row) if as_json else _best_line(row))
    else:
        print(json.dumps(record) if as_json else visible_lines(_lines(record)))
    return 0


def read_statistics(
    address: str,
    options: LaunchOptions,
    beam_args: Sequence[str] = (),
    figures: Figures | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns statistics of a table, and the URLs with the highest scores, best first.

    Args:
        address: Address of the table.
        options: Options of the launch.
        beam_args: Arguments for Beam.
        figures: What to read; None is statistics of all rows.
    """
    wanted = figures or Figures()
    look = functools.partial(_look, figures=wanted, now=now_ms())
    with item_parts(address, look, beam_args, options) as (manifest, parts):
        contents = {suffix: [read_bytes(part, LARGEST_BYTES) for part in parts if part.suffix == suffix]
                 for suffix in (_STATISTICS, _BEST, _HOSTS)}  # fmt: skip
    record = summary(merge(from_json(data.decode()) for data in contents[_STATISTICS]))
    record |= {"batches": _batches(manifest), "snapshot": manifest.snapshot}
    if wanted.hosts:
        hosts = [by_status(empty(STATE)), *(pl.read_parquet(data) for data in contents[_HOSTS])]
        record["hosts"] = _by_host(sum_key_counts(hosts))
    if not contents[_BEST]:
        return record, []
    rows = best_of(pl.concat(pl.read_parquet(data) for data in contents[_BEST]), wanted.best)
    return record, [
        {"url": shown_url(row["key"]), "repr_url": row["repr_url"], "score": row["score"],
         "status": STATUS_NAMES.get(row["status"], "unknown")}
        for row in rows.to_dicts()
    ]  # fmt: skip


def _by_host(counts: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Returns the number of rows by status and host, the hosts with most first."""
    hosts_by_status: dict[str, dict[str, int]] = {}
    for host, status, number in counts.select(KEY, WHICH, NUMBER).iter_rows():
        hosts_by_status.setdefault(status, {})[host] = number
    return hosts_by_status


def _best_line(row: dict[str, Any]) -> str:
    line = f"{row['score']:g}\t{row['url']}"
    return f"{line}\tshown as {row['repr_url']}" if row["repr_url"] else line


def _look(item: ReadItem, figures: Figures, now: int) -> None:
    columns = ("status", "retries", "fetch_interval", "fetch_time", "score")
    of_best, of_hosts = ("key", "repr_url"), ("key",)
    more = (of_best if figures.best else ()) + (of_hosts if figures.hosts else ())
    names = tuple(dict.fromkeys((*columns, *more, *figures.rows.needs())))
    best: list[pl.DataFrame] = []
    hosts: list[pl.DataFrame] = []
    statistics: list[Statistics] = []
    assert item.tablet is not None
    with item.reading.reading():
        for piece in item.reading.table.read_in_frames("state", item.tablet, names):
            rows = chosen_rows(piece, figures.rows, now)
            statistics.append(statistics_of(rows, now))
            if figures.hosts:
                hosts = [sum_key_counts([*hosts, by_status(rows)])]
            if figures.best:
                good = rows.filter(
                    (pl.col("score") >= figures.min_score) & pl.col("score").is_not_nan()
                )
                good = good.select("key", "score", "status", "repr_url")
                good = pl.concat([*best, better(good, best, figures.best)])
                best = [best_of(good, figures.best)]
            if len(statistics) > _PIECES:
                statistics = [merge(statistics)]
    reading = item.reading
    write_bytes(reading.part_file(item.number, _STATISTICS), to_json(merge(statistics)).encode())
    for suffix, frames in ((_BEST, best), (_HOSTS, hosts)):
        for frame in frames:
            with creating(reading.part_file(item.number, suffix)) as file:
                frame.write_parquet(file)


def best_of(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """Returns the rows with the highest scores, best first; of equal ones those with lower keys."""
    return rows.sort("score", "key", descending=[True, False]).head(number)


def better(rows: pl.DataFrame, best: list[pl.DataFrame], number: int) -> pl.DataFrame:
    """Returns the rows that may be among the best: few, so that these are sorted quickly."""
    if not best or len(best[0]) < number:
        return rows
    key, score = best[0].row(-1)[:2]
    same = (pl.col("score") == score) & (pl.col("key") < key)
    return rows.filter((pl.col("score") > score) | same)


def _show_url(invocation: Invocation, address: str, url: str) -> int:
    from ..checkers.checking import row_key  # late: it loads all URL rules

    manifest = newest_manifest(address)
    key = row_key(url, "URL")
    row = Reading(address, "", manifest.snapshot).find("state", key)
    if row is None:
        print("null" if invocation.format == "json" else f"{from_key(key)}: not found")
        return 1
    for name in ("page", "document"):
        file = live_file(open_table(address), manifest, row[name]) if row[name] else None
        row[name] = file.path if file else None
    if row["document"] is not None:
        row |= _parse_results(open_table(address) / row["document"], key)
    columns = {column.name: column for column in (*_COLUMNS, *_PARSED)}
    record = record_of(row, columns.values())
    if invocation.format == "json":
        print(json.dumps(record))
        return 0
    for name, column in columns.items():
        if column.form is Form.CODE:
            record[name] = code_name(row.get(name), column)
        elif column.unit and record[name] is not None:
            record[name] = f"{record[name]} {column.unit}"
    filled = {name: value for name, value in record.items() if value not in (None, {})}
    print(visible_lines(f"{name:>16}: {value}" for name, value in filled.items()))
    return 0


def _parse_results(path: Place, key: str) -> dict[str, Any]:
    """Returns the result of parsing a page, from a file of documents."""
    names = [column.name for column in _PARSED]
    rows = scan([path], DOCUMENTS).filter(pl.col("key") == key).select("key", *names)
    documents = unique_documents(collect(rows)).select(names).head(1).to_dicts()
    return documents[0] if documents else {}


def _dump(address: str, options: Options, beam_args: Any) -> int:
    is_nutch_file = Path(options.dump).name == NUTCH_FILE
    form = options.dump_format or ("txt" if is_nutch_file else "")
    output = output_of(options.dump, "--dump", f".{form}" if form else "")
    write = functools.partial(_write_dump, options=options, output=output, now=now_ms())
    with item_parts(address, write, beam_args, options) as (_, parts):
        output.join(parts, [column.name for column in _COLUMNS], shown_schema(_COLUMNS))
    return 0


def _write_dump(item: ReadItem, options: Options, output: Output, now: int) -> None:
    path = item.reading.part_file(item.number, output.suffix)
    assert item.tablet is not None
    with item.reading.reading():
        groups = item.reading.table.scan("state", item.tablet)
        chosen = (chosen_rows(group, options, now) for group in groups)
        if output.suffix == ".txt":
            rows = (row for group in chosen for row in group.iter_rows(named=True))
            output.write_text(path, map(normal_text, rows))
        else:
            output.write_frames(path, chosen, _COLUMNS)


def _batches(manifest: Manifest) -> dict[str, Any]:
    return {
        name: {"phase": batch.phase, "urls": batch.urls, "created": iso(batch.created)}
        for name, batch in sorted(manifest.batches.items())
    }


def _lines(record: dict[str, Any]) -> list[str]:
    lines = [f"TOTAL urls: {record['total_urls']:,}"]
    interval, times, score = (record.get(n) for n in ("fetch_interval", "fetch_time", "score"))
    if interval:
        for word, name in (("shortest", "min"), ("avg", "avg"), ("longest", "max")):
            lines.append(f"{word} fetch interval: {in_words(interval[name])}")
    if times:
        for word, name in (("earliest fetch time", "min"), ("avg of fetch times", "avg"),
                           ("latest fetch time", "max")):  # fmt: skip
            lines.append(f"{word}: {times[name]}")
    if due := record.get("due"):
        lines.append(
            ", ".join(f"due {n.replace('_', ' ')}: {number:,}" for n, number in due.items())
        )
    lines += [f"retry {n}: {number:,}" for n, number in record["retries"].items()]
    if score:
        lines += [f"score quantile {q}: {value:g}" for q, value in score["quantiles"].items()]
        lines += [f"{word} score: {score[word]:g}" for word in ("min", "avg", "max")]
    for name, number in record["status"].items():
        lines.append(f"status {STATUS_CODES.get(name, 0)} ({name}): {number:,}")
        hosts = record.get("hosts", {}).get(name, {})
        lines += [f"    {host}: {count:,}" for host, count in hosts.items()]
    lines += [
        f"batch {n}: {b['phase']}, {format_count(b['urls'], 'URLs')}"
        for n, b in record["batches"].items()
    ]
    if "score_nan" in record:
        lines.append(f"score == NaN: {record['score_nan']:,}")
    return lines
