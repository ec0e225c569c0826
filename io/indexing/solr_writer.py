"""The index writer ``solr``: updates in JSON, and commits by a policy."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import polars as pl

from ...web.base.errors import UserError
from ...web.base.wording import quote_value
from ...web.indexing.server_answers import (
    NOT_ADMITTED,
    BulkVerdict,
    ServerAnswer,
    judge_update,
    refused_credentials,
)
from ...web.indexing.server_bulks import Action, clean_documents, solr_actions, solr_deletes
from ...web.indexing.server_fields import (
    REBUILD_FIELDS,
    VERSION_FIELD,
    SolrSchema,
    read_schema,
    tolerant_chain,
)
from ...web.indexing.stored_documents import STORED_FIELDS, stored_document_rows
from .index_writer import IndexTarget, WriteResult
from .server_writer import SOLR_PARAMETERS, ServerWriter

_AT_ONCE = 5_000  # documents


class SolrWriter(ServerWriter):
    """Writes an index in Solr.

    Documents are visible after a commit, by default one at the end. A full rebuild sends all
    documents, deletes those of earlier operations, and then commits: searches see both at once.
    Without the field ``index_version`` earlier documents vanish by their ids, after that commit.
    """

    kind = "solr"
    parameters = SOLR_PARAMETERS

    def __init__(self, target: IndexTarget) -> None:
        super().__init__(target)  # without gzip, which Solr does not take
        self._commit = self.choice_parameter("commit", ("finish", "part", "never"))
        within = self.int_parameter("commit_within", 0)
        self._within = f"&commitWithin={within}" if within else ""
        self._drops = self.choice_parameter("unknown_fields", ("refuse", "drop")) == "drop"
        self._schema: SolrSchema | None = None
        self._path = ""

    def address(self) -> str:
        """Returns the address of the core."""
        return self._client.address

    def is_empty(self) -> bool:
        """Returns whether searches find no documents; False if commits are left to Solr."""
        if self._commit == "never":
            return False
        params = {"q": "*:*", "defType": "lucene", "rows": "0", "wt": "json"}
        answer = self._client.ask("GET", "/select", params=params)
        response = answer.record.get("response")
        return isinstance(response, dict) and response.get("numFound") == 0

    def prepare(self) -> None:
        """Reaches the core, and adds the fields that its schema lacks, if that can be changed."""
        schema = self._read_schema()
        if schema.key != "id":
            raise UserError(
                f"{self._client.address}: the unique key of the schema must be 'id', "
                f"got {quote_value(schema.key)}"
            )
        if lacking := schema.lacking():
            answer = self._client.ask("POST", "/schema", {"add-field": lacking})
            # Another run may have added them at the same time.
            schema = self._read_schema()
            if self.target.full and not any(schema.type_of(name) for name in REBUILD_FIELDS):
                raise UserError(
                    f"{self._client.address}: to build the index again, the schema must have one of "
                    f"the fields {', '.join(REBUILD_FIELDS)}, and it cannot be changed from here: "
                    f"{answer.text}"
                )

    def write(self, documents: pl.DataFrame, deletes: pl.Series) -> WriteResult:
        """Sends documents and deletes; they are visible after a commit."""
        schema = self._schema or self._read_schema()
        indexable = documents
        if self._drops:
            indexable = documents.select(
                name for name in documents.columns if schema.type_of(name) is not None
            )
        clean, counts = clean_documents(indexable, schema.dates(indexable.columns))
        extra: dict[str, Any] = {}
        if schema.type_of(VERSION_FIELD) is not None:
            extra = {VERSION_FIELD: self.target.version}
        return self._deliver(solr_actions(clean, extra), solr_deletes(deletes), counts=counts)

    def close(self) -> WriteResult:
        """Commits, if that is the policy."""
        if self._commit == "part":
            self._update({"commit": {}}, "commit")
        return WriteResult()

    def leaves_earlier(self) -> bool:
        """Returns whether the schema lacks the field by which earlier documents are deleted."""
        return self._read_schema().type_of(VERSION_FIELD) is None

    def finish(self) -> None:
        """Commits; after a full rebuild, documents of earlier operations vanish with it."""
        if self.target.full and not self.leaves_earlier():
            earlier = f"*:* -{VERSION_FIELD}:[{self.target.version} TO *]"
            self._update({"delete": {"query": earlier}}, "delete the documents of earlier indexes")
        if self._commit != "never":
            self._update({"commit": {}}, "commit")

    def stored_documents(self) -> Iterator[pl.DataFrame]:
        """Yields the documents that searches find: STORED rows.

        Raises:
            UserError: The server does not show them.
        """
        schema = self._read_schema()
        stored_names = [name for name in STORED_FIELDS if schema.type_of(name) is not None]
        mark, next_mark = "", "*"
        while mark != next_mark:
            mark = next_mark
            params = {
                "q": "*:*", "defType": "lucene", "fl": ",".join(stored_names), "sort": "id asc",
                "rows": str(_AT_ONCE), "cursorMark": mark, "wt": "json",
            }  # fmt: skip
            record = self._client.find_documents("the core", "GET", "/select", params=params)
            if documents := record["response"]["docs"]:
                yield stored_document_rows(
                    (fields["id"], fields, None, None) for fields in documents
                )
            next_mark = record.get("nextCursorMark", mark)

    def remove(self, documents: pl.DataFrame) -> WriteResult:
        """Deletes stored documents, and commits unless commits are left to Solr."""
        done = self._deliver(solr_deletes(documents.get_column("id")))
        if self._commit != "never":
            self._update({"commit": {}}, "commit")
        return done

    def _send(self, bulk: list[Action]) -> BulkVerdict:
        self._path = self._path or self._update_path()
        if bulk[0].document is None:
            body = b'{"delete":[' + b",".join(action.data for action in bulk) + b"]}"
        else:
            body = b"[" + b",".join(action.data for action in bulk) + b"]"
        return judge_update(bulk, self._client.send("POST", self._path, body))

    def _update_path(self) -> str:
        """Returns where to send, with the chain of processors and the time of the commit."""
        chain = self.target.parameters.get("update_chain")
        if chain is None:
            answer = self._client.ask("GET", "/config/updateRequestProcessorChain")
            chain = tolerant_chain(answer.record)
        chosen = f"&update.chain={quote(chain, safe='')}" if chain else ""
        return f"/update?wt=json{chosen}{self._within}"

    def _update(self, body: dict[str, Any], what: str) -> None:
        answer = self._client.ask("POST", "/update?wt=json", body)
        if answer.status != 200:
            self._fail(what, answer)

    def _read_schema(self) -> SolrSchema:
        answer = self._client.ask("GET", "/schema?wt=json")
        if answer.status != 200:
            self._fail("show its schema", answer)
        try:
            self._schema = read_schema(answer.record)
        except ValueError as error:
            raise UserError(
                f"{self._client.address} is no core of Solr: {error}, {quote_value(answer.text)}"
            ) from None
        return self._schema

    def _fail(self, what: str, answer: ServerAnswer) -> None:
        if answer.status in NOT_ADMITTED:
            raise UserError(f"{self._client.address} {refused_credentials(answer.status)}")
        raise self._client.failure(what, answer)
