"""Reports the counts of jobs as Beam's metrics.

Metrics have Nutch's names where Nutch has one.
The manifest has every count under nutbeam's own name, with its reason. The name of a metric
never contains a host, a URL or other text from the web or a plug-in: a reason that is
not a plain word is counted as ``other``. Names may contain rules of URL filters, because
these come from the operator (``--count_by_rule``).
"""

import re
from collections.abc import Mapping

from apache_beam.metrics import Metrics

from ...policy.components.blocklist import REASON as PURGED
from ...policy.components.reasons import drops_of_tasks
from ...policy.components.rule_counts import RULE_FAMILIES, is_of_rule

# Namespaces of jobs; that of another job is nutbeam_JOB.
NAMESPACES = {
    "inject": "nutbeam_injector",
    "generate": "nutbeam_generator",
    "fetch": "nutbeam_fetcher",
    "parse": "nutbeam_parser",
    "update": "nutbeam_crawldb",
    "filterdb": "nutbeam_crawldb_filter",
}

# Counts that Nutch has a name for. A count may be a part of two of them.
NUTCH = {
    ("inject", "injected"): ("urls_injected_total", "urls_injected_unique_total"),
    ("inject", "duplicate_lines"): ("urls_injected_total", "duplicate_lines"),
    ("inject", "known"): ("urls_merged_total",),
    ("fetch", "protocol/robots_denied"): ("robots_denied", "robots_denied_total"),
    ("fetch", "protocol/redir_exceeded"): ("redir_exceeded", "redirect_count_exceeded_total"),
    ("fetch", "redirects/exceeded"): ("redirect_count_exceeded_total",),
    ("fetch", "redirects/repeated"): ("redirect_deduplicated_total",),
    ("fetch", "dropped/robots_deferred"): ("robots_defer_visits_dropped_total",),
    ("fetch", "dropped/time_limit"): ("hit_by_timelimit_total",),
    ("fetch", "dropped/throughput"): ("hit_by_throughput_threshold_total",),
    ("fetch", "dropped/too_many_exceptions"): ("above_exception_threshold_total",),
    ("parse", "parsed"): ("success",),
    ("sitemap", "added"): ("new_entries",),
    ("sitemap", "known"): ("existing_entries",),
    ("dedup", "duplicates"): ("documents_marked_duplicate_total",),
    ("filterdb", "dropped/gone"): ("gone_records_removed_total",),
    ("filterdb", "dropped/orphan"): ("orphan_records_removed_total",),
}

# Families of counts, ``FAMILY/REASON``, that have one name together: Nutch's if it has one.
# Reasons of failed and skipped may come from plug-ins.
FAMILIES = {
    ("inject", "dropped"): "urls_filtered_total",  # Nutch counts malformed ones in, too
    ("inject", "known_dropped"): "urls_purged_filter_total",
    ("filterdb", "dropped"): "urls_filtered_total",
    ("sitemap", "dropped"): "filtered_records",
    ("sitemap", "not_read"): "failed_fetches",
    ("parse", "failed"): "failed",
    ("parse", "skipped"): "notparsed",
    ("parse", "no_parser"): "no_parser",  # servers invent types
}

# ``FAMILY/NAME`` where the name alone is the metric: one for each status.
STATUSES = (("fetch", "protocol"), ("update", "status"))

# Counts of fetch that are metrics of parse: a fetch may parse its pages, too.
_PARSED = ("parsed", "outlinks", "parts")
_PARSE_FAMILIES = ("failed", "skipped", "no_parser", "dropped", *RULE_FAMILIES)

_MOST_CHARS = 60
_WORD = re.compile(r"[a-z0-9_]{1,60}")


def count(job: str, counts: Mapping[str, int]) -> None:
    """Adds the counts of a job to Beam's metrics; call it inside a DoFn.

    Args:
        job: Name of the job.
        counts: Counts by nutbeam's names, as in ``Written`` and the manifest.
    """
    for name, number in counts.items():
        for namespace, counter in metrics_of(job, name):
            Metrics.counter(namespace, counter).inc(number)


def metrics_of(job: str, name: str) -> tuple[tuple[str, str], ...]:
    """Returns the metrics, as (namespace, counter), that include a count of a job.

    >>> metrics_of("fetch", "protocol/notfound")
    (('nutbeam_fetcher', 'notfound'),)
    >>> metrics_of("update", "filtered/regex-urlfilter.txt:12")
    (('nutbeam_crawldb', 'filtered_regex_urlfilter_txt_12'),)
    >>> metrics_of("fetch", "failed/too_complex"), metrics_of("generate", "chosen")
    ((('nutbeam_parser', 'failed'),), (('nutbeam_generator', 'chosen'),))
    """
    family, _, reason = name.partition("/")
    if job == "fetch" and _is_of_parse(family, reason):
        job = "parse"
    namespace = NAMESPACES.get(job, f"nutbeam_{job}")
    if (job, name) in NUTCH:
        return tuple((namespace, counter) for counter in NUTCH[job, name])
    if (job, family) in FAMILIES and reason:
        return ((namespace, FAMILIES[job, family]),)
    if is_of_rule(name):  # the operator's file and line; at most fifty different ones
        words = re.sub("[^a-z0-9]+", "_", name.lower())
        return ((namespace, words[-_MOST_CHARS:]),)
    if not all(_WORD.fullmatch(word) for word in name.split("/")):
        return ((namespace, f"{family}_other" if _WORD.fullmatch(family) else "other"),)
    has_metric = (job, family) in STATUSES and reason
    return ((namespace, reason if has_metric else name.replace("/", "_")),)


def _is_of_parse(family: str, reason: str) -> bool:
    if not reason:
        return family in _PARSED
    own = family == "dropped" and (reason in drops_of_tasks() or reason == PURGED)
    return family in _PARSE_FAMILIES and not own


class Throttling:
    """Reports to the runner how long a fetch has waited for politeness.

    Without this report, Dataflow would add workers, which would also have to wait.
    """

    def __init__(self) -> None:
        self._counter = Metrics.counter(NAMESPACES["fetch"], "cumulativeThrottlingSeconds")
        self._before = self._engine = 0.0
        self._reported = 0

    def add(self, seconds: float) -> None:
        """Adds the time of a wait before the engine began."""
        self._before += seconds
        self._report()

    def total(self, seconds: float) -> None:
        """Sets the time that the engine has waited so far."""
        self._engine = seconds
        self._report()

    def _report(self) -> None:
        whole = int(self._before + self._engine)
        if whole > self._reported:
            self._counter.inc(whole - self._reported)
            self._reported = whole
