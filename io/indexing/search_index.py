"""The index of a writer in OpenSearch or Elasticsearch: an alias of the index that it means.

The index itself is called ``NAME-VERSION``. A full rebuild writes into a new one, and then the
alias is moved to it in one step.
"""

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import polars as pl

from ...web.base.errors import UserError
from ...web.base.wording import quote_value
from ...web.indexing.server_answers import NOT_ADMITTED, refused_credentials
from ...web.indexing.stored_documents import STORED_FIELDS, stored_document_rows
from .server_client import ServerClient

_AT_ONCE = 5_000  # documents
_SCROLL_KEPT = "5m"  # how long the server keeps what it found, until the next request
_ALIASES_REQUIRED = (7, 10)  # the version of Elasticsearch that knows require_alias


@dataclasses.dataclass(frozen=True)
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
        if not self.targets() and self.exists(self.name) and not self._has_made(self.name):
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

    def _has_made(self, name: str) -> bool:
        return name in self._made_by_nutbeam(name)

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
