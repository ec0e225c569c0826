"""Runs FetchPages on the simulated web, and compares its rows."""

import collections

import apache_beam as beam
import polars as pl
import pyarrow as pa
from running import run

from nutbeam.transforms.fetching import (
    DEAD_LETTERS_OUTPUT,
    PAGES_OUTPUT,
    admit,
)


def options(web, **more):
    return {"connect_to": list(web.connect_to), "server_delay": 0, **more}


def rows_of(*urls, **more):
    return [beam.Row(url=url, **more) for url in urls]


def fields(row):
    return row._asdict() if hasattr(row, "_asdict") else row.as_dict()


def fetched(elements, transform):
    """Returns (pages, dead letters) as dicts."""

    def build(p):
        found = p | beam.Create(elements) | transform
        return {tag: part | tag >> beam.Map(plain) for tag, part in found.items()}

    found = run(build)
    return found[PAGES_OUTPUT], found[DEAD_LETTERS_OUTPUT]


def plain(element):
    if isinstance(element, pa.Table):
        return element.to_pylist()
    row = fields(element)
    if "headers" in row:
        row["headers"] = [fields(header) for header in row["headers"]]
    return row


def asked(web, since):
    """Returns the requests since then, robots.txt aside."""
    return [r for r in web.requests() if r.time >= since and r.path != "/robots.txt"]


def pages_of(web):
    """Returns the URLs of pages, those of different hosts beside each other."""
    return sorted(web.site.urls("page"), key=lambda url: url.split("/", 3)[::-1])


def some(site):
    """Returns URLs of each kind."""
    found = collections.defaultdict(list)
    for url, kind in site.reachable().items():
        found[kind].append(url)
    assert {"page", "redirect", "missing"} <= set(found)
    return [url for urls in found.values() for url in urls[:6]]


def wanted_of(*urls):
    return admit(pl.DataFrame({"url": urls}))[0]


# Columns that differ from run to run.
VOLATILE = {"fetch_time": 0, "response_ms": 0}


def by_url(rows):
    return sorted((row | VOLATILE for row in rows if row), key=lambda row: row["url"])
