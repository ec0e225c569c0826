"""A client of one search server: requests over a kept connection, with credentials and TLS."""

import gzip
import http.client
import json
import logging
import os
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter

from ...web.base.errors import Unavailable, UsageError, UserError, one_line
from ...web.base.wording import quote_value
from ...web.exchange.credentials import Credential, is_token, load_credentials
from ...web.indexing.server_answers import BUSY, RetryPlan, ServerAnswer
from ...web.network.dialer import split_url
from ...web.network.failures import reason_of
from ...web.urls.userinfo import mask_users

USER, PASSWORD = "NUTBEAM_INDEX_USER", "NUTBEAM_INDEX_PASSWORD"
# Kind of the credential in each of these variables.
TOKENS = {"NUTBEAM_INDEX_API_KEY": "apikey", "NUTBEAM_INDEX_TOKEN": "bearer"}
_LOG = logging.getLogger(__name__)
_CONNECT_SECONDS = 10.0
_GZIP_LEVEL = 1  # on a local network the CPU is dearer than the bytes
_SMALL = 1_024  # bytes that are not worth packing
_LONGEST_ANSWER = 256 << 20  # bytes; the answers that are read have some MB
# A server that is down when a command begins is named soon.
_LONGEST_DOWN = 30.0  # s
# Why there is no answer, by the reason of the error.
_NO_ANSWER = {
    "refused": "connection refused",
    "dns": "host name not known",
    "timeout": "timed out",
    "reset": "it closed the connection",
    "incomplete": "its answer broke off",
}


class NoAnswer(Unavailable):
    """A server did not answer a request; whether it did what was requested is unknown."""


class ServerClient:
    """Sends requests to a server; secrets are in no message, and in no attribute that is shown.

    Args:
        address: ``http://HOST:PORT`` or ``https://HOST:PORT``, with a path if there is one.
        credentials: File with user and password, token or key for it; empty: those in the
            environment.
        ca_file: File with certificates of authorities, in PEM; empty: the known ones.
        timeout: How long the server may take for an answer, s.
        packed: Whether bodies are sent with gzip.
        patience: How long ``ask`` goes on while the server is busy, s.

    Raises:
        UsageError: The address or a file is wrong.
    """

    def __init__(
        self,
        address: str,
        credentials: str = "",
        ca_file: str = "",
        timeout: float = 120.0,
        packed: bool = True,
        patience: float = 600.0,
    ) -> None:
        self.address = checked_address(address)
        self._timeout, self._packed, self._patience = timeout, packed, patience
        self._verify: str | bool = _checked_authorities(ca_file) if ca_file else True
        self._authorization = _authorization(self.address, credentials)
        self._local = threading.local()

    def send(
        self,
        method: str,
        path: str,
        body: bytes | Mapping[str, Any] | Iterable[Any] | None = None,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> ServerAnswer:
        """Returns the answer to a request.

        Raises:
            NoAnswer: There was none, or it broke off.
            UserError: The certificate of the server is not valid.
        """
        data = (
            None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
            if self._packed and len(data) > _SMALL:
                data = gzip.compress(data, _GZIP_LEVEL)
                headers["Content-Encoding"] = "gzip"
        if self._authorization:
            headers["Authorization"] = self._authorization
        try:
            with self._session().request(
                method, self.address + path, data=data, headers=headers, params=params,
                verify=self._verify, timeout=(_CONNECT_SECONDS, self._timeout),
                allow_redirects=False, stream=True,
            ) as answer:  # fmt: skip
                return ServerAnswer(
                    answer.status_code,
                    self._body_of(answer),
                    answer.headers.get("Retry-After", ""),
                    answer.headers.get("Content-Type", ""),
                )
        except requests.exceptions.SSLError as error:
            raise UserError(f"{self.address}: TLS failed: {_reason(error)}") from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise NoAnswer(f"{self.address} does not answer: {_why_no_answer(error)}") from None

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> ServerAnswer:
        """Returns the answer to a short request, which is sent again while the server is busy.

        If it is busy for longer than the patience, its last answer is returned.

        Raises:
            NoAnswer: There was none for half a minute, or for the patience if that is shorter.
            UserError: The certificate of the server is not valid, or it does not answer in JSON.
        """
        busy, down = (RetryPlan(min(s, self._patience)) for s in (self._patience, _LONGEST_DOWN))
        while True:
            begun = time.monotonic()
            try:
                answer = self.send(method, path, body, params=params)
            except NoAnswer as error:
                down.add_lost_time(time.monotonic() - begun)
                seconds = down.wait()
                if seconds is None:
                    raise
                warn_of_first_wait(down, str(error))
            else:
                if not answer.is_odd and answer.status not in BUSY:
                    return answer
                plan = down if answer.is_odd else busy
                seconds = plan.wait(answer.retry_after)
                if seconds is None:
                    return self._in_json(answer)
                how = "not in JSON" if answer.is_odd else f"with status {answer.status}"
                warn_of_first_wait(plan, f"{self.address} answers {how}")
            time.sleep(seconds)

    def find_documents(
        self,
        where: str,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Returns the answer to a search, which has ``hits`` or ``response``.

        Args:
            where: What is searched, for the message.
            method, path, body, params: As for ``send``.

        Raises:
            UserError: The server does not show the documents.
        """
        answer = self.send(method, path, body, params=params)
        if answer.status == 200 and answer.record.keys() & {"hits", "response"}:
            return answer.record
        raise self.failure(f"show the documents of {where}", answer)

    def failure(self, what: str, answer: ServerAnswer) -> UserError:
        """Returns the error for an answer that shows that the server does not do something."""
        return UserError(f"{self.address} does not {what}: status {answer.status}, {answer.text}")

    def _in_json(self, answer: ServerAnswer) -> ServerAnswer:
        if answer.is_odd:
            raise UserError(
                f"{self.address} does not answer in JSON, but with {quote_value(answer.text)}: is it a "
                "search server?"
            )
        return answer

    def _body_of(self, answer: requests.Response) -> bytes:
        """Returns the body of an answer, whose time and size are limited.

        Raises:
            NoAnswer: It is too long, or takes too long.
        """
        read = getattr(answer.raw, "read1", answer.raw.read)  # of urllib3 2.1 and later
        ends, body = time.monotonic() + self._timeout, bytearray()
        while part := read(1 << 16, decode_content=True):
            body += part
            if len(body) > _LONGEST_ANSWER:
                raise NoAnswer(f"{self.address} answers with more than {_LONGEST_ANSWER:,} bytes")
            if time.monotonic() > ends:
                raise NoAnswer(f"{self.address} sends an answer for over {self._timeout:g} s")
        return bytes(body)

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.trust_env = False  # neither ~/.netrc nor proxies of the environment
            for scheme in ("http://", "https://"):
                session.mount(scheme, HTTPAdapter(pool_connections=1, pool_maxsize=1))
        return session


def checked_address(address: str) -> str:
    """Returns an address without its last slash.

    Raises:
        UsageError: It is no URL of http or https, or has a user, a query or a fragment.

    >>> checked_address("http://localhost:9200/")
    'http://localhost:9200'
    """
    parts = urlsplit(address)
    try:
        split_url(address)
    except ValueError:
        raise UsageError(
            f"url must be http://HOST:PORT or https://HOST:PORT, got {quote_value(mask_users(address))}"
        ) from None
    if "@" in parts.netloc:
        raise UsageError(
            "url must not have user and password, which logs would show: put them into a file "
            f"and name it with credentials=FILE, got {quote_value(mask_users(address))}"
        )
    if parts.query or parts.fragment:
        raise UsageError(f"url must not have a query or a fragment, got {quote_value(address)}")
    return address.rstrip("/")


def _checked_authorities(path: str) -> str:
    try:
        ssl.create_default_context(cafile=path)
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        raise UsageError(
            f"ca_file must be a file with certificates, got {quote_value(path)}"
        ) from None
    return path


def _authorization(address: str, path: str) -> str:
    """Returns the header Authorization; empty if there are no credentials."""
    if path:
        credential = load_credentials(path).get(split_url(address)[0])
        if credential is None:
            raise UsageError(f"{path} has no line for {address}")
        if credential.kind == "digest":
            raise UsageError(f"{path}: search servers need basic, bearer or apikey for {address}")
        return credential.header()
    for name, kind in TOKENS.items():
        if secret := os.environ.get(name, "").strip():
            if not is_token(secret):  # a header with it would fail with a message that shows it
                raise UsageError(f"{name} must be one word of letters, digits and -._~+/=")
            return Credential(kind, "", secret).header()
    user, password = os.environ.get(USER, ""), os.environ.get(PASSWORD, "")
    if bool(user) != bool(password):
        raise UsageError(f"{USER} and {PASSWORD} must both be set, or none of them")
    return Credential("basic", user, password).header() if user else ""


def warn_of_first_wait(plan: RetryPlan, why: str) -> None:
    """Logs why a server is tried again, before the first wait of a plan."""
    if plan.attempt == 1:
        _LOG.warning("%s; trying again for up to %g s", why, plan.patience)


def _why_no_answer(error: BaseException) -> str:
    """Returns in words why there was no answer, from the outermost error that says so."""
    inner: BaseException | None = error
    while inner is not None:
        if why := _NO_ANSWER.get(reason_of(inner)) or getattr(inner, "strerror", None):
            return str(why).lower()
        if isinstance(inner, http.client.HTTPException):
            return "its answer is not HTTP"
        inner = inner.__cause__ or inner.__context__
    return _reason(error)


def _reason(error: BaseException) -> str:
    """Returns the innermost reason of an error of requests, in one line."""
    inner: Any = error
    while inner.args and isinstance(getattr(inner.args[0], "reason", inner.args[0]), Exception):
        inner = getattr(inner.args[0], "reason", inner.args[0])
        if inner is error:
            break
    text = one_line(inner, 300)
    return (
        mask_users(text.partition(": ")[2] if text.startswith("<") else text)
        or type(inner).__name__
    )
