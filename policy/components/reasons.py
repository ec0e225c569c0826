"""Reads the catalogue of reasons: why URLs are not fetched, added, chosen, parsed or indexed.

Code that decides returns the name of a reason, and a job counts it as ``FAMILY/NAME``, such as
``not_fetched/dns``. The file ``reasons.toml`` says what each name means, what to do about it, and
which jobs count it. The lines that a crawl ends with, ``explain``, and docs/reference/reasons.md
read it; nothing else explains a reason.

Plug-ins may have reasons of their own, which are not in the catalogue: words after ``skipped/``.
"""

import functools
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

_FILE = "reasons.toml"
ANY_JOB, NO_FAMILY = "*", "-"
_CODE = re.compile(r"http_(\d)\d\d")
# What a count may have before the name of a reason: targets of redirects, parts of pages.
_PREFIXES = {"update": "redirect_", "parse": "part_"}
# What the reasons begin with that end with a name: those of plug-ins when they fail, and of bot walls.
_NAMED = ("filter_", "parser_", "protocol_", "url_filter_", "url_normalizer_", "bot_wall_")
_NOT_OF_PLUGINS = ("parser_error", "parser_failed", "protocol_error", "filter_timeout")
# Families that count them, and what the kind of each is called by ``nutbeam plugin try``.
_FAULT = re.compile(
    r"(?:dropped|failed|kept|known_dropped|left_out|not_fetched|not_read)/(?:part_|redirect_)?"
    r"((?P<filter>filter)|parser|protocol|url_filter|url_normalizer)_(?P<name>.+)"
)
# Jobs that do the work of other jobs, and count what they count.
_DOES_WORK_OF = {"fetch": "parse", "import_warc": "fetch"}


class Reason(NamedTuple):
    """Why something was left out.

    Attributes:
        name: As counted and stored.
        meaning: A clause; "it" is what was left out.
        advice: What to do; may be empty. Names in braces are options, and parts of the URL.
        counted: Pairs of a job and a family of counts, such as ``fetch not_fetched``.
    """

    name: str
    meaning: str
    advice: str
    counted: tuple[str, ...]


@functools.cache
def reasons_by_section() -> Mapping[str, tuple[Reason, ...]]:
    """Returns the catalogue, by the sections of its page.

    >>> list(reasons_by_section())[:2]
    ['Pages that are not fetched', 'URLs that are not added, or leave the table']
    """
    sections = tomllib.loads(Path(__file__).with_name(_FILE).read_text("utf-8"))
    return {
        title: tuple(
            _parse_reason(name, texts, counted)
            for counted, reasons in groups.items()
            for name, texts in reasons.items()
        )
        for title, groups in sections.items()
    }


def _parse_reason(name: str, texts: str | list[str], counted: str) -> Reason:
    meaning, advice = (texts, "") if isinstance(texts, str) else texts
    return Reason(name, meaning, advice, tuple(counted.split(", ")))


@functools.cache
def _reasons_by_count() -> Mapping[tuple[str, str], Reason]:
    """Returns the reasons by (job and family, name)."""
    every = (reason for reasons in reasons_by_section().values() for reason in reasons)
    return {(by, reason.name): reason for reason in every for by in reason.counted}


@functools.cache
def counted_reasons(*counted: str) -> Mapping[str, Reason]:
    """Returns the reasons that are counted by jobs in families, by name.

    Args:
        counted: Pairs of a job and a family.

    >>> counted_reasons("inject dropped")["malformed"].meaning
    'it is no URL, or its host is one that no resolver accepts'
    """
    return {name: reason for (by, name), reason in _reasons_by_count().items() if by in counted}


class PluginFault(NamedTuple):
    """How often a plug-in failed.

    Attributes:
        kind: Its kind, as in ``nutbeam plugin``.
        name: Its name.
        number: How many URLs or pages it failed for.
    """

    kind: str
    name: str
    number: int

    @property
    def reason(self) -> str:
        """The reason that is counted for one URL or page, such as ``filter_price``."""
        return f"{self.kind.removeprefix('parse_')}_{self.name}"


def plugin_faults(counts: Mapping[str, int]) -> list[PluginFault]:
    """Returns the faults of plug-ins among counts, the most frequent first.

    >>> plugin_faults({"failed/filter_price": 2, "dropped/url_filter_a.b": 1, "failed/parser_error": 3})
    [PluginFault(kind='parse_filter', name='price', number=2), PluginFault(kind='url_filter', name='a.b', number=1)]
    """
    numbers: Counter[tuple[str, str]] = Counter()
    for count, number in counts.items():
        reason = count.partition("/")[2]
        if (match := _FAULT.fullmatch(count)) and reason not in _NOT_OF_PLUGINS:
            kind = "parse_filter" if match["filter"] else match[1]
            numbers[kind, match["name"]] += number
    return [PluginFault(*key, number) for key, number in numbers.most_common()]


def find_reason(name: str, *counted: str) -> Reason | None:
    """Returns the reason that a job counts under a name, or None.

    Args:
        name: The name, without the family.
        counted: Pairs of a job and a family; the first one that has the reason decides.

    >>> find_reason("http_502", "fetch dropped", "fetch not_fetched").meaning
    'the server failed'
    >>> find_reason("redirect_filtered", "update dropped").name
    'filtered'
    """
    reasons = (_reason_by_count(name, *pair.split(" ")) for pair in counted)
    return next((reason for reason in reasons if reason is not None), None)


def _reason_by_count(name: str, job: str, family: str) -> Reason | None:
    names = [name, name.removeprefix(_PREFIXES.get(job, " "))]
    if code := _CODE.fullmatch(name):
        names += [f"http_{code[1]}xx", "http_NNN"]
    names += [f"{start}NAME" for one in names[:2] for start in _NAMED if one.startswith(start)]
    by_count = _reasons_by_count()
    pairs = [(f"{by} {family}", one) for one in names for by in (job, ANY_JOB)]
    reason = next((by_count[pair] for pair in pairs if pair in by_count), None)
    if reason is None and job in _DOES_WORK_OF:
        return _reason_by_count(name, _DOES_WORK_OF[job], family)
    return reason


def drops_of_tasks() -> Collection[str]:
    """Returns the reasons why fetch drops a task; for all other reasons it drops a link."""
    return counted_reasons("fetch dropped").keys()
