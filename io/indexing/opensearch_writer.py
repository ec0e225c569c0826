"""The index writers ``opensearch`` and ``elasticsearch``: one protocol, spoken over requests.

The name of an index on the server is an alias; the index itself is called ``NAME-VERSION``. A full
rebuild writes into a new one, and then the alias is moved to it in one step.
"""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError
from ...web.base.safe_json import json_object
from ...web.base.wording import quote_value
from ...web.indexing.server_answers import (
    NOT_ADMITTED,
    Blocked,
    BulkVerdict,
    judge_bulk,
    refused_credentials,
)
from ...web.indexing.server_bulks import Action, bulk_actions, clean_documents
from ...web.indexing.server_fields import DATE, STANDARD_FIELDS, index_body
from ...web.indexing.stored_documents import STORED_FIELDS, stored_deletes, stored_document_rows
from .index_writer import IndexTarget, WriteResult
from .server_client import ServerClient
from .server_writer import SEARCH_PARAMETERS, ServerWriter

_AT_ONCE = 5_000  # documents
_SCROLL_KEPT = "5m"  # how long the server keeps what it found, until the next request
_DATES = frozenset(name for name, (kind, _) in STANDARD_FIELDS.items() if kind == DATE)
# Only these parts of an answer are sent: they are all that is read.
_ANSWER = "errors,error,status,items.*._id,items.*.status,items.*.error"
_NUMBERED = re.compile(r"-(0|\d{12,})$")
_OLDEST = {"opensearch": (1, 0), "elasticsearch": (7, 0)}
_ALIASES_REQUIRED = (7, 10)  # the version of Elasticsearch that knows require_alias


@dataclass(frozen=True)
class Server:
    """What a server says about itself.

    Attributes:
        kind: ``opensearch`` or ``elasticsearch``.
        version: Its version, such as (8, 19).
    """

    kind: str
    version: tuple[int, ...]

    @property
    def requires_aliases(self) -> bool:
        """Whether a bulk request can say that its target must be an alias."""
        return self.kind == "opensearch" or self.version >= _ALIASES_REQUIRED


def server_of(client: ServerClient) -> Server:
    """Returns which server answers at an address.

    Raises:
        NoAnswer: None does.
        UserError: It is none of those that are known.
    """
    answer = client.ask("GET", "/")
    if answer.status in NOT_ADMITTED:
        raise UserError(f"{client.address} {refused_credentials(answer.status)}")
    version = answer.record.get("version")
    number = version.get("number") if isinstance(version, dict) else None
    match = re.match(r"(\d+)\.(\d+)", number) if isinstance(number, str) else None
    if answer.status != 200 or match is None or not isinstance(version, dict):
        raise UserError(
            f"{client.address} is no OpenSearch or Elasticsearch: it answers with status "
            f"{answer.status} and {quote_value(answer.text)}"
        )
    kind = "opensearch" if version.get("distribution") == "opensearch" else "elasticsearch"
    return Server(kind, (int(match[1]), int(match[2])))


class SearchIndex:
    """An alias with its indexes.

    Args:
        client: Client of the server.
        name: The alias.
        version: Number of the operation; a new index is called after it.
    """

    def __init__(self, client: ServerClient, name: str, version: int) -> None:
        self._client, self.name, self._version = client, name, version
        self.new = f"{name}-{version}"

    def targets(self) -> list[str]:
        """Returns the indexes of the alias; empty: there is no such alias.

        Raises:
            UserError: The server does not say.
        """
        answer = self._client.ask("GET", f"/_alias/{_path(self.name)}")
        if answer.status not in (200, 404):
            raise self._client.failure(f"show alias {self.name!r}", answer)
        return sorted(answer.record) if answer.status == 200 else []

    def ids(self, name: str) -> str | None:
        """Returns the ids of an index, or of those of an alias; None: there is none.

        The server chooses an id when it creates an index. It is empty if the server does not say.
        """
        answer = self._client.ask("GET", f"/{_path(name)}/_settings/index.uuid")
        if answer.status == 404:
            return None
        indexes = answer.record.values() if answer.status == 200 else ()
        settings = [_inside(one, "settings", "index", "uuid") for one in indexes]
        return ",".join(sorted(id_ for id_ in settings if isinstance(id_, str)))

    def is_empty(self) -> bool:
        """Returns whether searches find no documents; False if the server does not say."""
        answer = self._client.ask("GET", f"/{_path(self.name)}/_count")
        return answer.status == 404 or (answer.status == 200 and answer.record.get("count") == 0)

    def check_name(self) -> None:
        """Checks that a rebuild can give the alias its name.

        Raises:
            UserError: An index that nutbeam has not made has it.
        """
        if (
            not self.targets()
            and self.exists(self.name)
            and self.name not in self._made_by_nutbeam(self.name)
        ):
            raise UserError(
                f"{self._client.address} has an index {self.name!r} that nutbeam has not made, so "
                "no alias can have this name: choose another one by the parameter name, or delete "
                "the index"
            )

    def exists(self, name: str) -> bool:
        """Returns whether there is an index or alias of a name."""
        answer = self._client.ask("HEAD", f"/{_path(name)}")
        if answer.status not in (200, 404):
            raise self._client.failure(f"look for index {name!r}", answer)
        return answer.status == 200

    def create(self, name: str, body: dict[str, Any]) -> None:
        """Creates an index, unless it is there.

        Raises:
            UserError: The server refuses it.
        """
        answer = self._client.ask("PUT", f"/{_path(name)}", body)
        if answer.status == 200 or "resource_already_exists" in answer.text:
            return
        raise self._client.failure(f"create index {name!r}", answer)

    def begin(self, body: dict[str, Any]) -> None:
        """Creates the first index of the alias, and the alias, in one step.

        Its number is 0: each rebuild is later, even one that has begun before.

        Raises:
            UserError: The server refuses it, or such an index is there without the alias.
        """
        first = f"{self.name}-0"
        self.create(first, {**body, "aliases": {self.name: {}}})
        if not self.exists(self.name):
            raise UserError(
                f"{self._client.address} has index {first!r} without the alias {self.name!r}: "
                "delete it, or give --full"
            )

    def refresh(self, name: str) -> bool:
        """Makes what was written visible to searches; returns whether there is such an index."""
        answer = self._client.ask("POST", f"/{_path(name)}/_refresh")
        if answer.status not in (200, 404):
            raise self._client.failure(f"refresh index {name!r}", answer)
        return answer.status == 200

    def swap(self) -> None:
        """Moves the alias to the new index in one step, and removes earlier ones.

        An index of nutbeam with the name of the alias is removed in the same step. It may be called
        again.

        Raises:
            UserError: Another index has the name of the alias, or the server refuses.
        """
        targets = self.targets()
        if any(self._number(index) > self._version for index in targets):
            return  # a later rebuild was faster
        if targets != [self.new]:
            actions: list[dict[str, Any]] = [
                {"remove": {"index": index, "alias": self.name}}
                for index in targets
                if index != self.new
            ]
            if not targets and self.exists(self.name):
                self.check_name()
                actions.append({"remove_index": {"index": self.name}})
            actions.append({"add": {"index": self.new, "alias": self.name}})
            answer = self._client.ask("POST", "/_aliases", {"actions": actions})
            # Another process may have moved it at the same time.
            if answer.status != 200 and self.targets() != [self.new]:
                raise self._client.failure(f"move alias {self.name!r}", answer)
        self._remove_earlier()

    def stored_documents(self) -> Iterator[pl.DataFrame]:
        """Yields the documents that searches find: STORED rows.

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
        path = f"/{quote(self.name, safe='')}/_search?scroll={_SCROLL_KEPT}"
        find, scroll = functools.partial(self._client.find_documents, self.name, "POST"), ""
        record = find(path, wanted)
        try:
            while True:
                scroll = str(record.get("_scroll_id", ""))
                if not (hits := record["hits"]["hits"]):
                    return
                yield stored_document_rows(
                    (h["_id"], h.get("_source") or {}, h.get("_seq_no"), h.get("_primary_term"))
                    for h in hits
                )
                record = find("/_search/scroll", {"scroll": _SCROLL_KEPT, "scroll_id": scroll})
        finally:
            if scroll:
                self._client.send("DELETE", "/_search/scroll", {"scroll_id": scroll})

    def _remove_earlier(self) -> None:
        """Removes the indexes of earlier operations that nutbeam has made for this alias."""
        for name in self._made_by_nutbeam(f"{self.name}-*"):
            if 0 <= self._number(name) < self._version:
                self._client.ask("DELETE", f"/{_path(name)}")

    def _made_by_nutbeam(self, names: str) -> list[str]:
        """Returns the indexes that nutbeam has made, among those that ``names`` matches."""
        answer = self._client.ask("GET", f"/{_path(names)}/_mapping")
        mappings = answer.record.items() if answer.status == 200 else ()
        made_by = ("mappings", "_meta", "made_by")
        return [name for name, one in mappings if _inside(one, *made_by) == "nutbeam"]

    def _number(self, index: str) -> int:
        """Returns the number of the operation that made an index; -1: it was none."""
        match = re.fullmatch(re.escape(self.name) + r"-(\d+)", index)
        return int(match[1]) if match else -1


def _inside(record: Any, *names: str) -> Any:
    """Returns the value in an object inside objects; None if it is not there.

    >>> _inside({"a": {"b": 1}}, "a", "b"), _inside({"a": []}, "a", "b")
    (1, None)
    """
    for name in names:
        record = record.get(name) if isinstance(record, dict) else None
    return record


def _path(name: str) -> str:
    return quote(name, safe="*")


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
