"""Joins what index filters read: documents, headers of pages, inlinks, ranks, rows of the state."""

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...policy.indexing.index_pages import INDEX_PAGES
from ...policy.inlinks.best_sources import best_inlinks
from ...policy.inlinks.link_keys import range_of_target
from ...policy.kinds import KINDS
from ...policy.schema import INLINKS, PAGES, conform, empty, to_frame
from ...web.rules.url_rules import host_keys
from ...web.urls.key_columns import from_keys
from ..batches.batches import documents_with_keys, live_file
from ..reading.inlinks import inlinks_of
from ..snapshots.manifest import Pinned
from ..storage.parquet_files import collect, scan
from ..tablets.file_lists import DataFile
from ..tablets.fold import Groups, folded, group_bounds
from ..tablets.tablets import Tablet, tablets

_DOCUMENT = ("key", "title", "text", "outlinks", "directives", "language", "charset",
             "content_type", "metadata", "fetch_time", "part_of")  # fmt: skip
_STATE = ("key", "status", "score", "signature", "modified_time", "repr_url", "batch_id", "retries",
          "fetch_interval", "usage")  # fmt: skip
_LINK = ("key", "target", "source", "anchor", "score", "gone_since")
_LINKS = KINDS["links"]
# Documents in one frame, unless a single one is larger.
MOST_ROWS = 2_000
MOST_BYTES = 8 << 20
# Characters of a text. Filters and writers make some copies of it, which must fit into memory.
LONGEST_TEXT = 8 << 20


@dataclasses.dataclass(frozen=True)
class Beside:
    """What index filters read besides documents and rows of the state.

    Attributes:
        columns: Those of ``headers``, ``ip``, ``anchors``, ``inlinks`` that they read.
        most: How many inlinks of a page to read.
    """

    columns: frozenset[str]
    most: int


def page_frames(
    pinned: Pinned, file: DataFile, rows: pl.DataFrame, beside: Beside, counts: Counter[str]
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yields pages whose documents are in one file, in bounded frames.

    Args:
        pinned: The snapshot.
        file: The file of documents.
        rows: Rows of the state, with its columns and ``page``; one per key.
        beside: What else to read.
        counts: Gets the number of texts that were cut, ``cut_texts``.

    Yields:
        (INDEX_PAGES rows, the given rows of the same pages in the same order).
    """
    keys = rows.get_column("key")
    others = [_answers(pinned, rows, beside.columns & {"headers", "ip"})]
    if beside.columns & {"anchors", "inlinks"}:
        others.append(anchors_and_inlinks(inlinks_of_pages(pinned, keys, beside.most)))
    others.append(_ranks(pinned, keys))
    for table in documents_with_keys(pinned.root, file, keys, _DOCUMENT):
        documents = to_frame(cut_texts(table, counts))
        known = documents.select("key").join(rows, on="key", how="left", maintain_order="left")
        found = documents.hstack(known.select(*_STATE[1:], row_metadata="metadata"))
        for other in others:
            found = found.join(other, on="key", how="left", maintain_order="left")
        size = documents.estimated_size() / max(1, len(documents))
        step = max(1, min(MOST_ROWS, int(MOST_BYTES // max(1, size))))
        for at in range(0, len(found), step):
            yield to_frame(conform(found.slice(at, step), INDEX_PAGES)), known.slice(at, step)


def cut_texts(documents: pa.Table, counts: Counter[str]) -> pa.Table:
    """Returns documents whose titles and texts are not longer than ``LONGEST_TEXT``."""
    for name in ("title", "text"):
        texts = documents[name]
        if (pc.max(pc.binary_length(texts)).as_py() or 0) > LONGEST_TEXT:
            too_long = pc.greater(pc.utf8_length(texts), LONGEST_TEXT)
            counts["cut_texts"] += pc.sum(too_long).as_py() or 0
            at = documents.schema.get_field_index(name)
            short = pc.utf8_slice_codeunits(texts, 0, LONGEST_TEXT)
            documents = documents.set_column(at, documents.schema.field(at), short)
    return documents


def _answers(pinned: Pinned, rows: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """Returns columns of the answers to the newest fetches: one row per key."""
    names = ["key", *sorted(columns)]
    found = [empty(PAGES).select(names)]
    for (page,), group in rows.group_by("page", maintain_order=True) if columns else ():
        file = live_file(pinned.root, pinned.manifest(), str(page)) if page else None
        if file is not None:
            wanted = pl.col("key").is_in(group.get_column("key").implode())
            answers = scan([pinned.root / file.path], PAGES).select(names).filter(wanted)
            found.append(collect(answers))
    return pl.concat(found).unique("key", keep="first", maintain_order=True)


def _ranks(pinned: Pinned, keys: pl.Series) -> pl.DataFrame:
    """Returns the LinkRank of pages: ``key`` and ``rank``; nothing if it was not computed."""
    schema = KINDS["page_ranks"].schema
    low, high = str(keys.min()), str(keys.max())
    files = [
        pinned.root / file.path
        for file in pinned.files("page_ranks")
        if (file.first or "") <= high and (file.last is None or file.last >= low)
    ]
    if not files:
        return empty(schema).select("key", rank="linkrank")
    wanted = pl.col("key").is_in(keys.implode())
    return collect(scan(files, schema).filter(wanted).select("key", rank="linkrank"))


def inlinks_of_pages(pinned: Pinned, keys: pl.Series, most: int) -> pl.DataFrame:
    """Returns the best inlinks of pages, best first, targets in key order.

    Only those row groups of the link table are read that may have a link to one of the pages.

    Args:
        pinned: The snapshot.
        keys: Row keys of the pages.
        most: How many of each to return.
    """
    columns = empty(INLINKS).select(_LINK)
    known = tablets(pinned.files(_LINKS.name))
    if not pinned.root.in_files(_LINKS.name):
        found = [inlinks_of(pinned, key, most).select(_LINK) for key in keys.unique().sort()]
        return pl.concat([columns, *found])
    targets = keys.unique().sort()
    parts = [columns]
    for tablet in known:
        for rows in _rows_of_targets(pinned, tablet, targets):
            wanted = rows.filter(pl.col("target").is_in(targets.implode()) & _LINKS.counting)
            parts.append(best_inlinks(wanted, most) if len(wanted) else wanted)
    return best_inlinks(pl.concat(parts), most)


def _rows_of_targets(pinned: Pinned, tablet: Tablet, targets: pl.Series) -> Iterator[pl.DataFrame]:
    ranges = [range_of_target(target) for target in targets]
    near = [
        (low, high) for low, high in ranges if low <= str(tablet.last) and high > str(tablet.first)
    ]
    if not near:
        return
    root = pinned.root.files
    schema = pa.schema([INLINKS.field(name) for name in _LINK])
    bounds = group_bounds(root, tablet)
    lows = bounds.search_sorted(pl.Series([low for low, _ in near]), side="left").to_list()
    highs = bounds.search_sorted(pl.Series([high for _, high in near]), side="left").to_list()
    for start, stop in _merged(zip(lows, highs, strict=True)):
        after = bounds[start - 1] if start else ""
        groups = Groups(start, min(len(bounds), stop + 1), after)
        yield from folded(root, schema, tablet, None, groups)


def _merged(ranges: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yields ranges of numbers, both ends included; those that meet are united.

    >>> list(_merged(iter([(0, 1), (1, 1), (2, 3), (7, 7)])))
    [(0, 3), (7, 7)]
    """
    start = stop = -1
    for low, high in ranges:
        if start >= 0 and low <= stop + 1:
            stop = max(stop, high)
            continue
        if start >= 0:
            yield start, stop
        start, stop = low, high
    if start >= 0:
        yield start, stop


def anchors_and_inlinks(links: pl.DataFrame) -> pl.DataFrame:
    """Returns ``key``, ``anchors`` and ``inlinks`` (URLs) of the targets of links.

    A text counts once per host of a source, as ``anchors_of`` does for one page.

    Args:
        links: ``target``, ``source`` and ``anchor``, best first.
    """
    sources = links.get_column("source")
    urls = from_keys(sources) if len(links) else sources
    named = links.select(key="target", anchor="anchor", host=host_keys(sources), url=urls)
    inlinks = named.group_by("key", maintain_order=True).agg(inlinks="url")
    texts = named.with_columns(pl.col("anchor").str.split("\n")).explode("anchor")
    texts = texts.filter(pl.col("anchor").is_not_null() & (pl.col("anchor") != ""))
    texts = texts.unique(["key", "host", "anchor"], keep="first", maintain_order=True)
    anchors = texts.group_by("key", maintain_order=True).agg(anchors="anchor")
    return inlinks.join(anchors, on="key", how="left", maintain_order="left")
