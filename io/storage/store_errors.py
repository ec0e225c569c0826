"""What clients of stores raise, as one line for people."""

import contextlib
from collections.abc import Iterator

from ...web.base.errors import UserError
from .places import STORES, Remote


class StoreError(OSError):
    """A store did not do what it was asked for; the text is one line."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.strerror = text

    def __str__(self) -> str:
        return str(self.strerror)


class StoreUnreachable(StoreError):
    """A store does not answer; later it may."""


@contextlib.contextmanager
def asking(place: Remote) -> Iterator[None]:
    """Makes one line of what a client raises."""
    try:
        yield
    except (UserError, FileNotFoundError, NotADirectoryError, StoreError):
        raise
    except Exception as error:
        raise _explained(error, place) from error


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


def _explained(error: Exception, place: Remote) -> StoreError:
    """Returns why a client failed, as one line for people."""
    kinds = {kind.__name__ for cause in _causes(error) for kind in type(cause).__mro__}
    code, said = code_of(error), _first_line(error)
    if kinds & _CREDENTIAL_ERRORS:
        return StoreError(_NO_CREDENTIALS.get(place.scheme, said))
    if code in (401, 403) or "PermissionError" in kinds:
        return StoreError(f"permission denied: {said}")
    if code == 429 or (code is not None and code >= 500):
        return StoreUnreachable(
            f"the store answers {code}, again and again: try it again later ({said})"
        )
    if kinds & _CONNECTION_ERRORS:
        if place.scheme == "hdfs":
            return StoreUnreachable(
                f"HDFS at {place.netloc!r} cannot be reached ({_network_error(error)}): "
                "name the host and the HTTP port of its name node (9870, unless it was set)"
            )
        return StoreUnreachable(f"{STORES[place.scheme][0]} cannot be reached: {said}")
    return StoreError(said)


def _network_error(error: Exception) -> str:
    """Returns what the network said, in few words; urllib3 wraps pages around it."""
    said = [str(c.strerror) for c in _causes(error) if isinstance(c, OSError) and c.strerror]
    return said[-1].lower() if said else "no answer in time"


def code_of(error: BaseException) -> int | None:
    """Returns the HTTP status that made a client fail, if it says."""
    for cause in _causes(error):
        if isinstance(cause, FileExistsError):
            return 412
        if str(cause).startswith("Forbidden"):  # gcsfs
            return 403
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # botocore
            found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        else:
            found = getattr(response, "status_code", None) or getattr(cause, "status", None)
        found = found or getattr(cause, "code", None)
        if str(found).isdigit():
            return int(str(found))
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _first_line(error: BaseException) -> str:
    return " ".join((str(error).splitlines() or [type(error).__name__])[0].split())[:300]
