"""Looks at the network and the identity: names, proxy, certificates, the crawler's name and its page."""

import dataclasses
import email.utils
import os
import socket
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from ...transforms.fetching import PAGES_OUTPUT, RowsFetching, admit, fetch_pages
from ...web.base.agent import agent_token, missing_agent
from ...web.base.clock import now_ms
from ...web.base.errors import UserError
from ...web.base.json_logs import without_login
from ...web.exchange.credentials import is_open_to_others, load_credentials
from ...web.exchange.http_options import HttpOptions
from ...web.network.proxy import parse_proxy
from ...web.tls.contexts import tls_context
from .findings import Finding, faults_as, ok, warning, wrong

# A name that exists as long as there is a DNS (RFC 2606).
_ANY_NAME = "example.com"
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")
# How wrong a clock may be before certificates and dates of pages are judged wrongly, s.
_CLOCK_S = 300


def look_at_names(options: Any) -> Iterator[Finding]:
    """Looks up the host of the crawler's page, or a host that always exists."""
    if options.http_proxy:
        yield ok("DNS", "not needed: the proxy looks names up")
        return
    name = _own_host(options) or _ANY_NAME
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(name, 443)}
    except OSError as error:
        text = f"{name} is not found: {error.strerror or error}"
        yield warning("DNS", text, "check the network and /etc/resolv.conf, or give --http_proxy")
        return
    yield ok("DNS", f"{name} is {', '.join(sorted(map(str, addresses))[:2])}")


def _own_host(options: Any) -> str:
    host = urlsplit(options.agent_url).hostname if options.agent_url else None
    return host or options.agent_email.rpartition("@")[2]


def look_at_proxy(options: Any, limit_s: float) -> Iterator[Finding]:
    """Connects to the proxy; without one, looks for variables that nutbeam does not obey."""
    errors: list[Finding] = []
    with faults_as(errors, "proxy", "--http_proxy http://HOST:PORT"):
        proxy = parse_proxy(options.http_proxy)
        if proxy is not None:
            try:
                socket.create_connection((proxy.host, proxy.port), limit_s).close()
            except OSError as error:
                text = (
                    f"{proxy.host} does not answer on port {proxy.port}: {error.strerror or error}"
                )
                raise UserError(text) from error
            yield ok("proxy", f"{proxy.host} answers on port {proxy.port}")
            return
    yield from errors
    names = [name for name in _PROXY_VARIABLES if {name, name.upper()} & os.environ.keys()]
    if names and not errors:
        text = f"the variable {names[0]} is set, and a crawl does not obey it"
        yield warning("proxy", text, "--http_proxy http://HOST:PORT if requests need the proxy")


def look_at_certificates(options: HttpOptions) -> Iterator[Finding]:
    """Loads the certificates that a crawl trusts, and the credentials."""
    errors: list[Finding] = []
    cure = "--ca_file must name a file of certificates (PEM); without it the bundled ones count"
    with faults_as(errors, "TLS roots", cure):
        context = tls_context(options.ca_file)
        number = context.cert_store_stats()["x509_ca"]
        if number:
            yield ok("TLS roots", f"{number} authorities are trusted; {ssl.OPENSSL_VERSION}")
        else:
            yield wrong("TLS roots", "no authority is trusted", cure)
    if options.insecure_host:
        hosts = ", ".join(options.insecure_host)
        yield warning("TLS roots", f"certificates of {hosts} are not checked", "--insecure_host")
    if options.http_credentials:
        with faults_as(errors, "credentials", "--http_credentials FILE"):
            load_credentials(options.http_credentials)
            if is_open_to_others(options.http_credentials):
                path = options.http_credentials
                yield warning("credentials", f"others may read {path}", f"chmod 600 {path}")
            else:
                yield ok("credentials", f"{options.http_credentials} can be read")
    yield from errors


def look_at_identity(options: Any, limit_s: float) -> Iterator[Finding]:
    """Checks that the crawler has a name and a contact, and that its page answers."""
    missing = missing_agent(options)
    if missing is not None:
        text = f"sites cannot tell who crawls them: {missing} is missing"
        own = options.connect_to or options.allow_addresses
        if own:
            yield warning("identity", f"{text}; only servers of your own are reached", missing)
        else:
            yield wrong("identity", text, f"add {missing}, or write it into nutbeam.toml")
        return
    contact = without_login(options.agent_url or options.agent_email)
    yield ok("identity", f"{agent_token(options)}, {contact}")
    if options.agent_url:
        yield from _look_at_page(options, limit_s)


def _look_at_page(options: Any, limit_s: float) -> Iterator[Finding]:
    """Requests the crawler's page, as a crawl would."""
    url, cure = options.agent_url, "operators of sites look there: let it answer, or change it"
    shown = without_login(url)
    wanted, dead = admit_url(url)
    if len(dead):
        yield wrong("contact page", f"{shown} is no URL that can be requested", "--agent_url URL")
        return
    hasty = dataclasses.replace(options, timeout=limit_s, http_time_limit=limit_s, server_delay=0.0)
    kind, page = next(iter(fetch_pages(RowsFetching(wanted, hasty))), ("", {"reason": "no answer"}))
    if kind != PAGES_OUTPUT:
        text = f"{shown} gives no page: {page['reason']}"
        yield warning("contact page", text, cure)
        return
    code = int(page["http_code"] or 0)
    if code >= 400:
        yield wrong("contact page", f"{shown} answers {code}", cure)
    else:
        yield ok("contact page", f"{shown} answers {code}")
    yield from _compare_clocks(page)


def admit_url(url: str) -> tuple[Any, Any]:
    """Returns (rows to request, dead letters) of one URL; see ``admit``."""
    import polars as pl

    return admit(pl.DataFrame({"url": [url]}))


def _compare_clocks(page: Any) -> Iterator[Finding]:
    """Compares the clock with that of the server of a page."""
    dates = [one["value"] for one in page["headers"] or () if one["name"].lower() == "date"]
    parsed = email.utils.parsedate_to_datetime(dates[0]) if dates else None
    if parsed is None:
        return
    apart = now_ms() / 1000 - parsed.timestamp()
    if abs(apart) > _CLOCK_S:
        side = "ahead of" if apart > 0 else "behind"
        text = f"it is {abs(apart):,.0f} s {side} that of the server of the contact page"
        yield wrong("clock", text, "set the clock, and let a service keep it right (NTP)")
