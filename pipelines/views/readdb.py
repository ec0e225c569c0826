"""readdb: shows the table: statistics, one URL, the URLs with the best scores, or all rows.

::

    state, tablet by tablet ─ figures, or rows as text ─▶ parts ─▶ one result
"""

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.batches import live_file
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.storage.files import creating, read_bytes, write_bytes
from ...io.storage.parquet_files import collect, scan
from ...io.storage.places import Place
from ...io.table.opening import open_table
from ...policy.columns import Form
from ...policy.kinds import KINDS
from ...policy.parts import pages_first
from ...policy.schema import DOCUMENTS, DOCUMENTS_COLUMNS, STATUS_NAMES
from ...policy.statistics import from_json, merge, statistics_of, summary, to_json
from ...policy.vocabulary import STATUS_WORDS, iso, numbered, record_of, shown_columns, statuses_of
from ...web.base.counting import counted
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.times import in_words
from ...web.base.visible import visible_lines
from ...web.urls.row_keys import from_key
from ..checkers.checking import row_key
from ..command_line.command import TABLE, Argument, Invocation
from ..launch.job import warn_of_clocks
from ..launch.launch import LaunchOptions
from .export import Output, Part, Reading, check_dump, exported, output_of

ARGUMENTS = (
    TABLE,
    Argument("url", "Show the record of this URL. Without it, readdb shows figures.", "?"),
)
_COLUMNS = shown_columns(KINDS["state"])
# Results of parsing that the state does not have.
PARSED = DOCUMENTS_COLUMNS.pick("parse_status", "parse_minor", "parse_message", "part_of")
# The option that each of these needs, and how to write it.
_CHOOSES = {"min_score": ("top", "--top NUMBER")} | dict.fromkeys(
    ("regex", "status", "retry"),
    ("dump", "--dump FILE, where - prints the records; nutbeam sql counts by any condition"),
)
STATUS_CODES = {name: code for code, name in STATUS_NAMES.items()}


@dataclasses.dataclass(frozen=True)
class Options(LaunchOptions):
    """Options of readdb: one of stats, top and dump, or a URL, and the limits of these."""

    stats: bool = option(
        False, "Show figures about the table (the default).", nutch="readdb -stats"
    )
    dump: str = option(
        "", "Write all records to a file that ends in .jsonl or .csv, or to - as JSON lines.",
        nutch="readdb -dump",
    )  # fmt: skip
    top: int = option(
        0, "Show this many URLs with the highest scores.", minimum=0, nutch="readdb -topN"
    )
    min_score: float = option(0.0, "With --top: only URLs with at least this score.")
    regex: str = option(
        "", "With --dump: only URLs that match this expression as a whole.", nutch="readdb -regex"
    )
    status: str = option(
        "", "With --dump: only this status; fetched is db_fetched and db_notmodified.",
        choices=("", *STATUS_WORDS), nutch="readdb -status",
    )  # fmt: skip
    retry: int = option(
        0, "With --dump: only records with at least this many retries.", minimum=0,
        nutch="readdb -retry",
    )  # fmt: skip

    def __post_init__(self) -> None:
        chosen = [n for n in ("stats", "dump", "top") if getattr(self, n)]
        if len(chosen) > 1:
            raise ValueError(f"--{chosen[0]} and --{chosen[1]} contradict each other: give one")
        check_dump(self.dump, self.regex, ".jsonl", ".csv")


def run(invocation: Invocation) -> int:
    options, table = invocation.options, str(invocation.table)
    url = invocation.arguments["url"]
    if url and (options.stats or options.dump or options.top):
        raise UsageError(f"a URL stands alone, without --stats, --dump or --top: {url!r}")
    for name in invocation.typed:
        if name in _CHOOSES and not getattr(options, _CHOOSES[name][0]):
            raise UsageError(f"--{name} is only for {_CHOOSES[name][1]}")
    warn_of_clocks(table)
    if url:
        return _show_url(invocation, table, url)
    if options.dump:
        return _dump(table, options, invocation.beam_args)
    top = options.top, options.min_score
    record, best = read_statistics(table, options, invocation.beam_args, *top)
    as_json = invocation.format == "json"
    if options.top:
        for row in best:
            print(json.dumps(row) if as_json else _best_line(row))
    else:
        print(json.dumps(record) if as_json else visible_lines(_lines(record)))
    return 0


def read_statistics(
    table: str,
    options: LaunchOptions,
    beam_args: Sequence[str] = (),
    best: int = 0,
    min_score: float = 0.0,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns statistics of a table, and the URLs with the highest scores, best first.

    Args:
        table: Address of the table.
        options: Options of the launch.
        beam_args: Arguments for Beam.
        best: Number of URLs to return.
        min_score: Lowest score of these URLs.
    """

    def build(parts: beam.PCollection[Part], _: Reading) -> None:
        parts | "Look" >> beam.Map(_look, best, min_score)

    with exported(table, build, beam_args, options) as (manifest, parts):
        total = merge(from_json(read_bytes(p).decode()) for p in parts if p.suffix == ".json")
        frames = [pl.read_parquet(read_bytes(part)) for part in parts if part.suffix == ".parquet"]
    record = summary(total) | {"batches": _batches(manifest), "snapshot": manifest.snapshot}
    if not frames:
        return record, []
    rows = pl.concat(frames).sort("score", "key", descending=[True, False]).head(best)
    return record, [
        {"url": from_key(row["key"]), "repr_url": row["repr_url"], "score": row["score"],
         "status": STATUS_NAMES[row["status"]]}
        for row in rows.to_dicts()
    ]  # fmt: skip


def _best_line(row: dict[str, Any]) -> str:
    line = f"{row['score']:g}\t{row['url']}"
    return f"{line}\tshown as {row['repr_url']}" if row["repr_url"] else line


def _look(part: Part, best: int, min_score: float) -> None:
    columns = ("key", "status", "retries", "fetch_interval", "fetch_time", "score")
    reading = part.reading
    assert part.tablet is not None
    with reading.reading():
        wanted = (*columns, "repr_url") if best else columns[1:]
        rows = reading.root.read("state", [part.tablet], wanted)
    write_bytes(reading.part(part.number, ".json"), to_json(statistics_of(rows)).encode())
    if best:
        good = rows.filter((pl.col("score") >= min_score) & pl.col("score").is_not_nan())
        chosen = good.top_k(best, by="score").select("key", "score", "status", "repr_url")
        with creating(reading.part(part.number, ".parquet")) as file:
            chosen.write_parquet(file)


def _show_url(invocation: Invocation, table: str, url: str) -> int:
    manifest = newest_manifest(table)
    key = row_key(url, "URL")
    row = Reading(table, "", manifest.snapshot).find("state", key)
    if row is None:
        print("null" if invocation.format == "json" else f"{from_key(key)}: not found")
        return 1
    for name in ("page", "document"):
        file = live_file(open_table(table), manifest, row[name]) if row[name] else None
        row[name] = file.path if file else None
    if row["document"] is not None:
        row |= _parsed(open_table(table) / row["document"], key)
    columns = {column.name: column for column in (*_COLUMNS, *PARSED)}
    record = record_of(row, columns.values())
    if invocation.format == "json":
        print(json.dumps(record))
        return 0
    for name, column in columns.items():
        if column.form is Form.CODE:
            record[name] = numbered(row.get(name), column)
        elif column.unit and record[name] is not None:
            record[name] = f"{record[name]} {column.unit}"
    known = {name: value for name, value in record.items() if value not in (None, {})}
    print(visible_lines(f"{name:>16}: {value}" for name, value in known.items()))
    return 0


def _parsed(path: Place, key: str) -> dict[str, Any]:
    """Returns the result of parsing a page, from a file of documents."""
    names = [column.name for column in PARSED]
    rows = scan([path], DOCUMENTS).filter(pl.col("key") == key).select("key", *names)
    found = pages_first(collect(rows)).select(names).head(1).to_dicts()
    return found[0] if found else {}


def _dump(table: str, options: Options, beam_args: Any) -> int:
    output = output_of(options.dump, "--dump")

    def build(parts: beam.PCollection[Part], _: Reading) -> None:
        parts | "Dump" >> beam.Map(_write_dump, options, output)

    with exported(table, build, beam_args, options) as (_, parts):
        output.join(parts, [column.name for column in _COLUMNS])
    return 0


def _write_dump(part: Part, options: Options, output: Output) -> None:
    with part.reading.reading():
        output.write(part.reading.part(part.number, output.suffix), _dumped(part, options))


def _dumped(part: Part, options: Options) -> Iterator[dict[str, Any]]:
    assert part.tablet is not None
    for group in part.reading.root.scan("state", part.tablet):
        rows = group.filter(pl.col("retries") >= options.retry)
        if options.status:
            rows = rows.filter(pl.col("status").is_in(statuses_of(options.status)))
        for row in rows.iter_rows(named=True):
            record = record_of(row, _COLUMNS)
            if not options.regex or re.fullmatch(options.regex, str(record["url"])):
                yield record


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
    lines += [f"retry {n}: {number:,}" for n, number in record["retries"].items()]
    if score:
        lines += [f"score quantile {q}: {value:g}" for q, value in score["quantiles"].items()]
        lines += [f"{word} score: {score[word]:g}" for word in ("min", "avg", "max")]
    lines += [
        f"status {STATUS_CODES.get(name, 0)} ({name}): {number:,}"
        for name, number in record["status"].items()
    ]
    lines += [
        f"batch {n}: {b['phase']}, {counted(b['urls'], 'URLs')}"
        for n, b in record["batches"].items()
    ]
    return lines
