"""Logs as JSON, one object per line, for log collectors.

Fields: ``time`` (RFC 3339, UTC), ``severity``, ``logger``, ``message``; where
known ``job`` and ``worker`` (as the runner calls them), ``phase``, ``operation``,
``batch`` and ``round``; ``exception`` is a traceback. ``with_fields`` adds others.
"""

import contextlib
import datetime
import json
import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

# Environment variables that Beam's boot program sets for a worker.
_WORKER_VARIABLES = {"job": ("JOB_NAME", "JOB_ID"), "worker": ("WORKER_ID",)}
_LOGIN = re.compile(r"(?<=://)[^/\s@'\"]+(?=@)")
_FIELDS = "nutbeam_fields"  # attribute of a record
_replaced_formatters: dict[logging.Handler, logging.Formatter | None] = {}
_operation_fields: dict[str, str] = {}
_launched: list[str] = []
_active: list[tuple[int, dict[str, Any]]] = []  # (thread, fields)


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object.

    >>> record = logging.LogRecord("nutbeam.x", 30, "", 0, "via %s", ("http://me:pw@p/",), None)
    >>> json.loads(JsonFormatter().format(record))["message"]
    'via http://***@p/'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns one line; user names and passwords in URLs are masked."""
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        fields: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "severity": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, variables in _WORKER_VARIABLES.items():
            values = [os.environ[v] for v in variables if os.environ.get(v)]
            fields |= {name: values[0]} if values else {}
        fields |= _working_on() | getattr(record, _FIELDS, {})
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        masked = {n: without_login(v) if isinstance(v, str) else v for n, v in fields.items()}
        return json.dumps(masked)


def with_fields(**fields: Any) -> Mapping[str, Any]:
    """Returns the argument ``extra`` of a log call; JSON logs contain the fields.

    >>> with_fields(pages=3)
    {'nutbeam_fields': {'pages': 3}}
    """
    return {_FIELDS: fields}


def without_login(text: str) -> str:
    """Returns a text without user names and passwords in its URLs.

    >>> without_login("via http://me:pw@p/")
    'via http://***@p/'
    """
    return _LOGIN.sub("***", text)


@contextlib.contextmanager
def working_on(**fields: Any) -> Iterator[None]:
    """Adds fields to the logs of this thread and of the threads that it starts.

    Args:
        fields: Such as ``operation`` and ``batch``; None is left out.
    """
    logged_fields = {name: value for name, value in fields.items() if value is not None}
    entry = threading.get_ident(), logged_fields
    _active.append(entry)
    try:
        yield
    finally:
        _active.remove(entry)


def _working_on() -> dict[str, Any]:
    active = list(_active)
    mine = [fields for thread, fields in active if thread == threading.get_ident()]
    if mine:
        return mine[-1]
    # A thread of an engine works for the active thread, if there is exactly one.
    return active[0][1] if len(active) == 1 else dict(_operation_fields)


def set_logged_operation(operation: str) -> None:
    """Adds the operation of this command to logs that belong to no phase, until ``uninstall``."""
    _operation_fields["operation"] = operation
    _launched.append(operation)


def launched_operations() -> tuple[str, ...]:
    """Returns the operations of all commands of this process, in the order of their launch."""
    return tuple(_launched)


def install() -> None:
    """Writes all logs of this process as JSON, until ``uninstall``."""
    if not logging.getLogger().handlers:
        logging.basicConfig()
    for handler in logging.getLogger().handlers:
        _replaced_formatters.setdefault(handler, handler.formatter)
        handler.setFormatter(JsonFormatter())


def uninstall() -> None:
    """Restores the format that logs had before ``install``, and forgets the operation."""
    _operation_fields.clear()
    while _replaced_formatters:
        handler, formatter = _replaced_formatters.popitem()
        handler.setFormatter(formatter)


def is_installed() -> bool:
    """Returns whether this process' logs are JSON."""
    return bool(_replaced_formatters)
