"""What a look of the doctor finds, and looks that end in time and never fail."""

import contextlib
import enum
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ...web.base.errors import UserError, one_line


class FindingMark(enum.StrEnum):
    """How good it is."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


class Finding(NamedTuple):
    """One line of the doctor.

    Attributes:
        subject: What was looked at, such as ``disk``.
        mark: How good it is.
        text: What was found.
        cure: What to do; empty if there is nothing to do.
    """

    subject: str
    mark: FindingMark
    text: str
    cure: str = ""


class Look(NamedTuple):
    """One look: its subject, and a function that yields its findings; it may hang or fail."""

    subject: str
    find: Callable[[], Iterable[Finding]]


def ok(subject: str, text: str) -> Finding:
    """Returns a finding that is well."""
    return Finding(subject, FindingMark.OK, text)


def warning(subject: str, text: str, cure: str = "") -> Finding:
    """Returns a finding that a person should know."""
    return Finding(subject, FindingMark.WARNING, text, cure)


def wrong(subject: str, text: str, cure: str = "") -> Finding:
    """Returns a finding that makes jobs fail."""
    return Finding(subject, FindingMark.WRONG, text, cure)


def run_looks(looks: Sequence[Look], limit_s: float) -> Iterator[Finding]:
    """Runs looks at the same time, and yields their findings in order.

    A look that fails, or takes longer than ``limit_s`` together with the others, is a warning. It may
    then go on in its thread, which does not keep the process from ending.
    """
    runs = [_Run(look) for look in looks]
    end = time.monotonic() + limit_s
    for run in runs:
        yield from run.findings_until(end, limit_s)


class _Run:
    """A look in its own thread."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._findings: list[Finding] = []
        self._thread = threading.Thread(target=self._find, daemon=True, name=look.subject)
        self._thread.start()

    def _find(self) -> None:
        try:
            for finding in self._look.find():
                self._findings.append(finding)
        except UserError as error:
            self._findings.append(wrong(self._look.subject, one_line(error)))
        except Exception as error:  # noqa: BLE001 - a look must never end the doctor
            text = f"it cannot be looked at: {type(error).__name__}: {one_line(error, 200)}"
            self._findings.append(warning(self._look.subject, text))

    def findings_until(self, end: float, limit_s: float) -> list[Finding]:
        self._thread.join(max(0.0, end - time.monotonic()))
        findings = list(self._findings)
        if self._thread.is_alive():
            text = f"no answer within {limit_s:g} s"
            findings.append(warning(self._look.subject, text, "--look_seconds waits longer"))
        return findings


@contextlib.contextmanager
def faults_as(errors: list[Finding], subject: str, cure: str) -> Iterator[None]:
    """Makes a wrong finding of an error of the block."""
    try:
        yield
    except (ValueError, UserError, OSError) as error:
        errors.append(wrong(subject, one_line(error), cure))
