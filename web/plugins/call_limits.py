"""Ends calls of plug-ins that take too long, by an exception in their thread.

One thread of the process looks after all calls; it starts with the first. The exception is raised
between two instructions of Python. So it ends loops in Python. It does not end a call of other code,
such as one that waits for a server, before that returns; such a call is only named in the log.
"""

import ctypes
import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

_LOG = logging.getLogger("nutbeam.plugins")
_LOOK_S = 0.25
_Result = TypeVar("_Result")


class CallTookTooLong(BaseException):
    """A plug-in took longer than the limit; no ``except Exception`` of its own catches it."""


class _RunningCall:
    """A call that has not ended.

    Attributes:
        what: Returns what is at work, and on what.
        seconds: The limit.
        thread: The thread that it is in.
        deadline: When it is ended, on the monotonic clock.
        is_late: Whether it has been ended.
    """

    __slots__ = ("deadline", "is_late", "seconds", "thread", "what")

    def __init__(self, what: Callable[[], str], seconds: float) -> None:
        self.what, self.seconds, self.thread = what, seconds, threading.get_ident()
        self.deadline, self.is_late = time.monotonic() + seconds, False


class _Watch:
    """The calls that have not ended, and the thread that ends late ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[int, _RunningCall] = {}
        self._thread: threading.Thread | None = None

    def begin(self, call: _RunningCall) -> None:
        with self._lock:
            self._calls[id(call)] = call
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="plugins", daemon=True)
                self._thread.start()

    def end(self, call: _RunningCall) -> None:
        with self._lock:
            self._calls.pop(id(call), None)
            if call.is_late:  # the exception may be on its way
                _let_come()

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            now, late_calls = time.monotonic(), []
            with self._lock:
                for call in self._calls.values():
                    if now > call.deadline:
                        call.is_late, call.deadline = True, now + call.seconds
                        late_calls.append(call)
                        _raise_in(call.thread, CallTookTooLong)
            for call in late_calls:
                _LOG.warning("%s has not ended after %g s", call.what(), call.seconds)


_WATCH = _Watch()


def call_within(call: Callable[[], _Result], seconds: float, what: Callable[[], str]) -> _Result:
    """Returns the result of a call of a plug-in, which is ended after a time.

    Args:
        call: The call.
        seconds: The limit.
        what: Returns what is at work, and on what, for the log.

    Raises:
        CallTookTooLong: It took longer; the traceback has the line at which it was.
    """
    running_call = _RunningCall(what, seconds)
    try:
        _WATCH.begin(running_call)
        try:
            return call()
        finally:
            _WATCH.end(running_call)
    except CallTookTooLong as error:
        _WATCH.end(running_call)  # the exception may have come at its end
        error.args = (f"it took longer than {seconds:g} s",)
        raise


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Raises an exception in a thread, in place of one that has not been raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _let_come() -> None:
    """Lets the exception come that may be on its way to this thread, and forgets it.

    To take it back would be shorter, but then CPython before 3.13 looks for it forever: all code gets
    slower, and under a profiler or debugger a function never starts.
    """
    try:
        _raise_in(threading.get_ident(), CallTookTooLong)
        while True:
            pass
    except CallTookTooLong:
        return
