"""The base of index writers for search servers: their parameters, and the delivery of bulks."""

import abc
import dataclasses
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import polars as pl

from ...web.base.errors import Unavailable, UsageError
from ...web.base.wording import quote_value
from ...web.indexing.server_answers import Blocked, BulkVerdict, RetryPlan
from ...web.indexing.server_bulks import Action, action_bulks, dead_letter_text
from .index_writer import REFUSED_DOCUMENTS, IndexTarget, IndexWriter, WriteResult
from .server_client import NoAnswer, ServerClient, warn_of_first_wait

_LOG = logging.getLogger(__name__)
_SPLIT_AFTER = 2  # attempts: a request that is too large for the server's memory never passes

Send = Callable[[list[Action]], BulkVerdict]
# Of every server.
PARAMETERS: Mapping[str, str] = {
    "url": "Address of the server: http://HOST:PORT or https://HOST:PORT, perhaps with a path.",
    "credentials": "File with user and password, a token or an API key, one line as for "
    "--http_credentials. Without it NUTBEAM_INDEX_API_KEY counts, or NUTBEAM_INDEX_TOKEN, or "
    "NUTBEAM_INDEX_USER and NUTBEAM_INDEX_PASSWORD.",
    "ca_file": "File with the certificates of authorities (PEM), if the server's is none of those "
    "that are known.",
    "max_bytes": "Bytes of a request, before gzip. 5,000,000 by default.",
    "max_documents": "Documents of a request. 1,000 by default.",
    "timeout": "How long the server may take for one answer, in seconds. 120 by default.",
    "patience": "How long to try again while the server takes nothing, in seconds. 600 by default.",
}
# Of OpenSearch and Elasticsearch.
SEARCH_PARAMETERS: Mapping[str, str] = {
    **PARAMETERS,
    "name": "Name of the index, which is an alias; by default that of --index.",
    "gzip": "true: requests are packed, which costs CPU and spares the network.",
    "shards": "Number of shards of an index that is created; by default the server's.",
    "replicas": "Copies of each shard of an index that is created; by default the server's.",
    "index_file": "File with settings and mappings, in JSON, for an index that is created.",
}
# Of Solr.
SOLR_PARAMETERS: Mapping[str, str] = {
    **PARAMETERS,
    "url": "Address of the core or collection: http://HOST:8983/solr/CORE.",
    "commit": "finish: commit once, at the end (default); part: after each part of the work, too; "
    "never: leave it to Solr.",
    "commit_within": "Let Solr commit within this many milliseconds.",
    "update_chain": "Chain of update processors; by default one that tolerates errors, if there "
    "is one.",
    "unknown_fields": "refuse: documents with fields that the schema does not have are refused "
    "(default); drop: without these fields they are indexed.",
}
# Parameters of Nutch's index writers, and the names of the same here.
_NUTCH_NAMES = {
    "commitSize": "max_documents",
    "max.bulk.docs": "max_documents",
    "max.bulk.size": "max_bytes",
    "index": "name",
}
# What has no meaning here: the address says it, or waiting follows the server.
_IGNORED_NUTCH_PARAMETERS = (
    *("type", "collection", "cluster", "weight.field", "bulk.close.timeout"),
    *("exponential.backoff.millis", "exponential.backoff.retries"),
    *("auth", "username", "password", "host", "port", "scheme"),
)


def our_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Returns Nutch's parameters under nutbeam's names; other parameters stay as they are.

    Raises:
        UsageError: A parameter needs something that nutbeam does not support: ZooKeeper, or a
            password in the file.

    >>> our_parameters({"host": "a,b", "port": "9200", "index": "nutch", "max.bulk.docs": "250"})
    {'name': 'nutch', 'max_documents': '250', 'url': 'http://a:9200'}
    """
    # Nutch's own file has a user without a password, and uses neither.
    if parameters.get("auth", "false").lower() == "true" or (
        "auth" not in parameters and parameters.get("password")
    ):
        raise UsageError(
            "user and password must be in a file, credentials=FILE, or in the environment, "
            "and not among the parameters of an index writer"
        )
    if parameters.get("type", "http") not in ("http", ""):
        raise UsageError(
            "type of an index writer must be http, with the url of one node, "
            f"got {quote_value(parameters['type'])}"
        )
    renamed = {_NUTCH_NAMES.get(name, name): value for name, value in parameters.items()}
    ours = {name: value for name, value in renamed.items() if name not in _IGNORED_NUTCH_PARAMETERS}
    if "url" not in ours and (hosts := parameters.get("host")):
        host = hosts.partition(",")[0].strip()
        scheme, port = parameters.get("scheme") or "http", parameters.get("port") or "9200"
        ours["url"] = f"{scheme}://{host}:{port}"
    return {name: value for name, value in ours.items() if value != ""}


class ServerWriter(IndexWriter):
    """Writes an index on a server. Subclasses define ``_send``, and make the actions."""

    required = ("url",)

    def __init__(self, target: IndexTarget) -> None:
        parameters = our_parameters(target.parameters)
        super().__init__(dataclasses.replace(target, parameters=parameters))
        self._bulk_limits = (
            self.int_parameter("max_bytes", 5_000_000, 1),
            self.int_parameter("max_documents", 1_000, 1),
        )
        self._patience = self.number_parameter("patience", 600)
        self._client = ServerClient(
            parameters.get("url", ""),
            parameters.get("credentials", ""),
            parameters.get("ca_file", ""),
            timeout=self.number_parameter("timeout", 120, 1e-3),
            packed=self._packs_requests(),
            patience=self._patience,
        )

    def _packs_requests(self) -> bool:
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
        delivery = Delivery(self._client.address, self._send, self._patience, counts or Counter())
        for group in actions:
            for bulk in action_bulks(group, *self._bulk_limits):
                delivery.deliver(bulk)
        refused = pl.DataFrame(delivery.refused, schema=REFUSED_DOCUMENTS, orient="row")
        return WriteResult(+delivery.counts, refused)


class Delivery:
    """Sends bulks one after the other, and collects what has become of them.

    Args:
        name: Name of the server in messages: its address.
        send: Sends a bulk, and returns the verdict of the server.
        patience: How long to go on without any progress, s.
        counts: Numbers by reason, to which those of the server are added.

    Attributes:
        counts: Numbers by reason.
        refused: URL, reason, and JSON of each document that was refused.
    """

    def __init__(self, name: str, send: Send, patience: float, counts: Counter[str]) -> None:
        self._name, self._send, self._patience, self.counts = name, send, patience, counts
        self.refused: list[tuple[str, str, str]] = []

    def deliver(self, bulk: list[Action]) -> None:
        """Sends a bulk until each action is done or refused.

        Raises:
            Unavailable: The server took nothing for longer than the patience.
            Blocked: It does not take any document.
        """
        plan = RetryPlan(self._patience)
        waiting_bulks = [bulk]
        while waiting_bulks:
            tried_bulk = waiting_bulks.pop()
            verdict = self._try_bulk(tried_bulk, plan)
            self.counts.update(verdict.counts)
            for action, reason in verdict.refused:
                self._refuse(action, reason)
            again = verdict.again
            if not again:
                plan.progress()
            elif verdict.at_once:
                plan.progress()
                waiting_bulks.append(again)
            elif verdict.too_large and len(again) == 1:
                self._refuse(again[0], verdict.why)
            elif verdict.too_large:
                waiting_bulks += reversed(_halves(again))
            else:
                if len(again) < len(tried_bulk):
                    plan.progress()
                self._wait(plan, verdict)
                halves = _halves(again) if plan.attempt > _SPLIT_AFTER else [again]
                waiting_bulks += reversed(halves)

    def _try_bulk(self, bulk: list[Action], plan: RetryPlan) -> BulkVerdict:
        begun = time.monotonic()
        try:
            return self._send(bulk)
        except NoAnswer as error:
            plan.add_lost_time(time.monotonic() - begun)
            return BulkVerdict(again=bulk, why=str(error), unanswered=True)
        except Blocked as error:
            raise Blocked(f"{self._name} cannot be written: {error}") from None

    def _refuse(self, action: Action, reason: str) -> None:
        self.counts["refused"] += 1
        document = "" if action.document is None else dead_letter_text(action.document)
        self.refused.append((action.url, reason, document))

    def _wait(self, plan: RetryPlan, verdict: BulkVerdict) -> None:
        seconds = plan.wait(verdict.retry_after)
        if seconds is None:
            raise Unavailable(
                f"{self._name} has taken no documents for {plan.waited:.0f} s, and the next try "
                f"would be after the patience of {plan.patience:g} s: {verdict.why}; "
                "the same command continues when it answers"
            )
        if verdict.unanswered:
            warn_of_first_wait(plan, verdict.why)
        _LOG.info("%s: %s; again in %.1f s", self._name, verdict.why, seconds)
        time.sleep(seconds)


def _halves(actions: list[Action]) -> list[list[Action]]:
    """Returns a list of actions in two, or as it is if it has one.

    >>> _halves([1, 2, 3])
    [[1], [2, 3]]
    """
    middle = len(actions) // 2
    return [part for part in (actions[:middle], actions[middle:]) if part]
