"""search: finds pages in an index of the table, once or as a search page on this machine."""

import dataclasses
import json
import re
import sys
from typing import Any

from ...io.shards.shard_files import shards_of
from ...io.shards.shard_search import Found, Hit, ShardSearch
from ...io.shards.shard_views import cache_folder, open_view
from ...io.snapshots.manifest import Manifest, Pinned, newest_manifest
from ...policy.searching.search_query import parse_search
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.visible import visible
from ..command_line.command import DONE, NOTHING_TO_DO, TABLE, Argument, Invocation, configuration

ARGUMENTS = (
    TABLE,
    Argument(
        "query",
        "Words, phrases in quotation marks, and operators: site: type: lang: after: before: "
        "inurl: intitle: and a minus before what must not be there.",
        "?",
    ),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of search."""

    index: str = option("main", "Name of the index.", group="index")
    top_n: int = option(10, "Most pages to show.", minimum=1, maximum=1000, group="search")
    serve: bool = option(
        False, "Serve a search page on this machine, until it is interrupted.", group="search"
    )
    port: int = option(
        0, "Port of the search page on loopback; 0 takes a free one.",
        minimum=0, maximum=65535, group="search",
    )  # fmt: skip
    cache_folder: str = option(
        "",
        "Folder on this machine where the index is unpacked; by default nutbeam in "
        "XDG_CACHE_HOME, or in ~/.cache.",
        group="search",
    )

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.index):
            raise ValueError(f"--index must be letters, digits, _, . and -, got {self.index!r}")


def run(invocation: Invocation) -> int:
    options, query = invocation.options, invocation.arguments["query"]
    table = str(invocation.table)
    if options.serve:
        if query is not None:
            raise UsageError("--serve takes its queries from the search page: leave out the query")
        from .search_serving import serve  # late, so that a query is fast

        return serve(SearchedTable(table, options), options.port, options.top_n)
    if query is None:
        raise UsageError("give a query, or --serve")
    with configuration():
        clauses = parse_search(query)
    found = SearchedTable(table, options).newest().search(clauses, options.top_n)
    if invocation.format == "json":
        for hit in found.hits:
            print(json.dumps(record_of_hit(hit), ensure_ascii=False))
    else:
        _show(found)
    return DONE if found.hits else NOTHING_TO_DO


class SearchedTable:
    """An index of a table, opened as its newest snapshot has it.

    Args:
        table: Address of the table.
        options: Which index, and where it is unpacked.
    """

    def __init__(self, table: str, options: Options) -> None:
        self.table, self.index = table, options.index
        self._cache = cache_folder(table, options.index, options.cache_folder)
        self._opened: tuple[str, ShardSearch] | None = None

    def newest(self) -> ShardSearch:
        """Returns the index of the newest snapshot; opens it again only if it has changed.

        Raises:
            UserError: There is no such index, or it cannot be read.
        """
        manifest = newest_manifest(self.table)
        component = manifest.components.get(shards_of(self.index))
        if component is None:
            raise UsageError(_no_index(self.table, self.index, manifest))
        if self._opened is None or self._opened[0] != component.list:
            pinned = Pinned()
            pinned.table, pinned.snapshot = self.table, manifest.snapshot
            with pinned.reading():
                files = pinned.files(shards_of(self.index))
                view = open_view(pinned.root.files, files, self._cache)
            self._opened = component.list, ShardSearch(view)
        return self._opened[1]


def _no_index(table: str, name: str, manifest: Manifest) -> str:
    parts = (component.split("/") for component in manifest.components)
    known = sorted(part[1] for part in parts if part[0] == "index" and part[-1] == "shards")
    if known:
        return f"{table!r} has no index {name!r} that can be searched: there is {', '.join(known)}"
    return f"{table!r} has no index {name!r} that can be searched: run nutbeam index {table}"


def record_of_hit(hit: Hit) -> dict[str, Any]:
    """Returns a page as a record for programs."""
    return {
        "url": hit.url,
        "title": hit.title,
        "snippet": hit.snippet,
        "marks": [list(mark) for mark in hit.marks],
        "score": hit.score,
        "fields": hit.fields,
    }


def _show(found: Found) -> None:
    """Prints pages for people: title, URL and score, snippet."""
    from rich.text import Text

    from ..command_line.console import VisibleConsole

    if not found.hits:
        print("no page found")
        return
    console = VisibleConsole(sys.stdout)
    for hit in found.hits:
        title, line = visible(hit.title or hit.url), f"{visible(hit.url)}  {hit.score:.2f}"
        console.print(Text(title, "bold"), soft_wrap=True)
        console.print(Text(line, "green"), soft_wrap=True)
        if hit.snippet:
            console.print(_marked(hit), soft_wrap=True)
        console.print()
    pages = "page" if found.total == 1 else "pages"
    console.print(Text(f"{found.total:,} {pages}"))


def _marked(hit: Hit) -> Any:
    """Returns the snippet on one line, its marks in bold."""
    from rich.text import Text

    made = Text()
    for text, is_mark in pieces(hit):
        made.append(visible(re.sub(r"\s+", " ", text)), "bold" if is_mark else None)
    return made


def pieces(hit: Hit) -> list[tuple[str, bool]]:
    """Returns the snippet in pieces, each with whether it is a mark.

    >>> pieces(Hit("u", "t", "a bc d", ((2, 4),), 1.0, {}))
    [('a ', False), ('bc', True), (' d', False)]
    """
    made, at = list[tuple[str, bool]](), 0
    for begin, end in hit.marks:
        made += [(hit.snippet[at:begin], False), (hit.snippet[begin:end], True)]
        at = end
    return [(text, mark) for text, mark in (*made, (hit.snippet[at:], False)) if text]
