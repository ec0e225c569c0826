"""Opens channels to Bigtable, retries requests, limits their rate, and makes one-line errors."""

import contextlib
import itertools
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc
from google.api_core import exceptions as errors
from google.auth.exceptions import GoogleAuthError
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport
from grpc.experimental import ChannelOptions

from ...web.base.errors import UserError
from ..storage.file_errors import NoTable
from .address import BigtableAddress

# Messages of any size. No extra thread handles each message, which saves 75 % of CPU time.
CHANNEL = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    (ChannelOptions.SingleThreadedUnaryStream, 1),
]
RETRYABLE = (
    errors.ServiceUnavailable,
    errors.DeadlineExceeded,
    errors.Aborted,
    errors.InternalServerError,
    errors.TooManyRequests,  # a quota
    errors.Unknown,
)
CALL_ATTEMPTS = 5
# The rate of writes; the same values as in Google's clients.
_FIRST, _LEAST, _MOST = 10.0, 0.1, 100_000.0
_SLOWER, _FASTER = 0.7, 1.3
_PERIOD_S = 10.0
_Answer = TypeVar("_Answer")


def open_channel(address: BigtableAddress, host: str = "bigtable.googleapis.com:443") -> Any:
    """Opens a channel with the options ``CHANNEL`` to a service of Bigtable, or to the emulator.

    Raises:
        UserError: There are no credentials.
    """
    if address.emulator:
        return grpc.insecure_channel(address.emulator, CHANNEL)
    with one_line_errors(address):
        return BigtableGrpcTransport.create_channel(host, options=CHANNEL)


@contextlib.contextmanager
def one_line_errors(
    address: BigtableAddress, keep: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Re-raises errors of Google's libraries as one line, except those of ``keep``.

    Raises:
        NoTable: Bigtable has no such table, or no such instance.
        UserError: Bigtable refuses the request, or there are no credentials.
    """
    try:
        yield
    except keep:
        raise
    except GoogleAuthError as error:
        raise UserError(
            f"no credentials for {address}: {_short(error)}: log in with "
            "gcloud auth application-default login"
        ) from error
    except errors.NotFound as error:
        raise NoTable(
            f"no table at {address}: nutbeam table create makes it ({_short(error)})"
        ) from error
    except errors.GoogleAPICallError as error:
        raise UserError(_line(address, error)) from error


def persistent(
    address: BigtableAddress, request: Callable[[], _Answer], attempts: int = CALL_ATTEMPTS
) -> _Answer:
    """Calls an idempotent function until it succeeds; returns its result.

    Raises:
        UserError: Bigtable refuses, or fails ``attempts`` times in a row.
    """
    for failed in itertools.count(1):
        try:
            with one_line_errors(address, keep=RETRYABLE):
                return request()
        except RETRYABLE as error:
            if failed == attempts:
                raise gave_up(address, error, attempts) from error
            back_off(failed)
    raise AssertionError


def gave_up(
    address: BigtableAddress, error: Exception | None, attempts: int = CALL_ATTEMPTS
) -> UserError:
    """Returns the error after the last attempt."""
    where = f"the emulator at {address.emulator}" if address.emulator else "Bigtable"
    return UserError(f"{where} failed {attempts} times in a row for {address}: {_short(error)}")


def refused_row(address: BigtableAddress, key: bytes, error: Exception) -> UserError:
    """Returns the error for a row that Bigtable will never accept."""
    return UserError(f"Bigtable refuses row {key[:80]!r} of {address}: {_short(error)}")


def _line(address: BigtableAddress, error: errors.GoogleAPICallError) -> str:
    if isinstance(error, errors.Forbidden):
        return f"no permission for {address}: {_short(error)}: roles/bigtable.user has it"
    if isinstance(error, errors.Unauthorized):
        return f"no valid credentials for {address}: {_short(error)}"
    return f"Bigtable refuses a request for {address}: {_short(error)}"


def _short(error: Exception | None) -> str:
    text = getattr(error, "message", "") or str(error)
    return " ".join(text.split())[:300]


class Pace:
    """Limits the rate of writes, once Bigtable demands it (batch write flow control).

    Attributes:
        rate: Requests a second; None until the server limits them.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rate: float | None = None
        self._clock = clock
        self._sleep = sleep
        self._next = self._learns = clock()

    def wait(self) -> None:
        """Waits until the next request may be sent."""
        if self.rate is None:
            return
        now = self._clock()
        if self._next > now:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + 1 / self.rate

    def learn(self, factor: float, period_s: float = _PERIOD_S) -> None:
        """Changes the rate, at most once a period.

        Args:
            factor: The factor of the new rate; below 1 is slower.
            period_s: Time in s before the rate may change again.
        """
        now = self._clock()
        if now < self._learns:
            return
        factor = min(max(factor, _SLOWER), _FASTER)
        self.rate = min(max((self.rate or _FIRST) * factor, _LEAST), _MOST)
        self._learns = now + period_s

    def slow_down(self) -> None:
        """Slows down after an overload of the server; does nothing without a limit so far."""
        if self.rate is not None:
            self.learn(_SLOWER)


def back_off(failed: int, sleep: Callable[[float], None] = time.sleep) -> None:
    """Waits for a random time before a retry; longer after each failure, at most about 6 s."""
    sleep(random.random() * 0.1 * 2 ** min(failed, 6))
