"""What a language model may ask of a table: search, the text of a page, explain, SQL. Nothing is changed."""

import threading
from typing import Any, Self

from ...io.reading.extract_runs import stored_columns
from ...io.rows.extracted_views import name_of_view
from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.pinned import Snapshot
from ...io.table.opening import open_table
from ...policy.components.schema import Status
from ...policy.components.views import views
from ...policy.page_rows import PageChoice
from ...policy.searching.search_query import parse_search
from ...web.base.errors import UsageError, UserError
from ...web.urls.row_keys import BadUrl, to_key
from ..base.command import configuration
from ..querying.limited_query import QueryLimits
from ..querying.query_process import QueryProcess
from ..searching.forgiving_search import ForgivingSearch
from ..searching.question_vectors import QuestionVectors
from ..searching.searched_table import SearchedTable
from ..views.reader import page_of_url

# The columns of a page besides its text.
_OF_PAGE = ("url", "title", "status", "language", "last_fetch_time", "modified_time")


class TableTools:
    """The questions to one table, one at a time; each sees the newest snapshot.

    Args:
        searched: The index that is searched.
        questions: Makes vectors of queries.
        limits: Limits of queries in SQL.
    """

    def __init__(
        self, searched: SearchedTable, questions: QuestionVectors, limits: QueryLimits
    ) -> None:
        self._searched, self._questions, self._address = searched, questions, searched.address
        self._queries = QueryProcess(searched.address, limits)
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._queries.close()

    def views(self) -> list[str]:
        """Returns the names of the views that ``sql`` selects from."""
        of_rules = stored_columns(open_table(self._address).files)
        return [*views(), *(name_of_view(name).strip('"') for name in of_rules)]

    def search(self, query: str, top: int) -> dict[str, Any]:
        """Returns the best pages of a query, with a snippet of each.

        Raises:
            UserError: The query is wrong, or there is no index.
        """
        with self._turn, configuration():
            parse_search(query)
            search = ForgivingSearch(self._searched.newest(), self._questions)
            results = search.search(query, top)
        hits = [
            {"url": hit.url, "title": hit.title, "snippet": hit.snippet, "score": hit.score}
            for hit in results.hits
        ]
        notes = [f"{note.text} {note.query}".rstrip() for note in results.notes]
        return {"total": results.total, "pages": hits, "notes": notes}

    def read_page(self, url: str, form: str, start: int, length: int) -> dict[str, Any]:
        """Returns a part of the newest text of a page.

        Args:
            url: Its URL.
            form: ``text`` or ``markdown``.
            start: Number of the first character, from 0.
            length: Most characters.

        Raises:
            UserError: The table has no text of the URL.
        """
        columns = views()["pages"].columns.pick(*_OF_PAGE, form)
        with self._turn:
            pinned = Snapshot(self._address, newest_manifest(self._address).snapshot)
            page = page_of_url(pinned, _key_of(url), PageChoice(columns, tuple(Status)))
        if page is None:
            raise UserError(
                f"the table has no text of {url!r}: explain says what it knows of the URL"
            )
        text = page.pop(form) or ""
        end = min(len(text), start + length)
        return page | {"text": text[start:end], "start": start, "end": end, "length": len(text)}

    def explain(self, url: str) -> dict[str, Any]:
        """Returns what the jobs decide about a URL by their usual options, and why.

        Raises:
            UserError: A file of the table is missing or damaged.
        """
        from ..views.explain import (
            Explainer,  # late: it loads Beam, for which clients need not wait
        )
        from ..views.explain import Options as ExplainOptions
        from ..views.explain_row import TableAt

        with self._turn:
            return Explainer(ExplainOptions(), TableAt(self._address)).explain(url)

    def sql(self, query: str) -> dict[str, Any]:
        """Returns the result of a query.

        Raises:
            UserError: The query is wrong or refused, or has exceeded a limit.
        """
        with self._turn:
            return self._queries.answer(query)._asdict()


def _key_of(url: str) -> str:
    try:
        return to_key(url)
    except BadUrl as error:
        raise UsageError(f"url must be a URL, got {url!r}: {error}") from error
