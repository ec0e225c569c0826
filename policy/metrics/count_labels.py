"""Labels of counts: no host, no URL, and no other text from the web or from a plug-in.

Jobs count ``NAME`` or ``FAMILY/REASON``. Reasons of the catalogue have its names. Servers and plug-ins
choose some others, such as the content types without a parser: these are ``other``, all together.
"""

import functools
import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..components.reasons import NO_FAMILY, find_reason, reasons_by_section
from ..components.rule_counts import is_of_rule

OTHER_LABEL = "other"
_WORD = re.compile(r"[a-z][a-z0-9_]{0,59}")
_MOST_CHARS = 60
# Families whose reasons the web or a plug-in chooses, besides those that the catalogue has.
_OF_STRANGERS = ("no_parser", "skipped", "failed")
_OF_STATUSES = ("protocol", "status")  # what follows is the name of a status


class CountLabels(NamedTuple):
    """The labels of a count, in the order of the catalogue.

    Attributes:
        phase: Name of the job.
        name: Name of the count, or of the family of counts.
        reason: The reason, or what else follows the family; empty if there is no family.
    """

    phase: str
    name: str
    reason: str


def count_labels(job: str, name: str) -> CountLabels:
    """Returns the labels of a count of a job.

    >>> count_labels("fetch", "pages")
    CountLabels(phase='fetch', name='pages', reason='')
    >>> count_labels("fetch", "not_fetched/http_502").reason
    'http_5xx'
    >>> count_labels("parse", "no_parser/www.example.com").reason
    'other'
    >>> count_labels("inject", "filtered/regex-urlfilter.txt:12").reason
    'regex_urlfilter_txt_12'
    """
    reason = _reason(job, name) if "/" in name else ""
    return CountLabels(word_label(job), word_label(name.partition("/")[0]), reason)


def _reason(job: str, name: str) -> str:
    family, _, reason = name.partition("/")
    if is_of_rule(name):  # the operator's file and line; at most fifty different ones
        return re.sub("[^a-z0-9]+", "_", reason.lower())[-_MOST_CHARS:].strip("_") or OTHER_LABEL
    if family in _OF_STATUSES or family not in {*_OF_STRANGERS, *_families_of_catalogue()}:
        return word_label(reason)
    declared = find_reason(reason, f"{job} {family}")
    return declared.name if declared else OTHER_LABEL


@functools.cache
def _families_of_catalogue() -> Collection[str]:
    """Returns the families of counts that have a reason in the catalogue."""
    every = (reason for reasons in reasons_by_section().values() for reason in reasons)
    return {pair.split(" ")[1] for reason in every for pair in reason.counted} - {NO_FAMILY}


def word_label(text: str) -> str:
    """Returns a plain word as it is, any other text as ``other``.

    >>> word_label("db_fetched"), word_label("www.example.com")
    ('db_fetched', 'other')
    """
    return text if _WORD.fullmatch(text) else OTHER_LABEL


def labelled_counts(counts: Mapping[tuple[str, str], int]) -> Counter[CountLabels]:
    """Returns the numbers by labels, of counts by (job, name); those with equal labels are summed.

    >>> dict(labelled_counts({("parse", "no_parser/a.b"): 2, ("parse", "no_parser/c.d"): 3}))
    {CountLabels(phase='parse', name='no_parser', reason='other'): 5}
    """
    numbers: Counter[CountLabels] = Counter()
    for (job, name), number in counts.items():
        numbers[count_labels(job, name)] += number
    return numbers
