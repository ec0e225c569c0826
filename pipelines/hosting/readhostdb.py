"""readhostdb: shows the host table: one host, or all of them, with their figures."""

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from ...io.reading.host_rows import find_hosts, host_frames
from ...io.snapshots.manifest import newest_manifest
from ...policy.base.key_columns import from_keys
from ...policy.components.schema import HOSTS_COLUMNS
from ...policy.components.vocabulary import iso, record_of
from ...policy.expressions.compiler import Expression, condition
from ...policy.hosting.host_fields import (
    DUMP_HEADER,
    host_fields,
    host_record,
    host_values,
    is_shown,
    nutch_line,
)
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.rule_files.rule_files import host_name
from ...web.urls.row_keys import from_host_key, host_key
from ..base.command import (
    DONE,
    NOTHING_TO_DO,
    TABLE,
    Argument,
    Invocation,
    configuration,
)
from ..views.reading_job import Reading

ARGUMENTS = (TABLE, Argument("host", "Show the record of this host.", "?"))
_SHOWN = [
    column
    for column in HOSTS_COLUMNS
    if column.name
    not in ("key", "robots_text", "response_times", "linking_domains", "settings", "homepage")
]


@dataclass(frozen=True)
class Options:
    """Options of readhostdb: which hosts, and what of them."""

    GROUP = "hosts"

    expr: str = option(
        "",
        "Show only hosts for which this expression is true, such as 'gone > fetched'.",
        nutch="readhostdb -expr",
    )
    hostnames: bool = option(
        False, "Show only the names of hosts.", nutch="readhostdb -dumpHostnames"
    )
    homepages: bool = option(
        False, "Show only the home pages that were fetched.", nutch="readhostdb -dumpHomepages"
    )
    percentiles: tuple[str, ...] = option(
        ("50", "75", "95", "99"),
        "Which percentiles of the response times to show.",
        nutch="hostdb.percentiles",
    )

    def __post_init__(self) -> None:
        if self.hostnames and self.homepages:
            raise ValueError("--hostnames and --homepages contradict each other: give one")
        percents(self.percentiles)


def percents(words: tuple[str, ...]) -> list[float]:
    """Returns percentiles as numbers.

    Raises:
        ValueError: One is no number from 0 to 100.
    """
    numbers = []
    for word in words:
        try:
            numbers.append(float(word))
        except ValueError:
            numbers.append(-1.0)
        if not 0.0 <= numbers[-1] <= 100.0:
            raise ValueError(f"percentiles must be numbers from 0 to 100, got {word!r}")
    return numbers


def run(invocation: Invocation) -> int:
    options, host = invocation.options, invocation.arguments["host"]
    if host and (options.expr or options.hostnames or options.homepages):
        raise UsageError(f"a host stands alone, without --expr, --hostnames, --homepages: {host!r}")
    address = str(invocation.table)
    with configuration():
        wanted = condition(options.expr, host_fields(), now_ms()) if options.expr else None
    reading = Reading(address, "", newest_manifest(address).snapshot)
    as_json = invocation.format == "json"
    with reading.reading():
        if host:
            return _show(reading, host, options, as_json=as_json)
        return _dump(reading, wanted, options, as_json=as_json)


def _show(reading: Reading, text: str, options: Options, *, as_json: bool) -> int:
    name = host_name(text)
    if name is None:
        raise UsageError(f"a host is a name such as www.example.com, got {text!r}")
    rows = find_hosts(reading, pl.Series("key", [host_key(name)])).filter(is_shown())
    if not len(rows):
        print(f"{name}: not in the host table")
        return NOTHING_TO_DO
    record = next(_records(rows, options))
    if as_json:
        print(json.dumps(record))
    else:
        print("\n".join(f"{field}: {_text(value)}" for field, value in record.items()))
    return DONE


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _dump(reading: Reading, wanted: Expression | None, options: Options, *, as_json: bool) -> int:
    header = not (options.hostnames or options.homepages or as_json)
    if header:
        print("\t".join(DUMP_HEADER))
    any_line = False
    for frame in host_frames(reading):
        rows = host_values(frame.filter(is_shown()), wanted.needs if wanted else ())
        if wanted is not None:
            rows = rows.filter(wanted.expr)
        for line in _lines(rows, options, as_json=as_json):
            any_line = True
            print(line)
    return DONE if any_line else NOTHING_TO_DO


def _lines(rows: pl.DataFrame, options: Options, *, as_json: bool) -> Iterator[str]:
    if options.hostnames or options.homepages:
        names = rows.get_column("key").map_elements(from_host_key, return_dtype=pl.String)
        shown = names if options.hostnames else from_keys(rows.get_column("homepage").drop_nulls())
        what = "host" if options.hostnames else "homepage"
        yield from (json.dumps({what: text}) if as_json else text for text in shown)
    elif as_json:
        yield from map(json.dumps, _records(rows, options))
    else:
        for row in rows.iter_rows(named=True):
            yield nutch_line(row, iso(row["dns_time"]) or "")


def _records(rows: pl.DataFrame, options: Options) -> Iterator[dict[str, Any]]:
    percentiles = percents(options.percentiles)
    values = host_values(rows, ())
    homes = from_keys(values.get_column("homepage"))
    for row, home in zip(values.iter_rows(named=True), homes, strict=True):
        record = {"host": row["host"], **record_of(row, _SHOWN)}
        statistics = host_record(row, percentiles)
        yield {**record, **statistics, "homepage": home, "settings": _settings(row["settings"])}


def _settings(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return dict(value)
    return {item["key"]: item["value"] for item in value or ()}
