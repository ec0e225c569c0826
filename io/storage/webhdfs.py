"""Adds time limits and retries to the client of HDFS."""

import functools
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.util import Retry


def be_patient(client: Any, retries: int, timeout_s: tuple[float, float]) -> None:
    """Adds retries, time limits, and errors of data nodes to fsspec's WebHDFS client.

    Args:
        client: The client; it is changed.
        retries: Number of retries of a request.
        timeout_s: Time limits for connecting and for each read, s.
    """
    # All requests may be repeated, except POST, which appends.
    policy = Retry(
        total=retries, connect=3, backoff_factor=0.5, status_forcelist=(429, 502, 503, 504),
        allowed_methods=("GET", "PUT", "DELETE"), raise_on_status=False,
    )  # fmt: skip
    for prefix in ("http://", "https://"):
        client.session.mount(prefix, _Patient(timeout_s, max_retries=policy))
    client.session.hooks["response"].append(functools.partial(_refuse_pages, client.url))


class _Patient(HTTPAdapter):
    def __init__(self, timeout_s: tuple[float, float], max_retries: Retry) -> None:
        super().__init__(max_retries=max_retries)
        self._timeout_s = timeout_s

    def send(self, request: Any, **arguments: Any) -> Any:  # type: ignore[override]
        arguments["timeout"] = arguments.get("timeout") or self._timeout_s
        return super().send(request, **arguments)


def _refuse_pages(namenode: str, response: Any, **_: Any) -> None:
    """Raises errors of data nodes; fsspec's client would return the error page as the file."""
    if not response.url.startswith(namenode):
        response.raise_for_status()
