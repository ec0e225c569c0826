"""Converts errors of the clients of stores into readable one-line errors."""

import contextlib
from collections.abc import Iterator

from ...web.base.errors import UserError, one_line
from .file_errors import first_line
from .store_names import STORES, StoreName


class StoreError(OSError):
    """A request to a store failed; the text is one line."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.strerror = text

    def __str__(self) -> str:
        return str(self.strerror)


class StoreUnreachable(StoreError):
    """A store does not answer; it may answer later."""


@contextlib.contextmanager
def client_errors(place: StoreName) -> Iterator[None]:
    """Re-raises errors of a client as a one-line ``StoreError``."""
    try:
        yield
    except (UserError, FileNotFoundError, NotADirectoryError, StoreError):
        raise
    except Exception as error:
        raise _store_error(error, place) from error


_NO_CREDENTIALS = {
    "gs": "no Google Cloud credentials were found: gcloud auth application-default login, "
    "or set GOOGLE_APPLICATION_CREDENTIALS",
    "s3": "no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "or AWS_PROFILE",
}
_CREDENTIAL_ERRORS = {"DefaultCredentialsError", "NoCredentialsError", "PartialCredentialsError"}
_CONNECTION_ERRORS = {"ClientConnectorError", "ClientOSError", "ConnectionError",
                      "ConnectTimeout", "ConnectTimeoutError", "EndpointConnectionError",
                      "ReadTimeout", "ServerDisconnectedError", "ServerTimeoutError",
                      "SocketTimeoutError", "ConnectionTimeoutError", "ConnectionClosedError",
                      "TimeoutError", "FSTimeoutError"}  # fmt: skip


def _store_error(error: Exception, place: StoreName) -> StoreError:
    """Returns a readable one-line error for an error of a client."""
    kinds = {kind.__name__ for cause in _causes(error) for kind in type(cause).__mro__}
    code, text = code_of(error), one_line(first_line(error), 300)
    if kinds & _CREDENTIAL_ERRORS:
        return StoreError(_NO_CREDENTIALS.get(place.scheme, text))
    if code in (401, 403) or "PermissionError" in kinds:
        return StoreError(f"permission denied: {text}")
    if code == 429 or (code is not None and code >= 500):
        return StoreUnreachable(
            f"the store answers {code}, again and again: try it again later ({text})"
        )
    if kinds & _CONNECTION_ERRORS:
        if place.scheme == "hdfs":
            return StoreUnreachable(
                f"HDFS at {place.netloc!r} cannot be reached ({_network_error(error)}): "
                "name the host and the HTTP port of its name node (9870, unless it was set)"
            )
        return StoreUnreachable(f"{STORES[place.scheme][0]} cannot be reached: {text}")
    return StoreError(text)


def _network_error(error: Exception) -> str:
    """Returns the text of the system's error, which urllib3 hides in very long messages."""
    reasons = [str(c.strerror) for c in _causes(error) if isinstance(c, OSError) and c.strerror]
    return reasons[-1].lower() if reasons else "no answer in time"


def code_of(error: BaseException) -> int | None:
    """Returns the HTTP status in an error of a client, or None."""
    for cause in _causes(error):
        if isinstance(cause, FileExistsError):
            return 412
        if str(cause).startswith("Forbidden"):  # gcsfs
            return 403
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # botocore
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        else:
            status = getattr(response, "status_code", None) or getattr(cause, "status", None)
        status = status or getattr(cause, "code", None)
        if str(status).isdigit():
            return int(str(status))
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__
