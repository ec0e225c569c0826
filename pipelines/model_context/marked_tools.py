"""The tools of the server: their parameters, what a model reads about them, and their marked answers.

It is imported late, since it needs the packages of the Model Context Protocol.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from ...web.base.errors import UserError
from .marked_content import marked_answer
from .table_tools import TableTools

Amount = Annotated[int, Field(ge=1, le=50)]
Start = Annotated[int, Field(ge=0)]
Length = Annotated[int, Field(ge=1, le=100_000)]
_SQL = """Query the table in SQL, by DuckDB: one SELECT. It names views, and no files.
The views are {views}. 'DESCRIBE pages' lists the columns of one. The column text of pages is large:
select it for few rows."""


class MarkedTools:
    """The tools of a table, each of which a model calls by its name.

    Args:
        tools: What answers.
    """

    def __init__(self, tools: TableTools) -> None:
        self._tools = tools

    def described_tools(self) -> list[tuple[Callable[..., CallToolResult], str]]:
        """Returns the tools, each with its description for models."""
        plain = [(tool, str(tool.__doc__)) for tool in (self.search, self.read_page, self.explain)]
        return [*plain, (self.sql, _SQL.format(views=", ".join(self._tools.views())))]

    def search(self, query: str, top: Amount = 10) -> CallToolResult:
        """Search the pages by words. Operators: site: type: lang: after: before: inurl: intitle: and a
        minus before what must not be there; phrases in quotation marks.
        """
        return _answer(lambda: marked_answer(self._tools.search(query, top)))

    def read_page(
        self,
        url: str,
        form: Literal["text", "markdown"] = "text",
        start: Start = 0,
        length: Length = 20_000,
    ) -> CallToolResult:
        """Read the text of one page of the crawl, by its URL: a part of it, if it is long."""
        return _answer(lambda: _marked_page(self._tools.read_page(url, form, start, length)))

    def explain(self, url: str) -> CallToolResult:
        """Explain what the crawler decides about a URL by its default options, and why: whether it is in the
        table, filtered, due, allowed by robots.txt, and what became of it.
        """
        return _answer(lambda: marked_answer(self._tools.explain(url)))

    def sql(self, query: str) -> CallToolResult:
        """Query the table in SQL."""
        return _answer(lambda: marked_answer(self._tools.sql(query)))


def _answer(ask: Callable[[], CallToolResult]) -> CallToolResult:
    try:
        return ask()
    except UserError as error:  # its message may quote a page
        return marked_answer({"error": str(error)}, failed=True)


def _marked_page(page: dict[str, Any]) -> CallToolResult:
    """Returns the answer with a page: a line for each value, then the text."""
    named_values = ((name, value) for name, value in page.items() if name != "text")
    lines = [f"{name}: {' '.join(str(v).split())}" for name, v in named_values if v is not None]
    return marked_answer(page, "\n".join([*lines, "", page["text"]]))
