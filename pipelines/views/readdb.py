"""readdb: shows the table: statistics, one URL, the best, or all of it.

::

    state, tablet by tablet ─ figures, or rows as text ─▶ parts ─▶ one result
"""

import dataclasses
import datetime
import io
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.batches import live_file
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.storage.files import creating, read_bytes, write_bytes
from ...io.storage.parquet_files import collect, scan
from ...io.storage.places import Place
from ...io.table.opening import open_table
from ...io.tablets.tablets import tablets
from ...policy.parse_results import status_text
from ...policy.parts import pages_first
from ...policy.schema import DOCUMENTS, STATUS_NAMES
from ...policy.statistics import from_json, merge, statistics_of, summary, to_json
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.visible import visible_lines
from ...web.rules.url_rules import UrlOptions, UrlRules
from ...web.urls.row_keys import from_key
from ...web.urls.schemes import SCHEMES
from ..command_line.command import TABLE, Invocation
from ..launch.job import warn_of_clocks
from ..launch.launch import LaunchOptions
from .export import Reading, check_output, csv_line, exported, join_bytes, line_of
from .pages import Exported, tablets_of
from .row_records import DUMPED, iso, record_of

ARGUMENTS = (TABLE,)
STATUS_CODES = {name: code for code, name in STATUS_NAMES.items()}


@dataclasses.dataclass(frozen=True)
class Options(LaunchOptions):
    """Options of readdb: one of stats, url, top and dump, and what limits a dump."""

    stats: bool = option(
        False, "Show figures about the table (the default).", nutch="readdb -stats"
    )
    url: str = option("", "Show the record of one URL.", nutch="readdb -url")
    dump: str = option(
        "", "Write all records to a file that ends in .jsonl or .csv, or to - as JSON lines.",
        nutch="readdb -dump",
    )  # fmt: skip
    top: int = option(
        0, "Show so many URLs with the highest scores.", minimum=0, nutch="readdb -topN"
    )
    min_score: float = option(0.0, "With --top: no URL with a lower score.")
    regex: str = option("", "With --dump: only URLs that match as a whole.", nutch="readdb -regex")
    status: str = option(
        "", "With --dump: only this status.", choices=("", *STATUS_CODES), nutch="readdb -status"
    )
    retry: int = option(
        0, "With --dump: only records with so many retries or more.", minimum=0,
        nutch="readdb -retry",
    )  # fmt: skip

    def __post_init__(self) -> None:
        chosen = [n for n in ("stats", "url", "dump", "top") if getattr(self, n)]
        if len(chosen) > 1:
            raise ValueError(f"--{chosen[0]} and --{chosen[1]} contradict each other: give one")
        if self.dump not in ("", "-") and Path(self.dump).suffix not in (".jsonl", ".csv"):
            raise ValueError(f"--dump must end in .jsonl or .csv, got {self.dump!r}")
        try:
            re.compile(self.regex)
        except re.error as error:
            raise ValueError(
                f"--regex is no regular expression: {error}: {self.regex!r}"
            ) from error


def run(invocation: Invocation) -> int:
    options, table = invocation.options, str(invocation.table)
    warn_of_clocks(table)
    if options.url:
        return _show_url(invocation, table, options.url)
    if options.dump:
        return _dump(table, options, invocation.beam_args)
    if options.top:
        _, best = look(table, options, invocation.beam_args, options.top, options.min_score)
        for row in best:
            print(
                json.dumps(row)
                if invocation.format == "json"
                else f"{row['score']:g}\t{row['url']}"
            )
        return 0
    record, _ = look(table, options, invocation.beam_args)
    print(json.dumps(record) if invocation.format == "json" else visible_lines(_lines(record)))
    return 0


def look(
    table: str,
    options: LaunchOptions,
    beam_args: Sequence[str] = (),
    best: int = 0,
    min_score: float = 0.0,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns figures about a table, and the URLs with the highest scores, best first.

    Args:
        table: Address of the table.
        options: How to launch.
        beam_args: For Beam.
        best: How many URLs.
        min_score: No URL with a lower score.
    """
    manifest = newest_manifest(table)

    def build(readings: beam.PCollection[Reading], reading: Reading) -> None:
        _per_tablet(readings) | "Look" >> beam.Map(_look, best, min_score)

    with exported(table, build, beam_args, options) as parts:
        total = merge(from_json(read_bytes(p).decode()) for p in parts if p.suffix == ".json")
        frames = [pl.read_parquet(read_bytes(part)) for part in parts if part.suffix == ".parquet"]
    record = summary(total) | {"batches": _batches(manifest), "snapshot": manifest.snapshot}
    if not frames:
        return record, []
    rows = pl.concat(frames).sort("score", "key", descending=[True, False]).head(best)
    return record, [
        {"url": from_key(row["key"]), "score": row["score"], "status": STATUS_NAMES[row["status"]]}
        for row in rows.to_dicts()
    ]


def _per_tablet(readings: beam.PCollection[Reading]) -> beam.PCollection[Exported]:
    # The shuffle spreads the tablets over the workers.
    return readings | beam.FlatMap(tablets_of).with_output_types(Exported) | beam.Reshuffle()


def _look(exported: Exported, best: int, min_score: float) -> None:
    columns = ("key", "status", "retries", "fetch_interval", "fetch_time", "score")
    reading = exported.reading
    with reading.reading():
        wanted = columns if best else columns[1:]
        rows = reading.root.read("state", [exported.tablet], wanted)
    write_bytes(reading.part(exported.number, ".json"), to_json(statistics_of(rows)).encode())
    if best:
        good = rows.filter((pl.col("score") >= min_score) & pl.col("score").is_not_nan())
        chosen = good.top_k(best, by="score").select("key", "score", "status")
        with creating(reading.part(exported.number, ".parquet")) as file:
            chosen.write_parquet(file)


def find_row(table: str, manifest: Manifest, key: str) -> dict[str, Any] | None:
    """Returns the STATE row of a key, or None."""
    reading = Reading(table, "", manifest.snapshot)
    known = tablets(reading.files("state"))
    found = reading.root.find("state", known, pl.Series("key", [key]))
    return found.row(0, named=True) if len(found) else None


def _show_url(invocation: Invocation, table: str, url: str) -> int:
    manifest = newest_manifest(table)
    admitted = UrlRules(UrlOptions(schemes=SCHEMES)).admit(
        pl.Series([url]), "inject", filters=False
    )
    key, reason = admitted.get_column("key")[0], admitted.get_column("reason")[0]
    if key is None:
        raise UsageError(f"--url is no URL that can be crawled ({reason}): {url!r}")
    row = find_row(table, manifest, key)
    if row is None:
        print("null" if invocation.format == "json" else f"{from_key(key)}: not found")
        return 1
    record = record_of(row)
    for name in ("page", "document"):
        file = live_file(open_table(table), manifest, row[name]) if row[name] else None
        record[name] = file.path if file else None
    if record["document"] is not None:
        record |= _parsed(open_table(table) / record["document"], key)
    if invocation.format == "json":
        print(json.dumps(record))
    else:
        known = ((name, value) for name, value in record.items() if value is not None)
        print(visible_lines(f"{name:>16}: {value}" for name, value in known))
    return 0


def _parsed(path: Place, key: str) -> dict[str, str | None]:
    """Returns what a documents file says of how a page was parsed."""
    names = ("parse_status", "parse_minor", "parse_message")
    rows = scan([path], DOCUMENTS).filter(pl.col("key") == key).select("key", "part_of", *names)
    found = pages_first(collect(rows))
    if not len(found):
        return {}
    row = found.row(0, named=True)
    whole = row["part_of"]
    return {
        "parse": status_text(*(row[name] for name in names)),
        "part_of": from_key(whole) if whole else None,
    }


def _dump(table: str, options: Options, beam_args: Any) -> int:
    suffix = Path(options.dump).suffix if options.dump != "-" else ".jsonl"
    if options.dump != "-":
        check_output(Path(options.dump), "--dump")

    def build(readings: beam.PCollection[Reading], reading: Reading) -> None:
        _per_tablet(readings) | "Dump" >> beam.Map(_write_dump, options, suffix)

    head = csv_line(DUMPED).encode() if suffix == ".csv" else b""
    with exported(table, build, beam_args, options) as parts:
        if options.dump == "-":
            join_bytes(parts, sys.stdout.buffer)
        else:
            with Path(options.dump).open("wb") as file:
                join_bytes(parts, file, head)
    return 0


def _write_dump(exported: Exported, options: Options, suffix: str) -> None:
    pattern = re.compile(options.regex) if options.regex else None
    reading = exported.reading
    with (
        reading.reading(),
        creating(reading.part(exported.number, suffix)) as part,
        io.TextIOWrapper(part, encoding="utf-8", newline="") as file,
    ):
        for group in reading.root.scan("state", exported.tablet):
            rows = group.filter(pl.col("retries") >= options.retry)
            if options.status:
                rows = rows.filter(pl.col("status") == STATUS_CODES[options.status])
            for row in rows.iter_rows(named=True):
                record = record_of(row)
                if pattern is None or pattern.fullmatch(str(record["url"])):
                    file.write(line_of(record, suffix))


def _batches(manifest: Manifest) -> dict[str, Any]:
    return {
        name: {"phase": batch.phase, "urls": batch.urls, "created": iso(batch.created)}
        for name, batch in sorted(manifest.batches.items())
    }


def _lines(record: dict[str, Any]) -> list[str]:
    lines = [f"TOTAL urls: {record['total_urls']:,}"]
    interval, times, score = (record.get(n) for n in ("fetch_interval_s", "fetch_time_ms", "score"))
    if interval:
        for word, name in (("shortest", "min"), ("avg", "avg"), ("longest", "max")):
            lines.append(
                f"{word} fetch interval: {datetime.timedelta(seconds=int(interval[name]))}"
            )
    if times:
        for word, name in (("earliest fetch time", "min"), ("avg of fetch times", "avg"),
                           ("latest fetch time", "max")):  # fmt: skip
            lines.append(f"{word}: {iso(int(times[name]))}")
    lines += [f"retry {n}: {number:,}" for n, number in record["retries"].items()]
    if score:
        lines += [f"score quantile {q}: {value:g}" for q, value in score["quantiles"].items()]
        lines += [f"{word} score: {score[word]:g}" for word in ("min", "avg", "max")]
    lines += [
        f"status {STATUS_CODES.get(name, 0)} ({name}): {number:,}"
        for name, number in record["status"].items()
    ]
    lines += [f"batch {n}: {b['phase']}, {b['urls']:,} URLs" for n, b in record["batches"].items()]
    return lines
