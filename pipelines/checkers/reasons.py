"""Explains why URLs were not fetched, and which option or step changes that.

Keys are the reasons in the counts of the jobs, such as ``not_fetched/dns`` or ``dropped/filtered``.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ...web.base.agent import missing_agent
from ...web.base.wording import format_count

# (meaning, advice); the advice may be empty, and names of fields are in braces: see ``_fields``.
Explanation = tuple[str, str]
_SERVER = "the same URL is tried again in a day"
_SKIP = "--insecure_host {host} skips the check"
_LATER = "its URLs stay due: run the crawl again later"

NOT_FETCHED: Mapping[str, Explanation] = {
    # The operator's side.
    "address_denied": (
        "the address is private or special",
        "--allow_addresses {address} allows it",
    ),
    "port_denied": ("the port is not allowed", "--allowed_ports {ports} allows it"),
    "agent_missing": ("a server of others must be able to tell who crawls it", "add {agent}"),
    "scheme_not_allowed": ("the scheme is not allowed", "--schemes {schemes} allows it"),
    "ftp_through_proxy": ("no proxy is used for FTP", "name the host in --connect_to"),
    "proxy_error": ("the proxy does not work", "check --http_proxy"),
    "proxy_refused": ("the proxy refuses the host", "check the rules of the proxy"),
    # robots.txt.
    "robots_denied": (
        "robots.txt does not allow it",
        "`nutbeam robotsparser` shows the rule; --robots_allowlist {host} is for your own hosts",
    ),
    "crawl_delay": (
        "robots.txt asks for a longer delay than --max_crawl_delay",
        "--max_crawl_delay allows more than {max_crawl_delay:g} s",
    ),
    "robots_deferred": (
        "robots.txt answers 425, 429 or 5xx, or its redirects do not end",
        f"{_LATER}, or with --http_cookies; `nutbeam robotsparser` shows the answer",
    ),
    "robots_redirects": (
        "robots.txt redirects to a host that got too many such requests",
        "--robots_redirect_targets allows more than {robots_redirect_targets}",
    ),
    "robots_too_costly": ("robots.txt takes too long to compare", ""),
    # The network and the server.
    "dns": ("no name server knows the host", "check its name"),
    "refused": ("nothing listens on that port", "check that the server runs"),
    "unreachable": ("the server cannot be reached", "check the network"),
    "tls_name": ("the certificate is for other names", f"check the name; {_SKIP}"),
    "tls_date": (
        "the certificate has expired, or is not valid yet",
        f"check the clock of this machine; {_SKIP}",
    ),
    "tls_authority": (
        "its certificate is self-signed, or made by an authority that is not trusted",
        f"--ca_file FILE has the authorities to trust; {_SKIP}",
    ),
    "tls_chain": (
        "the certificate of the authority that made its certificate was not sent, and is not known",
        f"--ca_file FILE may have it; {_SKIP}",
    ),
    "tls_client_certificate": ("the server wants a certificate of the client", ""),
    "tls_certificate": ("the certificate is not valid", _SKIP),
    "tls_protocol": (
        "the server has no TLS from version 1.2 on, no cipher that nutbeam takes, or not HTTP/1.1",
        "",
    ),
    "no_tls": ("the server does not answer in TLS on this port", "try http://"),
    "tls": ("the server ends TLS with an error", ""),
    "timeout": ("the server did not answer in time", "--timeout allows more than {timeout:g} s"),
    "too_slow": (
        "the whole answer took too long",
        "--http_time_limit allows more than {http_time_limit:g} s",
    ),
    "low_rate": ("the answer came too slowly", "--min_rate allows less than {min_rate:g} bytes/s"),
    "reset": ("the server closed the connection", _SERVER),
    "incomplete": ("the answer ended early", _SERVER),
    "bad_encoding": ("the body cannot be decoded", ""),
    "protocol_error": ("the answer does not follow the protocol", ""),
    "headers_too_large": ("the headers of the answer are too large", ""),
    "framing_too_large": ("the answer has too much between its data", ""),
    "bad_url": ("the URL cannot be requested", ""),
    "address_changed": ("the host has moved to another address", _LATER),
    "http_401": ("the page needs a login", "--http_credentials FILE has logins"),
    "http_403": ("the server denies access", ""),
    "http_404": ("there is no such page", "check the URL"),
    "http_407": ("the proxy needs a login", "--http_credentials FILE has logins"),
    "http_410": ("the page was removed", ""),
    "http_425": ("the server asks for a later try", _LATER),
    "http_429": ("the server asks for a pause", _LATER),
    # The limits of a fetch.
    "backoff": (
        "the host asks for a longer pause than --max_backoff",
        "--max_backoff waits for more than {max_backoff:g} s",
    ),
    "time_limit": ("the fetch had no time left", "{time_option}"),
    "throughput": ("too few pages came", "--throughput_threshold_pages is the least"),
    "too_many_exceptions": (
        "the host failed too often",
        "--max_exceptions_per_host allows more than {max_exceptions_per_host}",
    ),
    "stopped": ("the fetch was stopped", "run the crawl again"),
    # Redirects: no failure, but no page either.
    "moved": ("it redirects", "the target is fetched in a later round"),
    "temp_moved": ("it redirects", "the target is fetched in a later round"),
}

# Reasons why a seed is not put into the table.
NOT_INJECTED: Mapping[str, Explanation] = {
    "filtered": ("a URL filter refuses it", "`nutbeam filterchecker {url}` shows the rule"),
    "filter_timeout": ("a URL filter took too long", "`nutbeam filterchecker` shows the rule"),
    "excluded": ("a pattern of --exclude is in it", "without that pattern it is taken"),
    "malformed": ("it is no URL", "a URL begins with http:// or https://"),
    "scheme_not_allowed": NOT_FETCHED["scheme_not_allowed"],
    "file_elsewhere": ("a file: URL cannot name a host", "write file:///PATH"),
    "url_too_long": ("it is too long", "--max_url_length allows more than {max_url_length}"),
    "key_too_long": ("it is too long", ""),
    "normalizer_loop": ("the normalizers do not come to an end", "see `nutbeam normalizerchecker`"),
    "normalizer_timeout": ("a normalizer took too long", "see `nutbeam normalizerchecker`"),
    "purged": ("it was purged, and is on the blocklist", ""),
}
# Reasons why the target of a redirect is not put into the table; each begins with ``redirect_``.
TARGETS: Mapping[str, Explanation] = {
    "out_of_scope": (
        "its target is on another site than the seeds",
        "give the target as a seed, or --scope any",
    ),
    "filtered": ("a URL filter refuses its target", "`nutbeam filterchecker` shows the rule"),
    "excluded": ("a pattern of --exclude is in its target", "without that pattern it is taken"),
    "not_included": ("no pattern of --include is in its target", "--include PATTERN adds one"),
    "own_url": (
        "its redirect leads back to itself, also when it is requested again",
        "--http_cookies sends back the cookies that some sites want",
    ),
}
_CODE = re.compile(r"http_(\d)\d\d")
_LOCAL = ("localhost", "localhost.localdomain", "ip6-localhost")


def explain_reasons(
    reasons: Mapping[str, int],
    meanings: Mapping[str, Explanation],
    examples: Mapping[str, str],
    options: Any,
) -> str:
    """Returns the most frequent reasons in one line, with an example and advice for each.

    Args:
        reasons: Number of URLs by reason.
        meanings: Explanations by reason.
        examples: A URL by reason.
        options: The options of the crawl.

    >>> explain_reasons({"dns": 2}, NOT_FETCHED, {"dns": "http://nosuch.example/"}, None)
    'dns 2 (http://nosuch.example/: no name server knows the host; check its name)'
    """
    most = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    shown = [
        f"{reason} {number:,}{describe_reason(reason, meanings, examples.get(reason, ''), options)}"
        for reason, number in most[:_SHOWN]
    ]
    rest = [format_count(len(most) - _SHOWN, "more reasons")] if len(most) > _SHOWN else []
    return ", ".join(shown + rest)


_SHOWN = 3


def describe_reason(
    reason: str, meanings: Mapping[str, Explanation], url: str, options: Any
) -> str:
    """Returns the URL of an example, the meaning and the advice of a reason, in brackets.

    >>> describe_reason("http_502", NOT_FETCHED, "", None)
    ' (the server failed; the same URL is tried again in a day)'
    """
    meaning, advice = meanings.get(reason) or _of_code(reason)
    parts = [f"{url}: {meaning}" if url and meaning else url or meaning]
    parts += [advice.format_map(_Fields(url, options))] if advice else []
    text = "; ".join(part for part in parts if part)
    return f" ({text})" if text else ""


def _of_code(reason: str) -> Explanation:
    """Returns the explanation of an HTTP status."""
    match = _CODE.fullmatch(reason)
    if match is None:
        return "", ""
    return ("the server failed", _SERVER) if match[1] == "5" else ("the server refuses it", "")


class _Fields(dict[str, Any]):
    """The fields of an advice: options by name, and what the URL of the example needs.

    Args:
        url: The URL of the example; may be empty.
        options: The options of the crawl.
    """

    def __init__(self, url: str, options: Any) -> None:
        super().__init__(vars(options) if options is not None else {})
        parts = urlsplit(url)
        try:
            host, port = parts.hostname or "HOST", parts.port
        except ValueError:
            host, port = "HOST", None
        self["url"], self["host"] = url or "URL", host
        self["time_option"] = _time_option(self)
        self["address"] = address_block(host)
        self["ports"] = ",".join([*self.get("allowed_ports", ()), str(port or "PORT")])
        self["schemes"] = ",".join([*self.get("schemes", ()), parts.scheme or "SCHEME"])
        self["agent"] = (missing_agent(options) if options is not None else None) or "a contact"


def _time_option(options: Mapping[str, Any]) -> str:
    """Returns which option allows a fetch more time; a crawl has one for all, and one for each.

    >>> _time_option({"fetch_time_limit": 60.0})
    '--fetch_time_limit allows more than 60 s'
    >>> _time_option({"time_limit": 60.0, "fetch_time_limit": 90.0})
    '--time_limit allows more than 60 s'
    """
    limits = {name: options.get(name, -1.0) for name in ("time_limit", "fetch_time_limit")}
    set_limits = {name: limit for name, limit in limits.items() if limit >= 0}
    if not set_limits:
        return ""
    name = min(set_limits, key=lambda name: set_limits[name])
    return f"--{name} allows more than {set_limits[name]:g} s"


def address_block(host: str) -> str:
    """Returns the value of ``allow_addresses`` that allows a host, if its name says so.

    >>> address_block("localhost"), address_block("10.1.2.3"), address_block("wiki.intern")
    ('127.0.0.0/8,::1/128', '10.1.2.3/32', 'CIDR')
    """
    if host in _LOCAL or host.endswith(".localhost"):
        return "127.0.0.0/8,::1/128"
    if ":" in host:
        return f"{host}/128"
    return f"{host}/32" if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", host) else "CIDR"
