"""Results of jobs, as values: what the command line prints as JSON."""

import dataclasses
import datetime
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..base.command import NOTHING_FETCHED, NOTHING_TO_DO, RULES_FAILED
from .calls import CallOutcome
from .python_wording import in_python


@dataclass(frozen=True)
class JobResult:
    """The result of a job.

    Attributes:
        job: Name of the job.
        counts: What it counted, by name; docs/reference/reasons.md has the reasons in it.
        changed: Whether the table has changed.
        nothing_to_do: Whether nothing waited for the job.
        operation: Id of its operation; empty if it made none.
        snapshot: Number of the snapshot that it made, or None.
        batch: Id of the batch that it worked on, or None; of several the last one.
        phase: Phase of that batch now, or None.
        segments: Batch of each segment of Nutch that it imported.
        restores: Number of the snapshot that ``rollback`` went back to, or None.
        dry_run: Whether it has only counted.
        done_before: Whether the operation was done before, so that nothing was done now.
        submitted: Whether it was only submitted to a cluster, where it runs now.
    """

    job: str
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    changed: bool = False
    nothing_to_do: bool = False
    operation: str = ""
    snapshot: int | None = None
    batch: str | None = None
    phase: str | None = None
    segments: Mapping[str, str] = dataclasses.field(default_factory=dict)
    restores: int | None = None
    dry_run: bool = False
    done_before: bool = False
    submitted: bool = False

    @classmethod
    def of(cls, outcome: CallOutcome) -> "JobResult":
        """Returns the result of a call; of one that has worked on several batches the sum."""
        records = [record for record in outcome.records if "job" in record]
        whole: dict[str, Any] = {"job": outcome.command} | (
            _fields(cls, records[-1]) if records else {}
        )
        counts: Counter[str] = Counter()
        for record in records:
            counts.update(record.get("counts", {}))
        whole |= {
            "counts": dict(counts),
            "changed": any(record.get("changed") for record in records),
            "nothing_to_do": outcome.code == NOTHING_TO_DO,
        }
        return cls(**whole)


@dataclass(frozen=True)
class NextUrlDue:
    """The URL that is due next.

    Attributes:
        url: The URL.
        fetch_time: When it is due.
        held_back: Why it is not chosen then, if there are reasons: of each its name and details.
    """

    url: str
    fetch_time: datetime.datetime
    held_back: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class CrawlResult:
    """The result of a crawl or of a round.

    Attributes:
        ending: How it ended: ``done``, ``stopped``, ``time_limit``, ``nothing_due``, ``none_chosen``,
            ``nothing_fetched``, ``seeds_refused``, ``no_rounds`` or ``submitted``.
        message: A line about the ending, and about URLs that wait; empty if there is nothing to say.
        warnings: What was cut off or failed, a line each.
        rounds: Number of rounds.
        requests: Number of requests for pages.
        fetched: Pages that were fetched, and those that a server reported as not modified.
        fetched_by_others: Pages that other runs fetched meanwhile.
        parsed: Pages that were parsed.
        urls: URLs in the table.
        status: Number of URLs by status.
        due: Number of URLs by the time when they are due: ``now``, ``within_a_day``, ``later``.
        next_due: The URL that is due next, or None.
        not_fetched: URLs that were not fetched, by reason.
        dropped: Links and pages that were left out, by reason.
        refused_by: URLs that were refused, by rule.
        not_parsed: Pages that were not parsed, by reason.
        no_parser: Pages of types without a parser, by type.
        seconds: Time of each phase, s; of all crawls that this process runs at the time.
        operation: Id of the operation, if it was only submitted to a cluster; else empty.
    """

    ending: str
    message: str = ""
    warnings: tuple[str, ...] = ()
    rounds: int = 0
    requests: int = 0
    fetched: int = 0
    fetched_by_others: int = 0
    parsed: int = 0
    urls: int = 0
    status: Mapping[str, int] = dataclasses.field(default_factory=dict)
    due: Mapping[str, int] = dataclasses.field(default_factory=dict)
    next_due: NextUrlDue | None = None
    not_fetched: Mapping[str, int] = dataclasses.field(default_factory=dict)
    dropped: Mapping[str, int] = dataclasses.field(default_factory=dict)
    refused_by: Mapping[str, int] = dataclasses.field(default_factory=dict)
    not_parsed: Mapping[str, int] = dataclasses.field(default_factory=dict)
    no_parser: Mapping[str, int] = dataclasses.field(default_factory=dict)
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    operation: str = ""

    @classmethod
    def of(cls, outcome: CallOutcome) -> "CrawlResult":
        """Returns the result of a call.

        Raises:
            NothingFetched: URLs were tried, and no page was fetched.
        """
        record = outcome.records[-1]
        if record.get("submitted"):
            return cls("submitted", operation=record["operation"])
        changed: dict[str, Any] = {
            "message": in_python(record["message"]),
            "warnings": tuple(in_python(warning["message"]) for warning in record["warnings"]),
            "seconds": {name: phase["seconds"] for name, phase in record["phases"].items()},
        }
        if waiting := record["next"]:
            time = _time(waiting["fetch_time"])
            held = tuple(waiting["held_back"])
            changed["next_due"] = NextUrlDue(waiting["url"], time, held)
        result = cls(**(_fields(cls, record) | changed))
        if outcome.code == NOTHING_FETCHED:
            raise NothingFetched(result.message, result)
        return result


class NothingFetched(UserError):
    """A crawl or a round tried URLs, and fetched no page; the message says why.

    Attributes:
        result: The result.
    """

    exit_code = NOTHING_FETCHED

    def __init__(self, message: str, result: CrawlResult | None = None) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class FsckResult:
    """The result of a check of the table's files.

    Attributes:
        clean: Whether there are no problems, or none are left.
        snapshot: Number of the checked snapshot.
        files: Number of data files that were checked.
        problems: Each problem, by the names that ``nutbeam fsck --format json`` prints.
        record: All that this command prints.
    """

    clean: bool
    snapshot: int
    files: int
    problems: tuple[Mapping[str, Any], ...]
    record: Mapping[str, Any]

    @classmethod
    def of(cls, outcome: CallOutcome) -> "FsckResult":
        """Returns the result of a call."""
        record = outcome.records[-1]
        return cls(**_fields(cls, record) | {"problems": tuple(record["problems"])}, record=record)


@dataclass(frozen=True)
class WarcResult:
    """The archive that was written.

    Attributes:
        archive: Address of its folder.
        batches: Batches that it has completed.
        complete: Number of batches that were complete before.
        open: Number of batches that a cluster still writes.
        files: Names of the files.
        counts: Records by kind, and rows that were left out, by reason.
    """

    archive: str
    batches: tuple[str, ...]
    complete: int
    open: int
    files: tuple[str, ...]
    counts: Mapping[str, int]

    @classmethod
    def of(cls, outcome: CallOutcome) -> "WarcResult":
        """Returns the result of a call."""
        return cls(**_fields(cls, outcome.records[-1]))


@dataclass(frozen=True)
class RowsResult:
    """The rows that ``write_pages`` or ``extract`` has written.

    Attributes:
        rows: Number of rows: pages, chunks of them, or records of rules.
        output: The file, or the table that has them.
        failed: Number of chunks without a vector, by reason.
        warnings: What is strange about the rules.
    """

    rows: int
    output: str
    failed: Mapping[str, int] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, outcome: CallOutcome) -> "RowsResult":
        """Returns the result of a call.

        Raises:
            RulesFailed: With ``strict``, rules have warnings.
        """
        record = outcome.records[-1]
        rows = next(record[name] for name in ("rows", "pages", "chunks") if name in record)
        warnings = (f"{each['rule']} {each['message']}" for each in record.get("warnings", ()))
        result = cls(rows, record["output"], record.get("failed", {}), tuple(warnings))
        if outcome.code == RULES_FAILED:
            raise RulesFailed("; ".join(result.warnings), result)
        return result


class RulesFailed(UserError):
    """``extract`` with ``strict=True`` has written its rows, and rules have warnings, which the message lists.

    Attributes:
        result: The result.
    """

    exit_code = RULES_FAILED

    def __init__(self, message: str, result: RowsResult | None = None) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class ReportResult:
    """The page that ``report`` has written.

    Attributes:
        output: The file.
        snapshot: Number of the snapshot that it shows.
        urls: Number of URLs in the table.
        bytes: Size of the page.
        notes: What could not be read, a sentence each.
    """

    output: str
    snapshot: int
    urls: int
    bytes: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, outcome: CallOutcome) -> "ReportResult":
        """Returns the result of a call."""
        record = outcome.records[-1]
        return cls(**{**record, "notes": tuple(record["notes"])})


@dataclass(frozen=True)
class TableStats:
    """Figures about a table.

    Attributes:
        urls: Number of URLs.
        status: Number of URLs by status.
        retries: Number of URLs by the number of retries.
        due: Number of URLs by the time when they are due: ``now``, ``within_a_day``, ``later``.
        score: Least, mean and greatest score, and ``quantiles``; empty without URLs.
        fetch_interval: Least, mean and greatest interval, s; empty without URLs.
        batches: Each batch that is kept, with its phase.
        snapshot: Number of the snapshot.
    """

    urls: int
    status: Mapping[str, int]
    retries: Mapping[int, int]
    due: Mapping[str, int]
    score: Mapping[str, Any]
    fetch_interval: Mapping[str, float]
    batches: Mapping[str, Any]
    snapshot: int

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "TableStats":
        """Returns the figures in a record of ``readdb``."""
        retries = {int(number): count for number, count in record["retries"].items()}
        filled = {"due": {}, "score": {}, "fetch_interval": {}} | _fields(cls, record)
        return cls(**filled | {"urls": record["total_urls"], "retries": retries})


@dataclass(frozen=True)
class Explanation:
    """What would happen to a URL, and why.

    Attributes:
        url: The URL as it was given.
        verdict: The conclusion in a few words.
        reason: Why the URL is not added to the table, or None; docs/reference/reasons.md explains it.
        normalized: Its normal form, or None if it is no URL.
        row: What the table says of it, or None.
        record: All decisions, by the names that ``nutbeam explain --format json`` prints.
    """

    url: str
    verdict: str
    reason: str | None
    normalized: str | None
    row: Mapping[str, Any] | None
    record: Mapping[str, Any]


@dataclass(frozen=True)
class HistoryEntry:
    """A snapshot of the table.

    Attributes:
        snapshot: Its number.
        time: The time that counted as now for its job; None if it cannot be read.
        job: The job that made it.
        operation: Id of the operation.
        batch: Id of the batch that the job worked on, or None.
        restores: Number of the snapshot that ``rollback`` went back to, or None.
        undone: Whether a rollback has undone it.
        expired: Whether only its record is left.
        counts: What its job counted, by name.
        changes: What was added to each component and removed from it: files, rows, bytes.
        error: Why it cannot be read; empty if it can.
        committed: When it was committed; None if that is unknown.
    """

    snapshot: int
    time: datetime.datetime | None = None
    job: str = ""
    operation: str = ""
    batch: str | None = None
    restores: int | None = None
    undone: bool = False
    expired: bool = False
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    changes: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    error: str = ""
    committed: datetime.datetime | None = None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "HistoryEntry":
        """Returns the entry of a record of ``history``."""
        texts = {name: record.get(name) for name in ("time", "committed")}
        times = {name: _time(text) if text else None for name, text in texts.items()}
        return cls(**_fields(cls, record) | times)


def _fields(cls: Any, record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a record that are fields of a class."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in record.items() if name in names}


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)
