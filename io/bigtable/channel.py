"""Opens channels to Bigtable, retries requests, and makes one-line errors."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc
from google.api_core import exceptions as errors
from google.auth.exceptions import GoogleAuthError
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport
from grpc.experimental import ChannelOptions

from ...web.base.errors import UserError
from .address import BigtableAddress
from .pace import back_off

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
    """Re-raises errors of Google's libraries as one line, except those of ``keep``."""
    try:
        yield
    except keep:
        raise
    except GoogleAuthError as error:
        raise UserError(
            f"no credentials for {address}: {_short(error)}: log in with "
            "gcloud auth application-default login"
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
    if isinstance(error, errors.NotFound):
        return f"no table at {address}: nutbeam table create makes it ({_short(error)})"
    if isinstance(error, errors.Forbidden):
        return f"no permission for {address}: {_short(error)}: roles/bigtable.user has it"
    if isinstance(error, errors.Unauthorized):
        return f"no valid credentials for {address}: {_short(error)}"
    return f"Bigtable refuses a request for {address}: {_short(error)}"


def _short(error: Exception | None) -> str:
    text = getattr(error, "message", "") or str(error)
    return " ".join(text.split())[:300]
