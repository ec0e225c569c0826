"""Portable runners raise what fails, and say it on standard error too, several times over."""

import logging
import threading
from typing import Any

import grpc
from apache_beam.runners.portability import portable_runner
from apache_beam.runners.worker import sdk_worker

_thread_failed = threading.excepthook


def silence() -> None:
    """Leaves it to exceptions to say what went wrong, unless Beam's log is asked for.

    Beam 2.77: a worker of this process prints each traceback, and at a job's end
    its threads fail as their connection is closed; a job's messages are logged
    as errors by the root logger; and Prism's log has a level of its own, so that
    no level of ours keeps it back.
    """
    if logging.getLogger().isEnabledFor(logging.INFO):
        return
    vars(sdk_worker)["print"] = _nothing
    threading.excepthook = _unless_disconnected
    for importance in portable_runner.MESSAGE_LOG_LEVELS:
        portable_runner.MESSAGE_LOG_LEVELS[importance] = logging.DEBUG
    prism = logging.getLogger("PrismJobServer")
    prism.propagate = False
    if not prism.handlers:
        prism.addHandler(logging.NullHandler())  # without any, Python prints errors all the same


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _unless_disconnected(failure: threading.ExceptHookArgs) -> None:
    # The second is said of a job server that ended before it could be asked.
    closed = "Cannot monitor channel state: Channel closed" in str(failure.exc_value)
    if not (closed or issubclass(failure.exc_type, grpc.RpcError)):
        _thread_failed(failure)
