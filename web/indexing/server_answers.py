"""What an answer of a search server means for the bulk that was sent, and when to send it again."""

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.dataclass import dataclass
from ..base.errors import UserError, one_line
from ..base.safe_json import object_or_empty
from ..exchange.status import seconds_to_wait
from .server_bulks import Action

NOT_ADMITTED = (401, 403)
_SHOWN = 300  # characters of a reason
BUSY = (429, 502, 503, 504)
# Errors of a document's answer that are not in the document: nothing more can be written.
_BLOCKED = {
    "cluster_block_exception": "the index is read-only, or the disk of the server is full",
    "security_exception": "the user may not write it",
    "index_closed_exception": "the index is closed",
    "index_not_found_exception": "the index does not exist",
}
# A request of more bytes than the server ever takes at once gets 429 whenever it is sent.
_NEEDED = re.compile(r"coordinating_operation_bytes=(\d+)")
_ALLOWED = re.compile(r"max_coordinating(?:_and_primary)?_bytes=(\d+)")


class Blocked(UserError):
    """A server does not take any document, for a reason that its operator can correct."""


@dataclass(frozen=True)
class ServerAnswer:
    """An answer of a server.

    Attributes:
        status: HTTP status.
        body: Its body, unpacked.
        retry_after: What the header Retry-After says; empty if there is none.
        content_type: Its Content-Type.
    """

    status: int
    body: bytes = b""
    retry_after: str = ""
    content_type: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """The JSON object in the body; empty if there is none."""
        return object_or_empty(self.body)

    @property
    def is_odd(self) -> bool:
        """Whether it seems to be a success, but is no JSON object, such as a page in HTML."""
        return self.status == 200 and bool(self.body) and self.body.lstrip()[:1] != b"{"

    @property
    def text(self) -> str:
        """The reason in the body, in one line."""
        return _reason_of(self.record.get("error")) or one_line(
            self.body[:_SHOWN].decode("utf-8", "replace")
        )


@dataclasses.dataclass
class BulkVerdict:
    """What has become of a bulk.

    Attributes:
        counts: Number of actions that are done, by reason.
        refused: (action, reason) of documents that the server never takes.
        again: Actions that must be sent again.
        too_large: Whether these must be sent in smaller bulks.
        at_once: Whether these can be sent without waiting.
        why: Why they must be sent again.
        retry_after: When, as the server says in seconds or a date; may be empty.
        unanswered: Whether there was no answer.
    """

    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    refused: list[tuple[Action, str]] = dataclasses.field(default_factory=list)
    again: list[Action] = dataclasses.field(default_factory=list)
    too_large: bool = False
    at_once: bool = False
    why: str = ""
    retry_after: str = ""
    unanswered: bool = False


def judge_bulk(bulk: Sequence[Action], answer: ServerAnswer) -> BulkVerdict:
    """Returns what has become of a bulk that was sent to ``_bulk``.

    Raises:
        Blocked: The server refuses all documents, whatever they are.
    """
    whole = _judge_request(bulk, answer)
    if whole is not None:
        return whole
    items = answer.record.get("items")
    if not isinstance(items, list):
        return BulkVerdict(again=list(bulk), why=f"it answered no list of items: {answer.text}")
    verdict = BulkVerdict()
    at = 0
    for action, item in zip(bulk, items, strict=False):
        if not isinstance(item, dict) or len(item) != 1:
            break
        (result,) = item.values()
        if not isinstance(result, dict) or result.get("_id") != action.id:
            break
        _judge_item(action, result, verdict)
        at += 1
    if at < len(bulk):  # what has no answer was perhaps not done
        verdict.again += bulk[at:]
        verdict.why = f"it answered for {at} of {len(bulk)} documents"
    return verdict


def _judge_item(action: Action, result: Mapping[str, Any], verdict: BulkVerdict) -> None:
    status = result.get("status")
    status = status if isinstance(status, int) else 500
    deletes = action.document is None
    if 200 <= status < 300:
        verdict.counts["deleted" if deletes else "added"] += 1
        return
    error = result.get("error")
    kind, why = _type_of(error), _reason_of(error)
    if status == 404 and deletes and not kind:
        verdict.counts["not_there"] += 1
    elif status == 409:  # a later operation was faster
        verdict.counts["newer"] += 1
    elif status >= 500 or status == 429:
        verdict.again.append(action)
        verdict.too_large |= never_fits(why)
        verdict.why = f"status {status}, {why}"
    elif kind in _BLOCKED:
        raise Blocked(f"{_BLOCKED[kind]}: {why}")
    else:
        verdict.refused.append((action, why or f"status {status}"))


def _judge_request(bulk: Sequence[Action], answer: ServerAnswer) -> BulkVerdict | None:
    """Returns the verdict on a request that failed as a whole; None if it did not.

    Raises:
        Blocked: The server refuses the request, whatever is in it.
    """
    status = answer.status
    if status == 200:
        return None
    why = f"status {status}, {answer.text}".rstrip(", ")
    if status == 413 or (status == 429 and never_fits(answer.text)):
        return BulkVerdict(again=list(bulk), too_large=True, why=why)
    if status in BUSY or status >= 500:
        return BulkVerdict(again=list(bulk), why=why, retry_after=answer.retry_after)
    if status == 400 and len(bulk) > 1:  # something in the bulk: look for it
        return BulkVerdict(again=list(bulk), too_large=True, why=why)
    if status == 400:
        return BulkVerdict(refused=[(bulk[0], answer.text or why)])
    if status in NOT_ADMITTED:
        kind = _type_of(answer.record.get("error"))
        if kind in _BLOCKED:
            raise Blocked(f"{_BLOCKED[kind]}: {answer.text}")
        raise Blocked(f"it {refused_credentials(status)}")
    raise Blocked(f"it refuses the request ({why})")


def refused_credentials(status: int) -> str:
    """Returns what a server does with one of the statuses ``NOT_ADMITTED``."""
    return f"refuses the credentials, or got none (status {status})"


def never_fits(reason: str) -> bool:
    """Returns whether a request was refused because it is larger than the server ever takes.

    >>> never_fits("rejected [coordinating_operation_bytes=9, max_coordinating_and_primary_bytes=5]")
    True
    >>> never_fits("rejected [coordinating_operation_bytes=4, max_coordinating_bytes=5]")
    False
    """
    needed, allowed = _NEEDED.search(reason), _ALLOWED.search(reason)
    return bool(needed and allowed and int(needed[1]) > int(allowed[1]))


def _reason_of(error: Any) -> str:
    """Returns type and reason of an error of OpenSearch, Elasticsearch or Solr, in one line.

    >>> _reason_of({"type": "a", "reason": "b", "caused_by": {"type": "c", "reason": "d"}})
    'a: b (c: d)'
    >>> _reason_of({"msg": "no such field", "code": 400})
    'no such field'
    """
    if isinstance(error, str):
        return one_line(error, _SHOWN)
    if not isinstance(error, Mapping):
        return ""
    parts = [error.get("type"), error.get("reason") or error.get("msg")]
    text = ": ".join(str(part) for part in parts if part)
    cause = _reason_of(error.get("caused_by"))
    return one_line(f"{text} ({cause})" if cause and cause not in text else text, _SHOWN)


def _type_of(error: Any) -> str:
    return str(error.get("type", "")) if isinstance(error, Mapping) else ""


_NAMED_BY_SOLR = re.compile(r"\[doc=(.*?)\]")


def judge_update(bulk: Sequence[Action], answer: ServerAnswer) -> BulkVerdict:
    """Returns the verdict about documents, or deletes, that were sent to ``/update``.

    Without an update chain that tolerates errors, Solr stops at the first bad document: it has
    taken those before, and none after. Then all others are sent again; this changes nothing for
    those that Solr has taken.

    Raises:
        Blocked: Solr refuses all documents, whatever they are.
    """
    if answer.status == 400 and len(bulk) > 1:
        return _without_bad_one(bulk, answer)
    whole = _judge_request(bulk, answer)
    if whole is not None:
        return whole
    header = answer.record.get("responseHeader")
    if not isinstance(header, Mapping) or header.get("status") != 0:
        return BulkVerdict(again=list(bulk), why=f"it answered no JSON of Solr: {answer.text}")
    errors = _solr_errors(header.get("errors"))
    bulk_ids = {action.id for action in bulk}
    if not set(errors) <= bulk_ids:
        return BulkVerdict(again=list(bulk), too_large=True, why=next(iter(errors.values())))
    verdict = BulkVerdict()
    for action in bulk:
        if action.id in errors:
            verdict.refused.append((action, errors[action.id]))
        else:
            verdict.counts["deleted" if action.document is None else "added"] += 1
    return verdict


def _without_bad_one(bulk: Sequence[Action], answer: ServerAnswer) -> BulkVerdict:
    named = _NAMED_BY_SOLR.search(answer.text)
    bad = [action for action in bulk if named and action.id == named[1]]
    if not bad:
        return BulkVerdict(again=list(bulk), too_large=True, why=answer.text)
    rest = [action for action in bulk if action.id != bad[0].id]
    return BulkVerdict(refused=[(bad[0], answer.text)], again=rest, why=answer.text, at_once=True)


def _solr_errors(errors: Any) -> dict[str, str]:
    """Returns the message for each id in the answer of a chain that tolerates errors."""
    records = [record for record in errors or () if isinstance(record, Mapping)]
    return {
        str(record.get("id")): one_line(record.get("message", ""), _SHOWN) for record in records
    }


_FIRST = 0.5  # s
_LONGEST = 60.0  # s
_MOST_RETRY_AFTER = 600.0  # s


@dataclasses.dataclass
class RetryPlan:
    """Waiting times that double, with jitter, until all of them are longer than the patience.

    Attributes:
        patience: Longest time without any progress, s.
        waited: Time since the last progress, s.
        attempt: Number of attempts since the last progress.
    """

    patience: float
    waited: float = 0.0
    attempt: int = 0
    rng: random.Random = dataclasses.field(default_factory=random.Random, repr=False)

    def progress(self) -> None:
        """Starts again: the server has taken something."""
        self.waited, self.attempt = 0.0, 0

    def wait(self, retry_after: str = "") -> float | None:
        """Returns how long to wait now, s; None: give up.

        >>> plan = RetryPlan(10)
        >>> plan.wait("3"), plan.wait("3"), plan.wait("3"), plan.wait("3")
        (3.0, 3.0, 3.0, None)
        """
        wished = seconds_to_wait(retry_after, _MOST_RETRY_AFTER)
        if wished is None:
            longest = min(_LONGEST, _FIRST * 2.0 ** min(self.attempt, 20))
            wished = longest * self.rng.uniform(0.5, 1.0)
        if self.waited + wished > self.patience:
            return None
        self.waited += wished
        self.attempt += 1
        return wished

    def add_lost_time(self, seconds: float) -> None:
        """Adds time lost without a result, such as that of a request without an answer."""
        self.waited += seconds
