"""search: finds pages in an index of the table, once or as a search page on this machine."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ...io.indexing.shard_documents import boost_factor
from ...policy.indexing.index_options import IndexWriterOptions
from ...policy.searching.search_query import parse_search
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option, shared_option
from ...web.base.visible import visible
from ...web.plugins.plugin_files import PLUGIN_FORM, PLUGIN_NAME
from ...web.plugins.plugin_options import PluginOptions
from ..base.command import DONE, NOTHING_TO_DO, TABLE, Argument, Invocation, configuration
from ..base.served_address import ServedAddress, ServedOptions
from .forgiving_search import ForgivingSearch
from .index_search import FoundPages, Hit
from .question_vectors import QuestionVectors
from .searched_table import SearchedTable, snippet_spans

ARGUMENTS = (
    TABLE,
    Argument(
        "query",
        "Words, phrases in quotation marks, and operators: site: type: lang: after: before: "
        "inurl: intitle: and a minus before what must not be there.",
        "?",
    ),
)


@dataclass(frozen=True)
class Options(PluginOptions):
    """Options of search."""

    index: str = shared_option(IndexWriterOptions, "index")
    embedding: str = option(
        "",
        "Plug-in that makes the vector of the query, where the index has vectors: that of index "
        "--embedding. By default the one that the index names, if it is installed and no file.",
        pattern=f"|{PLUGIN_NAME}",
        form=PLUGIN_FORM,
        plugins=True,
        group="search",
    )
    least_cosine: float = option(
        0.0,
        "A page whose text lacks the words of the query is a result only if the cosine between the vectors of "
        "its best chunk and of the query is larger. It depends on the model which one says something.",
        minimum=0.0,
        maximum=1.0,
        group="search",
    )
    top: int = option(10, "Most pages to show.", minimum=1, maximum=1000, group="search")
    sort: Literal["relevance", "date"] = option(
        "relevance", "Order of pages: the best first, or the newest.", group="search"
    )
    explain: bool = option(
        False, "Show the score of each page: that of the words (BM25) times the factor of its boost.",
        group="search",
    )  # fmt: skip
    serve: bool = option(
        False, "Serve a search page on this machine, until it is interrupted.", group="search"
    )
    port: int = shared_option(ServedOptions, "port")
    host: str = shared_option(ServedOptions, "host")
    allowed_hosts: tuple[str, ...] = shared_option(ServedOptions, "allowed_hosts")
    base_path: str = shared_option(ServedOptions, "base_path")
    cors_origins: tuple[str, ...] = option(
        (),
        "Sites whose scripts may read search.json and complete.json, such as https://example.com; "
        "* for all.",
        group="search",
    )
    page_name: str = option(
        "",
        "Name of the search page, for people; by default the address of the table, and the index.",
        group="search",
    )
    export: str = option(
        "",
        "Write the index into this folder, as files that a browser searches without a server.",
        group="search",
    )
    cache_folder: str = option(
        "",
        "Folder on this machine where the index is unpacked; by default nutbeam in "
        "XDG_CACHE_HOME, or in ~/.cache.",
        group="search",
    )


def run(invocation: Invocation) -> int:
    options, query = invocation.options, invocation.arguments["query"]
    searched = SearchedTable(str(invocation.table), options.index, options.cache_folder)
    if options.export:
        if query is not None or options.serve:
            raise UsageError("--export takes no query and no --serve: run them one after the other")
        return _export(searched, options)
    if options.serve:
        address = ServedAddress(
            options.port,
            options.host,
            options.allowed_hosts,
            options.base_path,
            options.cors_origins,
        )
        if query is not None:
            raise UsageError("--serve takes its queries from the search page: leave out the query")
        from .search_serving import SearchServer, serve_search  # late, so that a query is fast

        questions = QuestionVectors(options.embedding, options.least_cosine)
        with SearchServer(searched, address, options.top, options.page_name, questions) as server:
            return serve_search(server)
    if query is None:
        raise UsageError("give a query, or --serve, or --export")
    if options.explain and options.sort == "date":
        raise UsageError(
            "--explain shows scores, and pages by --sort date have none: leave out one"
        )
    results = search_pages(invocation)
    notes = [visible(f"{note.text} {note.query}".rstrip()) for note in results.notes]
    if invocation.format == "json":
        print(*notes, sep="\n", end="\n" if notes else "", file=sys.stderr)
        for hit in results.hits:
            print(json.dumps(vars(hit), ensure_ascii=False))
    else:
        _show(results, notes, explain=options.explain)
    return DONE if results.hits else NOTHING_TO_DO


def search_pages(invocation: Invocation) -> FoundPages:
    """Returns the pages for the query of a command.

    Raises:
        UserError: The query is wrong, or there is no such index.
    """
    options, query = invocation.options, invocation.arguments["query"]
    with configuration():
        parse_search(query)  # a wrong query is refused before the index is opened
    searched = SearchedTable(str(invocation.table), options.index, options.cache_folder)
    questions = QuestionVectors(options.embedding, options.least_cosine)
    search = ForgivingSearch(searched.newest(), questions)
    return search.search(query, options.top, order=options.sort)


def _export(searched: SearchedTable, options: Options) -> int:
    from .static_export import export_index

    name = options.page_name or f"{searched.address} ({searched.index})"
    size = export_index(searched.newest(), Path(options.export), name)
    print(
        f"{size.pages:,} pages in {options.export}: {size.files:,} files, {size.bytes / 1e6:,.1f} MB; "
        f"a first search for a word loads about {size.first_bytes / 1e3:,.0f} kB"
    )
    return DONE


def _show(results: FoundPages, notes: Sequence[str], *, explain: bool) -> None:
    """Prints what to know of the query, and pages for people: title, URL, snippet.

    Args:
        results: The pages.
        notes: Lines about the query.
        explain: Whether to print scores.
    """
    from rich.text import Text

    from ..base.console import VisibleConsole

    console = VisibleConsole(sys.stdout)
    for note in notes:
        console.print(Text(note, "yellow"), soft_wrap=True)
    if not results.hits:
        print("no page found")
        return
    if notes:
        console.print()
    for hit in results.hits:
        title, line = visible(hit.title or hit.url), visible(hit.url)
        if explain:
            line += f"  {_explained(hit, results)}"
        console.print(Text(title, "bold"), soft_wrap=True)
        console.print(Text(line, "green"), soft_wrap=True)
        if hit.snippet:
            console.print(_highlight_marks(hit), soft_wrap=True)
        console.print()
    pages = "page" if results.total == 1 else "pages"
    console.print(Text(f"{results.total:,} {pages}"))


def _explained(hit: Hit, results: FoundPages) -> str:
    """Returns the score of a page, and what its boost has made of it."""
    if results.by_meaning:
        return f"score {hit.score:.4f} of its ranks by words and by meaning"
    factor = boost_factor(hit.fields.get("boost"))
    return f"score {hit.score:.2f} = words {hit.score / factor:.2f} x boost {factor:.2f}"


def _highlight_marks(hit: Hit) -> Any:
    """Returns the snippet on one line, its marks in bold."""
    from rich.text import Text

    snippet = Text()
    for text, is_mark in snippet_spans(hit):
        snippet.append(visible(re.sub(r"\s+", " ", text)), "bold" if is_mark else None)
    return snippet
