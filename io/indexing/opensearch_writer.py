"""The index writers ``opensearch`` and ``elasticsearch``: one protocol, spoken over requests."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from ...web.base.errors import UsageError, UserError
from ...web.base.safe_json import json_object
from ...web.base.wording import quote_value
from ...web.indexing.server_answers import Blocked, BulkVerdict, judge_bulk
from ...web.indexing.server_bulks import Action, bulk_actions, clean_documents
from ...web.indexing.server_fields import DATE, STANDARD_FIELDS, index_body
from ...web.indexing.stored_documents import stored_deletes
from .index_writer import IndexTarget, WriteResult
from .search_index import SearchIndex, server_of
from .server_writer import SEARCH_PARAMETERS, ServerWriter

_DATES = frozenset(name for name, (kind, _) in STANDARD_FIELDS.items() if kind == DATE)
# Only these parts of an answer are sent: they are all that is read.
_ANSWER = "errors,error,status,items.*._id,items.*.status,items.*.error"
_NUMBERED = re.compile(r"-(0|\d{12,})$")
_OLDEST = {"opensearch": (1, 0), "elasticsearch": (7, 0)}


class SearchServerWriter(ServerWriter):
    """Writes an index in OpenSearch or Elasticsearch by bulk requests.

    Each document has the operation's number as external version, so that a late attempt of an
    earlier operation changes nothing. What the server has acknowledged survives its crash.
    """

    parameters = SEARCH_PARAMETERS

    def __init__(self, target: IndexTarget) -> None:
        super().__init__(target)
        name = self.target.parameters.get("name") or target.index
        # Indexes of one server must not share an alias, or be one another's NAME-VERSION.
        if name != name.lower() or name.startswith(("-", "_", "+", ".")) or _NUMBERED.search(name):
            raise UsageError(
                f"index writer {target.name!r}: name, by default that of the index, must be in "
                "lower case, begin with a letter or digit, and not end in -0 or a time in ms, "
                f"got {quote_value(name)}"
            )
        self._index = SearchIndex(self._client, name, target.version)
        self._body = self._new_index()
        self._path = ""

    def address(self) -> str:
        """Returns the address of the alias."""
        return f"{self._client.address}/{self._index.name}"

    def mark(self) -> str:
        """Returns the server's id of the index."""
        ids = self._index.ids(self._index.new if self.target.full else self._index.name)
        return "none" if ids is None else ids

    def is_empty(self) -> bool:
        """Returns whether searches find no documents."""
        return self._index.is_empty()

    def prepare(self) -> None:
        """Reaches the server, and creates the index and its alias if they are missing."""
        server = server_of(self._client)
        if server.kind != self.kind:
            raise UserError(
                f"{self._client.address} is {server.kind}: choose that writer, got {self.kind!r}"
            )
        if server.version < _OLDEST[self.kind]:
            shown = ".".join(map(str, server.version))
            raise UserError(f"{self._client.address} is {self.kind} {shown}, which is too old")
        index = self._index
        if self.target.full:
            index.check_name()
            index.create(index.new, self._body)
        elif not index.exists(index.name):
            index.begin(self._body)

    def write(self, documents: pl.DataFrame, deletes: pl.Series) -> WriteResult:
        """Sends documents and deletes; acknowledged ones are durable."""
        clean, counts = clean_documents(documents, _DATES)
        return self._deliver(bulk_actions(clean, deletes, self.target.version), counts=counts)

    def finish(self) -> None:
        """Makes the documents visible; after a full rebuild, moves the alias to the new index."""
        if not self.target.full:
            self._index.refresh(self._index.name)
        elif self._index.refresh(self._index.new):
            self._index.swap()

    def stored_documents(self) -> Iterator[pl.DataFrame]:
        """Yields the documents that searches find: STORED rows."""
        server_of(self._client)
        self._index.refresh(self._index.name)
        yield from self._index.stored_documents()

    def remove(self, documents: pl.DataFrame) -> WriteResult:
        """Deletes stored documents, unless they have changed since they were read."""
        done = self._deliver(stored_deletes(documents))
        self._index.refresh(self._index.name)
        return done

    def _packs_requests(self) -> bool:
        return self.choice_parameter("gzip", ("false", "true")) == "true"

    def _send(self, bulk: list[Action]) -> BulkVerdict:
        self._path = self._path or self._bulk_path()
        body = b"".join(action.data for action in bulk)
        return judge_bulk(bulk, self._client.send("POST", self._path, body, "application/x-ndjson"))

    def _bulk_path(self) -> str:
        """Returns where to send: a target that must be there, since a new one would be guessed."""
        index = self._index
        name = index.new if self.target.full else index.name
        path = f"/{quote(name, safe='')}/_bulk?filter_path={_ANSWER}"
        aliased = not self.target.full and bool(index.targets())
        if not aliased and not index.exists(name):
            raise Blocked("the index does not exist")
        if aliased and server_of(self._client).requires_aliases:
            path += "&require_alias=true"
        return path

    def _new_index(self) -> dict[str, Any]:
        parameters = self.target.parameters
        if path := parameters.get("index_file"):
            try:
                body = json_object(Path(path).read_bytes())
            except (OSError, ValueError) as error:
                raise UsageError(
                    f"index_file must be a file with a JSON object, got {quote_value(path)}: {error}"
                ) from None
            mappings = body.get("mappings") or {}
            meta = {**mappings.get("_meta", {}), **index_body()["mappings"]["_meta"]}
            return {**body, "mappings": {**mappings, "_meta": meta}}
        counts = {
            name: self.int_parameter(name, 0) if parameters.get(name) else None
            for name in ("shards", "replicas")
        }
        return index_body(**counts)


class OpenSearchWriter(SearchServerWriter):
    """Writes an index in OpenSearch."""

    kind = "opensearch"


class ElasticsearchWriter(SearchServerWriter):
    """Writes an index in Elasticsearch."""

    kind = "elasticsearch"
