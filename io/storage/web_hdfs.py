"""HDFS through WebHDFS: the retries, errors and small writes that fsspec's client lacks."""

import functools
from typing import Any

HDFS_PORT = 9870
PORT_ADVICE = "name the host and the HTTP port of its name node (9870, unless it was set; not 8020)"
_DENIALS = {"AccessControlException", "AuthorizationException", "SecurityException"}
_NOT_READY = {"SafeModeException", "StandbyException", "RetriableException"}


class HdfsNotReady(Exception):
    """The name node refuses requests for now."""


class NoWebHdfs(Exception):
    """What answers at the address is not WebHDFS."""


def open_hdfs_client(module: Any, netloc: str, user: str | None, **retries: Any) -> Any:
    """Returns a client that repeats failed requests and raises all errors of nodes.

    Args:
        module: ``fsspec.implementations.webhdfs``.
        netloc: Host of the name node, with its HTTP port if that is not ``HDFS_PORT``.
        user: The user's name for simple authentication; None: the name node's default.
        retries: ``tries``, and ``timeout``: seconds to connect and to read.
    """
    host, _, port = netloc.rpartition(":") if ":" in netloc else (netloc, "", HDFS_PORT)
    client = module.WebHDFS(
        host, int(port), user=user, use_listings_cache=False, skip_instance_cache=True
    )
    _repeat_requests(client.session, **retries)
    raise_error = functools.partial(_raise_error, client.url, netloc)
    client.session.hooks["response"].append(raise_error)
    return client


def _repeat_requests(session: Any, tries: int, timeout: tuple[float, float]) -> None:
    from requests.adapters import HTTPAdapter  # late: it is rarely needed
    from urllib3.util import Retry

    # All requests may be repeated, except POST, which appends.
    policy = Retry(
        total=tries, connect=3, backoff_factor=0.5, status_forcelist=(429, 502, 503, 504),
        allowed_methods=("GET", "PUT", "DELETE"), raise_on_status=False,
    )  # fmt: skip
    for prefix in ("http://", "https://"):
        session.mount(prefix, HTTPAdapter(max_retries=policy))
    session.request = functools.partial(session.request, timeout=timeout)


def write_hdfs_file(client: Any, path: str, data: bytes) -> None:
    """Creates or replaces a file with one CREATE.

    fsspec's client creates an empty file and appends to it. An append may not be repeated,
    and small clusters refuse it when a data node is missing.
    """
    response = client._call("CREATE", "put", path=path, redirect=False, overwrite="true")
    location = client._apply_proxy(response.headers["Location"])
    client.session.put(location, data=data, headers={"Content-Type": "application/octet-stream"})


def _raise_error(namenode: str, netloc: str, response: Any, **_: Any) -> None:
    """Raises errors of nodes with their reasons.

    fsspec's client would return the error page of a data node as the file. WebHDFS answers 403
    for all errors of files, not only for those of permissions.
    """
    if response.status_code < 400:
        return
    kind, message = _remote_exception(response)
    if kind in _NOT_READY:
        raise HdfsNotReady(f"HDFS at {netloc!r} is not ready: {message}")
    if kind in _DENIALS:
        raise PermissionError(message)
    if kind == "FileNotFoundException":
        raise FileNotFoundError(message)
    if kind:
        raise RuntimeError(f"{kind}: {message}")
    if response.url.startswith(namenode) and response.status_code in (400, 404, 405):
        raise NoWebHdfs(f"no WebHDFS answers at {netloc!r}: {PORT_ADVICE}")
    response.raise_for_status()


def _remote_exception(response: Any) -> tuple[str, str]:
    """Returns the class and the message of an error of Hadoop; empty: it is another one."""
    try:
        remote = response.json()["RemoteException"]
        return str(remote["exception"]), str(remote["message"])
    except (ValueError, KeyError, TypeError):
        return "", ""
