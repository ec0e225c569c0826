"""Joins what index filters read: documents, headers of pages, inlinks, ranks, rows of the state.

A page may have 10,000 inlinks, and a part of an index has many pages. So the links of some pages
are read at a time, and a frame of these pages is passed on.
"""

from collections import Counter
from collections.abc import Collection, Iterator

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...policy.components.document_schema import DOCUMENTS
from ...policy.components.index_schema import INDEX_PAGES, CandidateRows, IndexPageFacts
from ...policy.components.kinds import KINDS
from ...policy.components.link_rows import INLINKS, range_of_target
from ...policy.components.schema import PAGES, conform, empty, to_frame
from ...web.base.dataclass import dataclass
from ..batches.batches import documents_with_keys, named_rows
from ..reading.inlinks import by_target
from ..snapshots.pinned import Pinned
from ..storage.parquet_files import collect, scan
from ..tablets.file_lists import DataFile
from ..tablets.tablets import tablets

_DOCUMENT = ("key", "title", "text", "outlinks", "directives", "language", "charset",
             "content_type", "metadata", "fetch_time", "part_of", "parse_status", "main")  # fmt: skip
_STATE = ("key", "status", "score", "signature", "modified_time", "repr_url", "batch_id", "retries",
          "fetch_interval", "usage")  # fmt: skip
_LINK = ("key", "target", "source", "anchor", "rel", "score", "gone_since")
_BLOCKS = DOCUMENTS.field("blocks")
_LINKS, _RANKS = KINDS["links"], KINDS["page_ranks"].schema
_NO_LINKS = empty(pa.schema([INLINKS.field(name) for name in _LINK]))
# Documents with their headers and inlinks in one frame, unless a single one is larger.
_MOST_ROWS = 2_000
MOST_BYTES = 8 << 20
MOST_LINKS = 50_000  # links in one frame, unless a single page has more
# Characters of a text. Filters and writers make some copies of it, which must fit into memory.
LONGEST_TEXT = 8 << 20


@dataclass(frozen=True)
class PageNeeds:
    """What is read of pages besides what all index filters get.

    Attributes:
        columns: Those of ``headers``, ``ip``, ``anchors``, ``inlinks`` that index filters read.
        most: How many inlinks of a page to read.
        blocks: Whether the blocks of texts are read.
    """

    columns: frozenset[str]
    most: int
    blocks: bool = False


def page_frames(
    pinned: Pinned,
    file: DataFile,
    candidate_rows: CandidateRows,
    needs: PageNeeds,
    counts: Counter[str],
) -> Iterator[IndexPageFacts]:
    """Yields what is known of pages whose documents are in one file, in bounded frames.

    Args:
        pinned: The snapshot.
        file: The file of documents.
        candidate_rows: The pages to add; one row per key.
        needs: What else to read.
        counts: Gets the number of texts that were cut, ``cut_texts``.
    """
    keys = candidate_rows.get_column("key")
    ranks, headers = _ranks(pinned, keys), needs.columns & {"headers", "ip"}
    wants_links = bool(needs.columns & {"anchors", "inlinks"})
    links = PageInlinks(pinned, keys, needs.most) if wants_links else None
    blocks = [_BLOCKS.name] if needs.blocks else []
    schema = INDEX_PAGES.append(_BLOCKS) if needs.blocks else INDEX_PAGES
    for table in documents_with_keys(pinned.table, file, keys, (*_DOCUMENT, *blocks)):
        documents = to_frame(cut_texts(table, counts))
        is_whole = pl.col("text").str.len_chars() < LONGEST_TEXT
        documents = documents.with_columns(
            pl.when(is_whole).then(name).alias(name) for name in blocks
        )
        if links is not None and not documents.get_column("key").is_sorted():
            documents = documents.sort("key")
        page_candidates = documents.select("key").join(
            candidate_rows, on="key", how="left", maintain_order="left"
        )
        page_rows = documents.hstack(page_candidates.select(*_STATE[1:], row_metadata="metadata"))
        for other in (_answers(pinned, page_candidates, headers), ranks):
            page_rows = page_rows.join(other, on="key", how="left", maintain_order="left")
        with_links = ((page_rows, None),) if links is None else links.of_pages(page_rows)
        for pages, link_rows in with_links:
            yield from _in_frames(to_frame(conform(pages, schema)), page_candidates, link_rows)
            page_candidates = page_candidates[len(pages) :]


def _in_frames(
    pages: pl.DataFrame, candidate_rows: CandidateRows, link_rows: pl.DataFrame | None
) -> Iterator[IndexPageFacts]:
    """Yields pages in frames of about ``MOST_BYTES``, each with its links.

    Args:
        pages: INDEX_PAGES rows, perhaps with blocks.
        candidate_rows: The candidates of the same pages in the same order, perhaps more.
        link_rows: Links to these pages; None: no filter reads them.
    """
    size = pages.estimated_size() + (0 if link_rows is None else link_rows.estimated_size())
    step = max(1, min(_MOST_ROWS, int(MOST_BYTES * len(pages) // max(1, size))))
    for at in range(0, len(pages), step):
        frame = pages[at : at + step]
        links = None if link_rows is None else _links_of(link_rows, frame)
        yield IndexPageFacts(frame, candidate_rows[at : at + len(frame)], links)


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
    frames = [empty(PAGES).select(names)]
    if columns:
        answers_by_file = named_rows(pinned.table, pinned.manifest(), rows, "page")
        frames += [collect(answers.select(names)) for _, answers in answers_by_file]
    return pl.concat(frames).unique("key", keep="first", maintain_order=True)


def _ranks(pinned: Pinned, keys: pl.Series) -> pl.DataFrame:
    """Returns the LinkRank of pages: ``key`` and ``rank``; nothing if it was not computed."""
    low, high = str(keys.min()), str(keys.max())
    files = [
        pinned.table / file.path
        for file in pinned.files("page_ranks")
        if (file.first or "") <= high and (file.last is None or file.last >= low)
    ]
    if not files:
        return empty(_RANKS).select("key", rank="linkrank")
    wanted = pl.col("key").is_in(keys.implode())
    return collect(scan(files, _RANKS).filter(wanted).select("key", rank="linkrank"))


class PageInlinks:
    """The inlinks of the pages of a part.

    Few are read once and kept. Others are read again for each frame of documents, of which each
    needs its own row groups of the link table alone if its keys are near one another.

    Args:
        pinned: The snapshot.
        keys: Row keys of the pages.
        most: How many inlinks of a page to read.
    """

    def __init__(self, pinned: Pinned, keys: pl.Series, most: int) -> None:
        self._pinned, self._most = pinned, most
        frames = _inlinks_in_frames(pinned, keys, most)
        few = next(frames, _NO_LINKS)
        self._few = None if next(frames, None) is not None else few

    def of_pages(self, pages: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yields (pages, the links to them), in one or several frames.

        Args:
            pages: ``key`` and other columns, in the order of the keys.
        """
        if self._few is not None:
            yield pages, _links_of(self._few, pages)
            return
        start, keys = 0, pages.get_column("key")
        for links in _inlinks_in_frames(self._pinned, keys, self._most):
            # Of long URLs with the same beginning, links may come in another order.
            end = max(start, int(keys.search_sorted(links.get_column("target")[-1], side="right")))
            yield pages[start:end], links
            start = end
        if start < len(pages):
            yield pages[start:], _NO_LINKS


def _links_of(link_rows: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
    keys = pages.select(target="key")
    return link_rows.join(keys, on="target", how="semi", maintain_order="left")


def _inlinks_in_frames(pinned: Pinned, keys: pl.Series, most: int) -> Iterator[pl.DataFrame]:
    """Yields the best inlinks of pages, by target in key order, and best first.

    A target is never divided between two frames. Reads only the parts of the link table that may
    have a link to one of the pages.

    Args:
        pinned: The snapshot.
        keys: Row keys of the pages.
        most: How many of each to return.
    """
    held: list[pl.DataFrame] = []
    number = 0
    for links in by_target(_links_to(pinned, keys.unique()), most):
        for part in _whole_targets(links):
            if held and number + len(part) > MOST_LINKS:
                yield pl.concat(held)
                held, number = [], 0
            held.append(part)
            number += len(part)
    if held:
        yield pl.concat(held)


def _whole_targets(links: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yields links in parts of at most ``MOST_LINKS``, or those of a single target."""
    start = end = 0
    for length in links.get_column("target").rle().struct.field("len"):
        if end > start and end + length - start > MOST_LINKS:
            yield links[start:end]
            start = end
        end += length
    if end > start:
        yield links[start:end]


def _links_to(pinned: Pinned, targets: pl.Series) -> Iterator[pl.DataFrame]:
    """Yields the current links to some targets; the rows of a target one after the other."""
    wanted = pl.col("target").is_in(targets.implode()) & _LINKS.counting
    link_tablets, ranges = tablets(pinned.files(_LINKS.name)), sorted(map(range_of_target, targets))
    for rows in pinned.table.read_ranges(_LINKS.name, link_tablets, ranges, _LINK):
        yield rows.filter(wanted)
