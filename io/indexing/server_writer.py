"""The base of index writers for search servers: the client, limits, and bulks."""

import abc
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping

import polars as pl

from ...web.indexing.actions import Action, action_bulks
from ...web.indexing.bulk_verdicts import BulkVerdict
from .delivery import Delivery
from .index_writer import REFUSED_DOCUMENTS, IndexTarget, IndexWriter, WriteResult
from .server_client import ServerClient
from .server_parameters import our_parameters, server_client, writer_limits


class ServerWriter(IndexWriter):
    """Writes an index on a server. Subclasses define ``_send``, and make the actions."""

    required = ("url",)

    def __init__(self, target: IndexTarget) -> None:
        parameters = our_parameters(target.parameters)
        super().__init__(dataclasses.replace(target, parameters=parameters))
        self._limits = writer_limits(parameters)
        self._client: ServerClient = server_client(parameters, packed=self._packs(parameters))
        self._delivery = Delivery(self._client.address, self._send, self._limits.patience)

    def _packs(self, parameters: Mapping[str, str]) -> bool:
        """Returns whether requests are sent with gzip."""
        return False

    @abc.abstractmethod
    def _send(self, bulk: list[Action]) -> BulkVerdict:
        """Sends a bulk, and returns the result."""

    def _deliver(
        self, *actions: Iterable[Action], counts: Counter[str] | None = None
    ) -> WriteResult:
        """Sends actions, those of each argument in bulks of their own.

        Args:
            actions: The actions to send.
            counts: Numbers by reason, to which those of the server are added.

        Returns:
            What was done.
        """
        self._delivery.count(counts or Counter())
        for group in actions:
            limits = self._limits
            self._delivery.deliver(action_bulks(group, limits.max_bytes, limits.max_documents))
        counts_by_reason, refused = self._delivery.take_results()
        return WriteResult(
            counts_by_reason, pl.DataFrame(refused, schema=REFUSED_DOCUMENTS, orient="row")
        )
