"""Delivers bulks to a search server: retries until each document is accepted or refused."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable

from ...web.base.errors import Unavailable
from ...web.indexing.actions import Action, dead_letter_text
from ...web.indexing.bulk_verdicts import Blocked, BulkVerdict
from ...web.indexing.retry_plan import RetryPlan
from .server_client import NoAnswer

_LOG = logging.getLogger(__name__)
_SPLIT_AFTER = 2  # attempts: a request that is too large for the server's memory never passes

Send = Callable[[list[Action]], BulkVerdict]


class Delivery:
    """Sends bulks one after the other, and collects what has become of them.

    Attributes:
        name: Name of the server in messages: its address.
        send: Sends a bulk, and returns the verdict of the server.
        patience: How long to go on without any progress, s.
    """

    def __init__(self, name: str, send: Send, patience: float) -> None:
        self._name, self._send, self._patience = name, send, patience
        self._counts: Counter[str] = Counter()
        self._refused: list[tuple[str, str, str]] = []

    def deliver(self, bulks: Iterable[list[Action]]) -> None:
        """Sends bulks until each action is done or refused.

        Raises:
            Unavailable: The server took nothing for longer than the patience.
            Blocked: It does not take any document.
        """
        for bulk in bulks:
            self._deliver(bulk)

    def count(self, counts: Counter[str]) -> None:
        """Adds numbers by reason."""
        self._counts.update(counts)

    def take_results(self) -> tuple[Counter[str], list[tuple[str, str, str]]]:
        """Returns what was done since the last call: numbers by reason, and what was refused.

        Each document that was refused has its URL, the reason, and the document as JSON.
        """
        results = +self._counts, self._refused
        self._counts, self._refused = Counter(), []
        return results

    def _deliver(self, bulk: list[Action]) -> None:
        plan = RetryPlan(self._patience)
        waiting_bulks = [bulk]
        while waiting_bulks:
            part = waiting_bulks.pop()
            verdict = self._judge(part, plan)
            self._note(verdict)
            again = verdict.again
            if not again:
                plan.progress()
            elif verdict.at_once:
                plan.progress()
                waiting_bulks.append(again)
            elif verdict.too_large:
                self._split_or_refuse(again, verdict.why, waiting_bulks)
            else:
                if len(again) < len(part):
                    plan.progress()
                self._wait(plan, verdict)
                halves = _halves(again) if plan.attempt > _SPLIT_AFTER else [again]
                waiting_bulks += reversed(halves)

    def _judge(self, part: list[Action], plan: RetryPlan) -> BulkVerdict:
        begun = time.monotonic()
        try:
            return self._send(part)
        except NoAnswer as error:
            plan.add_lost_time(time.monotonic() - begun)
            return BulkVerdict(again=part, why=str(error))
        except Blocked as error:
            raise Blocked(f"{self._name} cannot be written: {error}") from None

    def _note(self, verdict: BulkVerdict) -> None:
        self._counts.update(verdict.counts)
        for action, reason in verdict.refused:
            self._refuse(action, reason)

    def _refuse(self, action: Action, reason: str) -> None:
        self._counts["refused"] += 1
        document = "" if action.document is None else dead_letter_text(action.document)
        self._refused.append((action.url, reason, document))

    def _split_or_refuse(
        self, again: list[Action], why: str, waiting_bulks: list[list[Action]]
    ) -> None:
        if len(again) == 1:
            self._refuse(again[0], why)
        else:
            waiting_bulks += reversed(_halves(again))

    def _wait(self, plan: RetryPlan, verdict: BulkVerdict) -> None:
        seconds = plan.wait(verdict.retry_after)
        if seconds is None:
            raise Unavailable(
                f"{self._name} has taken no documents for {plan.waited:.0f} s, and the next try "
                f"would be after the patience of {plan.patience:g} s: {verdict.why}; "
                "the same command continues when it answers"
            )
        _LOG.info("%s: %s; again in %.1f s", self._name, verdict.why, seconds)
        time.sleep(seconds)


def _halves(actions: list[Action]) -> list[list[Action]]:
    """Returns a list of actions in two, or as it is if it has one.

    >>> _halves([1, 2, 3])
    [[1], [2, 3]]
    """
    middle = len(actions) // 2
    return [part for part in (actions[:middle], actions[middle:]) if part]
