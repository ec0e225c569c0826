"""Stores, Cloud Storage, S3 and HDFS: names in them, their clients, and one-line errors of these.

Each process opens a client when it first needs it.
"""

import contextlib
import dataclasses
import functools
import importlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Self

from ...web.base.errors import UsageError, UserError, one_line
from .address_kinds import STORES
from .file_errors import first_line
from .web_hdfs import PORT_ADVICE, open_hdfs_client

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
CONNECT_S, READ_S = 20, 60
RETRIES = 6
_HDFS_USER = "HADOOP_USER_NAME"
_LOCAL = threading.local()
_MAKING = threading.Lock()
# Environment variables with the address of an emulator, or of a store with the same protocol.
_ENDPOINTS = {"gs": ("STORAGE_EMULATOR_HOST",), "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")}


@dataclasses.dataclass(frozen=True, order=True)
class StoreName:
    """A name in a store, with the methods of ``pathlib`` that need no request.

    Attributes:
        store: The store: ``gs://BUCKET``, ``s3://BUCKET`` or ``hdfs://HOST:PORT``.
        key: The name in the store.

    >>> name = StoreName("gs://bucket", PurePosixPath("table")) / "manifest"
    >>> str(name), name.scheme, name.parent.name
    ('gs://bucket/table/manifest', 'gs', 'table')
    """

    store: str
    key: PurePosixPath

    def __truediv__(self, name: str | PurePosixPath) -> Self:
        return dataclasses.replace(self, key=self.key / name)

    def __str__(self) -> str:
        return f"{self.store}/{self.key}" if self.key.parts else self.store

    @property
    def scheme(self) -> str:
        return self.store.partition("://")[0]

    @property
    def netloc(self) -> str:
        """The bucket, or host and port."""
        return self.store.partition("://")[2]

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def stem(self) -> str:
        return self.key.stem

    @property
    def suffix(self) -> str:
        return self.key.suffix

    @property
    def parent(self) -> Self:
        return dataclasses.replace(self, key=self.key.parent)

    @property
    def parents(self) -> tuple[Self, ...]:
        return tuple(dataclasses.replace(self, key=key) for key in self.key.parents)

    def with_name(self, name: str) -> Self:
        return dataclasses.replace(self, key=self.key.with_name(name))

    def with_suffix(self, suffix: str) -> Self:
        return dataclasses.replace(self, key=self.key.with_suffix(suffix))

    def relative_to(self, other: object, /) -> PurePosixPath:
        name, above = str(self), str(other)
        if not name.startswith(f"{above}/"):
            raise ValueError(f"{self} is not in {other}")
        return PurePosixPath(name.removeprefix(above).lstrip("/"))


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


def _store_error(error: Exception, place: StoreName) -> StoreError:
    """Returns a readable one-line error for an error of a client."""
    kinds = {kind.__name__ for cause in _causes(error) for kind in type(cause).__mro__}
    code, text = code_of(error), one_line(first_line(error), 300)
    if kinds & _CREDENTIAL_ERRORS:
        return StoreError(_NO_CREDENTIALS.get(place.scheme, text))
    if code in (401, 403) or "PermissionError" in kinds:
        denial = text.removeprefix("Permission denied: ")
        return StoreError(f"permission denied: {denial}{_user_advice(place, code)}")
    if code == 429 or (code is not None and code >= 500):
        return StoreUnreachable(
            f"the store answers {code}, again and again: try it again later ({text})"
        )
    if "HdfsNotReady" in kinds:
        return StoreUnreachable(text)
    if kinds & _CONNECTION_ERRORS:
        if place.scheme == "hdfs":
            return StoreUnreachable(
                f"HDFS at {place.netloc!r} cannot be reached ({_network_error(error)}): {PORT_ADVICE}"
            )
        return StoreUnreachable(f"{STORES[place.scheme][0]} cannot be reached: {text}")
    return StoreError(text)


def _user_advice(place: StoreName, code: int | None) -> str:
    if place.scheme != "hdfs":
        return ""
    unset = "" if os.environ.get(_HDFS_USER) else f": set {_HDFS_USER} to the user who may"
    return f"{unset} (Kerberos is not supported)" if code == 401 else unset


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


def path_in(place: StoreName) -> str:
    if place.scheme == "hdfs":
        return f"/{place.key}" if place.key.parts else "/"
    return f"{place.netloc}/{place.key}" if place.key.parts else place.netloc


def store_client_of(place: StoreName) -> Any:
    """Returns the client of a store: one per process, or one per thread for HDFS.

    Raises:
        UsageError: The client is not installed; the message says what to install.
        StoreError: There are no credentials.
    """
    with client_errors(place):
        return _client_of(place)


def _client_of(place: StoreName) -> Any:
    if place.scheme != "hdfs":
        named = [os.environ.get(name) for name in _ENDPOINTS[place.scheme]]
        with _MAKING:  # so that two threads do not make two clients
            return _made_client(place.scheme, next(filter(None, named), None), os.getpid())
    clients: dict[tuple[str, int], Any] = _LOCAL.__dict__.setdefault("clients", {})
    at = (place.netloc, os.getpid())
    if at not in clients:
        clients[at] = _hdfs(place.netloc)
    return clients[at]


@functools.lru_cache(maxsize=4)
def _made_client(scheme: str, endpoint: str | None, process: int) -> Any:
    for name in ("gcsfs", "s3fs"):  # they log errors with tracebacks, and also raise them
        log = logging.getLogger(name)
        if log.level == logging.NOTSET:
            log.setLevel(logging.CRITICAL)
    return {"gs": _gs, "s3": _s3}[scheme](endpoint)


def _gs(endpoint: str | None) -> Any:
    # Not its subclass, which requests the type of each bucket by gRPC.
    client = _import("gcsfs.core", "gs").GCSFileSystem
    aiohttp = _import("aiohttp", "gs")
    return client(
        token="anon" if endpoint else "google_default",
        requests_timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_S, sock_read=READ_S),
        session_kwargs={} if endpoint else {"trust_env": True},  # obeys HTTPS_PROXY
        use_listings_cache=False,
        skip_instance_cache=True,
    )


def _s3(endpoint: str | None) -> Any:
    module = _import("s3fs", "s3")
    return module.S3FileSystem(
        endpoint_url=endpoint,
        config_kwargs={
            "connect_timeout": CONNECT_S,
            "read_timeout": READ_S,
            "retries": {"mode": "standard", "max_attempts": RETRIES},
        },
        use_listings_cache=False,
        skip_instance_cache=True,
    )


def _hdfs(netloc: str) -> Any:
    module = _import("fsspec.implementations.webhdfs", "hdfs")
    user = os.environ.get(_HDFS_USER) or None
    return open_hdfs_client(module, netloc, user, tries=RETRIES, timeout=(CONNECT_S, READ_S))


def _import(module: str, scheme: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name, extra = STORES[scheme]
        raise UsageError(
            f"addresses of {scheme}:// need a client of {name} ({error.name or module} is not "
            f"installed): pip install 'nutbeam[{extra}]'"
        ) from error
