"""Opens clients of stores; each process opens a client when it first needs it."""

import functools
import importlib
import logging
import os
import threading
from typing import Any

from ...web.base.errors import UsageError
from .store_errors import client_errors
from .store_names import STORES, StoreName

CONNECT_S, READ_S = 20, 60
RETRIES = 6
HDFS_PORT = 9870
_LOCAL = threading.local()


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


_MAKING = threading.Lock()
# Environment variables with the address of an emulator, or of a store with the same protocol.
_ENDPOINTS = {"gs": ("STORAGE_EMULATOR_HOST",), "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")}


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
    host, _, port = netloc.rpartition(":") if ":" in netloc else (netloc, "", HDFS_PORT)
    client = module.WebHDFS(
        host,
        int(port),
        user=os.environ.get("HADOOP_USER_NAME") or None,
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    from .webhdfs import be_patient  # late: it imports requests, and is rarely needed

    be_patient(client, RETRIES, (CONNECT_S, READ_S))
    return client


def _import(module: str, scheme: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name, extra = STORES[scheme]
        raise UsageError(
            f"addresses of {scheme}:// need a client of {name} ({error.name or module} is not "
            f"installed): pip install 'nutbeam[{extra}]'"
        ) from error
