"""``nutbeam.Table``: a web table in Python, read and changed by methods."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ..base.call_values import check_kind, table_address
from .calls import calling, read_call, with_options, with_parameters_of
from .python_wording import method_hint
from .results import CrawlResult, Explanation, HistoryEntry, TableStats
from .table_jobs import TableAddress, TableJobs
from .table_pages import NESTED, TablePage

if TYPE_CHECKING:
    import datetime

    import polars as pl
    import pyarrow as pa

    from ..searching.index_search import FoundPages
    from .job_keywords import CrawlKeywords, ExplainKeywords

TextPart = Literal["main", "all"]


class Table(TableJobs):
    """A web table: a folder, or an address such as ``gs://…``, ``s3://…``, ``hdfs://…``, ``bigtable://…``.

    A table holds no open files and needs no ``with``. Each call reads the snapshot that is the newest
    then, whole, even while other processes write. Of the jobs, ``crawl``, ``inject``, ``sitemap`` and
    the imports begin a table that does not exist yet.

    Attributes:
        address: Its address.
        last_crawl: The result of the crawl that ``nutbeam.crawl`` has done; else None.
    """

    def __init__(self, address: TableAddress) -> None:
        self.address = table_address(address)
        self.last_crawl: CrawlResult | None = None

    def __fspath__(self) -> str:
        return self.address

    def __repr__(self) -> str:
        return f"nutbeam.Table({self.address!r})"

    if not TYPE_CHECKING:  # else type checkers would take any name

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"nutbeam.Table has no attribute {name!r}{method_hint(name, dir(self))}"
            )

    def pages(
        self,
        *,
        columns: Sequence[str] = (),
        text_of: TextPart = "all",
        markdown_links: bool = True,
        snapshot: int | None = None,
        since: "int | str | datetime.date | None" = None,
    ) -> Iterator[TablePage]:
        """Returns the pages that are alive, each with its newest text, in no order.

        Memory holds the texts of one file of the table at a time.

        Args:
            columns: Names of the columns to read; the others are None. Without any, all are read but
                ``markdown``, ``blocks``, ``main``, ``structured_data``, ``headers``, ``body``, ``batch_id``
                and ``key``.
            text_of: ``main``: the text is the main content alone, without navigation and the like.
            markdown_links: Whether the Markdown has the targets of links, and images.
            snapshot: Number of the snapshot; None is the newest.
            since: Only pages that are new, changed or gone since a snapshot: its number, or a date or time;
                without a zone it is UTC. Then ``change`` says which; one that is gone has no text.

        Raises:
            UserError: There is no such column or snapshot, or the table cannot be read.
        """
        from ..views.reader import read

        with calling(self.address):
            batches = read(
                self, "pages", columns=columns, into="batches", text_of=text_of,
                markdown_links=markdown_links, snapshot=snapshot, since=since,
            )  # fmt: skip
        return _records_of(batches, self.address)

    def arrow(
        self,
        what: str = "state",
        *,
        columns: Sequence[str] = (),
        text_of: TextPart = "all",
        markdown_links: bool = True,
        snapshot: int | None = None,
        since: "int | str | datetime.date | None" = None,
    ) -> "pa.Table":
        """Returns rows as a ``pyarrow.Table``; pages are in no order.

        Args:
            what: ``state``, ``hosts``, ``pages``, ``outlinks``, ``batches`` or another view of
                docs/reference/data.md.
            columns: Names of the columns to read; without any, all, as ``pages`` does.
            text_of, markdown_links, since: As in ``pages``.
            snapshot: Number of the snapshot; None is the newest.

        Raises:
            UserError: There is no such view, column or snapshot, or the table cannot be read.
        """
        from ..views.reader import read

        with calling(self.address):
            rows: pa.Table = read(
                self, what, columns=columns, into="arrow", text_of=text_of,
                markdown_links=markdown_links, snapshot=snapshot, since=since,
            )  # fmt: skip
        return rows

    @with_parameters_of(arrow)
    def frame(self, *args: Any, **keywords: Any) -> "pl.DataFrame":
        """Returns rows as a polars frame; with the arguments of ``arrow``."""
        from ...policy.components.schema import to_frame

        return to_frame(self.arrow(*args, **keywords))

    def chunks(
        self,
        limit: int = 512,
        *,
        tokenizer: str = "words",
        columns: Sequence[str] = (),
        text_of: TextPart = "all",
        markdown_links: bool = True,
        snapshot: int | None = None,
    ) -> "pl.DataFrame":
        """Returns the texts of pages in chunks, as ``nutbeam.read_chunks`` does."""
        from ..views.reader import read_chunks

        with calling(self.address):
            chunks: pl.DataFrame = read_chunks(
                self,
                limit,
                tokenizer=tokenizer,
                columns=columns,
                text_of=text_of,
                markdown_links=markdown_links,
                snapshot=snapshot,
            )
        return chunks

    def sql(self, query: str, *, memory_limit: float = 0.0) -> "pl.DataFrame":
        """Returns the rows of a SELECT, by DuckDB over the newest snapshot (``nutbeam[sql]``).

        Args:
            query: The SELECT; docs/guides/query.md has the views.
            memory_limit: Memory that DuckDB may use, in bytes; 0 is its own default.

        Raises:
            UserError: The query is wrong, is more than one SELECT, or the table cannot be read.
        """
        from ...io.storage.processes import all_in_scratch
        from ...policy.components.schema import to_frame
        from ..querying.sql import query_rows

        check_kind("query", query, str)
        with calling(self.address), all_in_scratch():
            _, invocation = read_call("sql", (self.address,), {"memory_limit": memory_limit})
            return to_frame(query_rows(self.address, query, invocation.options.memory_limit))

    def stats(self) -> TableStats:
        """Returns figures about the table, as ``nutbeam readdb`` shows them."""
        from ..launch.launch import LaunchOptions
        from ..views.readdb import read_statistics

        with calling(self.address):
            record, _ = read_statistics(self.address, LaunchOptions())
        return TableStats.of(record)

    @with_options("explain")
    def explain(self, url: str, **options: "Unpack[ExplainKeywords]") -> Explanation:
        """Returns what would happen to a URL, and why, as ``nutbeam explain`` shows it.

        Args:
            url: The URL as it was found; it need not be in the table.
        """
        from ..views.explain import explainer_of, verdict

        with calling(self.address):
            _, invocation = read_call("explain", (self.address, url), options)
            record = explainer_of(invocation).explain(url)
        given = record["url"], verdict(record), record["reason"], record["normalized"]
        return Explanation(*given, record.get("row"), record)

    def history(self, last: int = 20) -> list[HistoryEntry]:
        """Returns the snapshots, the newest first, as ``nutbeam history`` shows them.

        Args:
            last: How many; 0 is all.
        """
        from ...io.snapshots.manifest import newest_manifest
        from ...io.table.opening import open_table
        from ...io.upkeep.rollback import events
        from ..views.history import event_record

        with calling(self.address):
            read_call("history", (self.address,), {"last": last})
            newest_manifest(self.address)
            records = [event_record(event) for event in events(open_table(self.address), last)]
        return [HistoryEntry.of(record) for record in reversed(records)]

    def search(
        self,
        query: str,
        *,
        index: str = "main",
        top: int = 10,
        sort: Literal["relevance", "date"] = "relevance",
        embedding: str = "",
    ) -> "FoundPages":
        """Returns the best pages of a query in an index that ``index`` has made.

        Args:
            query: Words, phrases and operators, as in ``nutbeam search``.
            index: Name of the index.
            top: Most pages to return, 1 to 1,000.
            sort: Order of pages: the best first, or the newest.
            embedding: Plug-in that makes the vector of the query; as in ``nutbeam search``.

        Raises:
            UserError: The query is wrong, or there is no such index.
        """
        from ..searching.search import search_pages

        options = {"index": index, "top": top, "sort": sort, "embedding": embedding}
        with calling(self.address):
            return search_pages(read_call("search", (self.address, query), options)[1])


def _records_of(batches: Any, table: str) -> Iterator[TablePage]:
    """Yields the rows of Arrow batches of a table as pages."""
    while True:
        with calling(table):
            batch = next(batches, None)
        if batch is None:
            return
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            yield _page_of(row)


def _page_of(row: Mapping[str, Any]) -> TablePage:
    values = dict(row)
    for name, kind in NESTED.items():
        if values.get(name) is not None:
            values[name] = tuple(kind(**item) for item in values[name])
    return TablePage(**values)


@with_options("crawl")
def crawl(table: TableAddress, *seeds: TableAddress, **options: "Unpack[CrawlKeywords]") -> Table:
    """Crawls, and returns the table; the same call again fetches only what is due.

    It does what ``nutbeam crawl`` does, with the same options by name, the same defaults, and the same
    errors as exceptions. Nothing is printed without ``progress=True``. Ctrl-C raises
    ``KeyboardInterrupt``: what was fetched is kept, and the same call goes on.

    Args:
        table: Folder or address of the table.
        seeds: URLs, files and folders of URLs; none if the table exists.

    Raises:
        NothingFetched: URLs were tried, and no page was fetched.
        UserError: An option is wrong, or the crawl failed; the message is that of the command line, with
            keywords and methods in place of options and commands.
    """
    crawled = Table(table)
    crawled.last_crawl = crawled.crawl(*seeds, **options)
    return crawled


def open(table: TableAddress) -> Table:
    """Returns a table that exists.

    Args:
        table: Folder or address of the table.

    Raises:
        NoTable: There is none.
        UserError: It cannot be read.
    """
    from ...io.snapshots.manifest import newest_manifest

    opened = Table(table)
    with calling(opened.address):
        newest_manifest(opened.address)
    return opened
