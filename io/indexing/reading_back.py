"""Reads back what a search server has stored."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import polars as pl

from ...web.base.errors import UserError
from ...web.indexing.bulk_verdicts import ServerAnswer
from ...web.indexing.server_fields import SolrSchema
from ...web.indexing.stored_documents import STORED_FIELDS, stored_document_rows
from .server_client import ServerClient

_AT_ONCE = 5_000
_KEPT = "5m"  # how long the server keeps what it found, until the next request


def stored_in_search(client: ServerClient, index: str) -> Iterator[pl.DataFrame]:
    """Yields the documents of an index in OpenSearch or Elasticsearch: STORED rows.

    Raises:
        UserError: The server does not show them.
    """
    wanted = {
        "size": _AT_ONCE,
        "sort": ["_doc"],
        "seq_no_primary_term": True,
        "_source": list(STORED_FIELDS),
        "query": {"match_all": {}},
    }
    path = f"/{quote(index, safe='')}/_search?scroll={_KEPT}"
    answer = _check_answer(client, client.send("POST", path, wanted), index)
    scroll = ""
    try:
        while True:
            record = answer.record
            scroll = str(record.get("_scroll_id", ""))
            hits = record["hits"]["hits"]
            if not hits:
                return
            yield stored_document_rows(
                (hit["_id"], hit.get("_source") or {}, hit.get("_seq_no"), hit.get("_primary_term"))
                for hit in hits
            )
            following = {"scroll": _KEPT, "scroll_id": scroll}
            answer = _check_answer(client, client.send("POST", "/_search/scroll", following), index)
    finally:
        if scroll:
            client.send("DELETE", "/_search/scroll", {"scroll_id": scroll})


def stored_in_solr(client: ServerClient, schema: SolrSchema) -> Iterator[pl.DataFrame]:
    """Yields the documents of a core of Solr, as STORED rows.

    Raises:
        UserError: The server does not return the documents.
    """
    stored_names = [name for name in STORED_FIELDS if schema.type_of(name) is not None]
    mark = "*"
    while True:
        params = {
            "q": "*:*", "defType": "lucene", "fl": ",".join(stored_names), "sort": "id asc",
            "rows": str(_AT_ONCE), "cursorMark": mark, "wt": "json",
        }  # fmt: skip
        answer = client.send("GET", "/select", params=params)
        record = _check_answer(client, answer, "the core").record
        documents = record["response"]["docs"]
        if documents:
            yield stored_document_rows((fields["id"], fields, None, None) for fields in documents)
        if record.get("nextCursorMark", mark) == mark:
            return
        mark = record["nextCursorMark"]


def _check_answer(client: ServerClient, answer: ServerAnswer, what: str) -> ServerAnswer:
    record: dict[str, Any] = answer.record
    if answer.status == 200 and ("hits" in record or "response" in record):
        return answer
    raise UserError(
        f"{client.address} does not show the documents of {what}: status {answer.status}, "
        f"{answer.text}"
    )
