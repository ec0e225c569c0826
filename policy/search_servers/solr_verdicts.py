"""What an answer of Solr means for the bulk that was sent."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...web.base.errors import one_line
from .actions import Action
from .bulk_verdicts import BulkVerdict, ServerAnswer, judge_request

_NAMED = re.compile(r"\[doc=(.*?)\]")
_SHOWN = 300


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
    whole = judge_request(bulk, answer)
    if whole is not None:
        return whole
    header = answer.record.get("responseHeader")
    if not isinstance(header, Mapping) or header.get("status") != 0:
        return BulkVerdict(again=list(bulk), why=f"it answered no JSON of Solr: {answer.text}")
    errors = _errors(header.get("errors"))
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
    named = _NAMED.search(answer.text)
    bad = [action for action in bulk if named and action.id == named[1]]
    if not bad:
        return BulkVerdict(again=list(bulk), too_large=True, why=answer.text)
    rest = [action for action in bulk if action.id != bad[0].id]
    return BulkVerdict(refused=[(bad[0], answer.text)], again=rest, why=answer.text, at_once=True)


def _errors(errors: Any) -> dict[str, str]:
    """Returns the message for each id in the answer of a chain that tolerates errors."""
    records = [record for record in errors or () if isinstance(record, Mapping)]
    return {
        str(record.get("id")): one_line(record.get("message", ""), _SHOWN) for record in records
    }
