"""What a command prints about itself: its last line, what a line of Nutch is, tracebacks."""

import contextlib
import logging
import os
import select
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from ...io.storage.processes import full_by
from ...web.base import json_logs
from ...web.base.errors import UserError, one_line
from ...web.base.visible import visible
from ..base.command import NOTHING_TO_DO
from ..base.ending import INTERRUPTED

# Severities of the last line in logs, by exit code; those of other codes are errors.
_LEVELS = {NOTHING_TO_DO: logging.INFO, INTERRUPTED: logging.WARNING}


def print_notice(command: str, text: str) -> None:
    """Prints a line on standard error before a command runs; where logs are JSON, it is one of them."""
    line = visible(one_line(f"nutbeam {command}: {text}"))
    if json_logs.is_installed():
        logging.getLogger("nutbeam").warning("%s", line)
    else:
        print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def printed_into(path: str) -> Iterator[None]:
    """Writes what is printed in the block into a file, or leaves none if the block raises an error."""
    if not path:
        yield
        return
    unfinished = Path(f"{path}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
            yield
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


def print_line(command: str, message: str, code: int) -> int:
    """Prints one line on standard error, and returns the code."""
    name = f"nutbeam {command}".rstrip()
    line = visible(one_line(message))
    with contextlib.suppress(OSError):
        if json_logs.is_installed():
            fields = json_logs.with_fields(event="end", command=command, exit_code=code)
            level = _LEVELS.get(code, logging.ERROR)
            logging.getLogger("nutbeam").log(level, "%s: %s", name, line, extra=fields)
        else:
            print(f"{name}: {line}", file=sys.stderr)
    return code


def failure_message(error: Exception) -> str:
    """Returns why a command failed, in a line; empty if the error is a defect of nutbeam."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError):
        where = f": {error.filename!r}" if error.filename is not None else ""
        return full_by(error) or f"{(error.strerror or str(error)).lower()}{where}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {one_line(error, 200)}"
    return ""


def print_traceback() -> bool:
    """Prints the traceback if the user wants it; returns whether it did."""
    if os.environ.get("NUTBEAM_DEBUG", "") in ("", "0"):
        return False
    traceback.print_exc()
    return True


def reader_left() -> bool:
    """Returns whether the reader has closed standard output; then discards further output."""
    with contextlib.suppress(OSError, ValueError):
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        if any(event & select.POLLERR for _, event in poll.poll(0)):
            # Python would flush at exit, and fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return True
    return False
