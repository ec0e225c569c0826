"""Explains reasons for people, in the words of the catalogue, with the options that a URL needs.

``check_obstacles`` finds the options that a crawl of given seeds needs, before anything runs.
"""

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

from ...io.storage.address_kinds import is_place
from ...policy.components.reasons import Reason, find_reason
from ...web.base.agent import AgentOptions, missing_agent
from ...web.base.errors import UsageError
from ...web.base.json_logs import without_login
from ...web.base.wording import format_count
from ...web.exchange.http_options import HttpOptions, guard_of
from ...web.network.guard import Denied, Guard, is_public, parse_ip
from ..base.command import Invocation, configuration

# Who counts what was left out: pairs of a job and a family, see ``find_reason``.
NOT_FETCHED = ("fetch not_fetched", "fetch dropped", "fetch protocol", "fetch protocol_message")
NOT_INJECTED, NOT_FOLLOWED = ("inject dropped",), ("update dropped",)
NOT_CHOSEN, NOT_INDEXED = ("generate left_out",), ("index -",)
NOT_PARSED = ("parse failed", "parse skipped")
# The value of an option in an advice.
_LIMIT = re.compile(r" than \{(\w+)[^}]*\}( s| bytes/s)?")
_COOKIES = "--http_cookies sends back the cookies that some sites want"
_SHOWN = 3  # reasons in one line
_LOCAL = ("localhost", "localhost.localdomain", "ip6-localhost")


def explain_reasons(
    reasons: Mapping[str, int],
    counted: Sequence[str],
    examples: Mapping[str, str],
    options: Any,
    advice: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Returns the most frequent reasons in one line, with an example and advice for each.

    Args:
        reasons: Number of URLs by reason.
        counted: Who counts them: pairs of a job and a family, see ``find_reason``.
        examples: A URL by reason.
        options: The options of the crawl.
        advice: What to do by reason, where the crawl knows more than the catalogue.

    >>> example = {"dns": "http://nosuch.example/"}
    >>> explain_reasons({"dns": 2}, ["fetch not_fetched"], example, None)
    'dns 2 (http://nosuch.example/: no name server knows the host; check its name)'
    """
    most = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    shown = [
        f"{name} {number:,}{_in_brackets(url, explanation)}"
        for name, number in most[:_SHOWN]
        for url in [examples.get(name, "")]
        for explanation in [explain_reason(name, counted, options, url, advice.get(name))]
    ]
    rest = [format_count(len(most) - _SHOWN, "more reasons")] if len(most) > _SHOWN else []
    return ", ".join(shown + rest)


def in_brackets(name: str, counted: Sequence[str], options: Any, url: str = "") -> str:
    """Returns ``explain_reason`` in brackets; empty if there is no explanation.

    >>> in_brackets("http_502", NOT_FETCHED, None), in_brackets("of_a_plugin", NOT_FETCHED, None)
    (' (the server failed; the same URL is tried again in a day, or when its server wants it)', '')
    """
    return _in_brackets(explain_reason(name, counted, options, url))


def _in_brackets(*texts: str) -> str:
    text = ": ".join(filter(None, texts))
    return f" ({text})" if text else ""


def explain_reason(
    name: str, counted: Sequence[str], options: Any, url: str = "", advice: str | None = None
) -> str:
    """Returns the meaning of a reason, and what to do; empty if the catalogue lacks it.

    Args:
        name: The reason. Plug-ins may have reasons of their own.
        counted: Who counts it: pairs of a job and a family, see ``find_reason``.
        options: The options of the command.
        url: The URL that the advice is for, if there is one.
        advice: What to do, instead of what the catalogue says.
    """
    reason = find_reason(name, *counted)
    if reason is None:
        return ""
    if advice is not None:
        reason = reason._replace(advice=advice)
    return "; ".join(filter(None, (reason.meaning, advice_of(reason, options, url))))


def advice_of(reason: Reason, options: Any, url: str = "") -> str:
    """Returns what to do about a reason, with the values of the options, if they are known.

    >>> advice_of(find_reason("timeout", "fetch not_fetched"), None)
    '--timeout allows more'
    """
    fields = _Fields(url, options)
    advice = _LIMIT.sub(lambda limit: limit[0] if limit[1] in fields else "", reason.advice)
    return advice.format_map(fields).removesuffix("; ")


class _Fields(dict[str, Any]):
    """The fields of an advice: options by name, and what the URL of the example needs.

    Args:
        url: The URL of the example; may be empty.
        options: The options of the crawl.
    """

    def __init__(self, url: str, options: Any) -> None:
        super().__init__(vars(options) if options is not None else {})
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme, parts.hostname, parts.port
        except ValueError:
            scheme, host, port = "", None, None
        host = host or "HOST"
        self["url"], self["host"] = url or "URL", host
        self["time_option"] = _time_option(self)
        has_cookies = self.get("http_cookies", False)
        self["cookies"] = "" if has_cookies else _COOKIES
        self["or_cookies"] = "" if has_cookies else ", or with --http_cookies"
        self["address"] = address_block(host)
        self["ports"] = ",".join([*self.get("allowed_ports", ()), str(port or "PORT")])
        self["schemes"] = ",".join([*self.get("schemes", ()), scheme or "SCHEME"])
        agent = AgentOptions() if options is None else options
        self["agent"] = missing_agent(agent) or "a contact"


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
        return "--time_limit or --fetch_time_limit allows more"
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


_PORTS = {"http": 80, "https": 443, "ftp": 21}


def is_local(seed: str) -> bool:
    """Returns whether a seed is a file: URL."""
    return seed.lower().startswith("file:")


def check_obstacles(invocation: Invocation, seeds: Sequence[str]) -> None:
    """Checks that the options let a crawl request at least one of its seeds.

    Names are not resolved: only addresses in URLs, and localhost, are known before a crawl.

    Args:
        invocation: The crawl.
        seeds: The seeds as typed; files of seeds are not read.

    Raises:
        UsageError: No seed can be requested. The message has all options that are missing, in a
            command that works.
    """
    options: HttpOptions = invocation.options
    if not seeds or any(map(is_place, seeds)):
        return
    with configuration():
        guard = guard_of(options)
    needs_by_seed = [_needs(seed, options, guard) for seed in seeds]
    if not all(needs_by_seed):
        return
    reasons = list(dict.fromkeys(reason for needs in needs_by_seed for _, reason, _ in needs))
    flags: dict[str, dict[str, Any]] = {}
    for name, _, value in (need for needs in needs_by_seed for need in needs):
        old = getattr(options, name)
        flags.setdefault(name, dict.fromkeys(map(str, old))).setdefault(value)
    words = [f"--{name} {shlex.quote(','.join(values))}" for name, values in flags.items()]
    web = [seed for seed in seeds if not is_local(seed)]
    own = "allow_addresses" in flags or options.allow_addresses or options.connect_to
    missing = missing_agent(options) if web and not own else None
    if missing is not None:
        reasons.append("sites must be able to tell who crawls them")
        words.append(missing.replace(" and ", " ").partition(" or ")[0])
    others = [[f"--{n}", text] for n, texts in invocation.typed.items() if n not in flags
              for text in texts]  # fmt: skip
    typed = ["nutbeam", "crawl", str(invocation.table), *seeds, *itertools.chain(*others)]
    what = without_login(seeds[0]) if len(seeds) == 1 else "none of the seeds"
    can = "cannot" if len(seeds) == 1 else "can"
    raise UsageError(
        f"{what} {can} be crawled: {'; '.join(reasons)}; this works: "
        f"{without_login(shlex.join(typed))} {' '.join(words)}"
    )


def _needs(seed: str, options: HttpOptions, guard: Guard) -> list[tuple[str, str, str]]:
    """Returns (option, reason, value to add) of each obstacle of a seed."""
    try:
        parts = urlsplit(seed)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError:
        return []  # inject has the reason
    if {f"{scheme}:", host} & {text.partition("=")[0].lower() for text in options.protocols}:
        return []  # the plug-in knows its ports and addresses
    needs = []
    if scheme not in options.schemes and scheme in ("file", *_PORTS):
        needs.append(("schemes", f"the scheme {scheme} is not allowed", scheme))
    if is_local(seed):
        if not options.file_roots:
            folder = unquote(parts.path).rpartition("/")[0] or "/"
            needs.append(("file_roots", "no folder may be read", folder))
        return needs
    own = _PORTS.get(scheme, 0)
    if not host or options.http_proxy or guard.connect_to(host, port or own) is not None:
        return needs
    block = address_block(host)
    if block != "CIDR" and not _passes(host, guard):
        needs.append(("allow_addresses", f"the address of {host} is private or special", block))
    try:
        guard.check_port(port or own)
    except Denied:
        needs.append(("allowed_ports", f"the port {port or own} is not allowed", str(port or own)))
    return needs


def _passes(host: str, guard: Guard) -> bool:
    """Returns whether the guard lets an address, or localhost, pass."""
    addresses = [host] if parse_ip(host) else ["127.0.0.1", "::1"]
    return any(guard.allows(address) or is_public(address) for address in addresses)
