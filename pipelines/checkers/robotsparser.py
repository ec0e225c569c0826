"""robotsparser: shows which URLs a robots.txt allows, from a file or a server."""

import contextlib
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from ...web.base.agent import agent_token, require_agent
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.visible import visible
from ...web.clients.http_client import Client
from ...web.exchange.http_options import FileOptions, HttpOptions
from ...web.robots.robots import (
    ALLOWED,
    DEFER,
    DENIED,
    TOO_COSTLY,
    RobotsRecord,
    RobotsRules,
    fetch_robots,
    is_exempt,
    line_of,
    rule_lines,
)
from ...web.robots.robots_options import RobotsOptions
from ...web.robots.robots_text import absolute_sitemaps, decode_robots
from ...web.urls.schemes import is_web
from ...web.urls.url_parts import host_of_url
from ..base.command import DONE, Argument, Invocation, configuration
from .checking import odd_delay_note, urls_of

ARGUMENTS = (
    Argument("robots", "File with a robots.txt, or a URL of the site that has it."),
    Argument("urls", "URLs to ask about, or files of them, one a line; none reads standard input.",
             nargs="*"),
)  # fmt: skip
_SCHEMES = ("http://", "https://")
_VERDICTS = {ALLOWED: "allowed", DENIED: "not allowed", TOO_COSTLY: "too costly"}
_OF_FILES = {field.name for field in dataclasses.fields(FileOptions)}


@dataclass(frozen=True)
class Options(RobotsOptions, HttpOptions):
    """Options of robotsparser. The groups of agent_name and robots_agents are obeyed."""


def run(invocation: Invocation) -> int:
    """Prints a line for each URL: its verdict, the URL, and the line of robots.txt that decides.

    Tabs separate them; a colon follows the verdict (see ``_verdict``).
    """
    options: Options = invocation.options
    source = invocation.arguments["robots"]
    rules = _rules(source, options)
    sitemaps, origin = rules.sitemaps, _origin(source)
    if origin:  # only then it is known what relative ones mean
        sitemaps = absolute_sitemaps(sitemaps, origin)
    delay = f", crawl delay {rules.crawl_delay:g} s" if rules.crawl_delay is not None else ""
    if rules.odd_delay is not None:
        delay = f", {odd_delay_note(rules.odd_delay)}"
    failed = rules.state == DEFER or rules.error
    answer = rules.error or rules.status if failed else rules.state
    line = f"robots.txt: {answer}{delay}, {len(sitemaps)} sitemaps"
    print(visible(line), file=sys.stderr)
    lines = rule_lines(rules.record.text, (agent_token(options), *options.robots_agents))
    judged = []
    for url in urls_of(invocation.arguments["urls"]):
        verdict = _verdict(url, rules, options)
        decided = line_of(rules, url, lines) if verdict in _VERDICTS.values() else None
        number, rule = decided or (None, None)
        judged.append({"url": url, "verdict": verdict, "line": number, "rule": rule})
        if invocation.format == "text":
            by = f"\tline {number}: {visible(str(rule))}" if decided else ""
            print(f"{verdict}:\t{visible(url)}{by}", flush=True)
    if invocation.format == "json":
        record = {
            n: getattr(rules, n) for n in ("state", "status", "error", "crawl_delay", "odd_delay")
        }
        record |= {"sitemaps": list(sitemaps), "urls": judged}
        print(json.dumps(record, ensure_ascii=False))
    return DONE


def _verdict(url: str, rules: RobotsRules, options: Options) -> str:
    """Returns "allowed", "not allowed", "too costly", "allowlisted" or "no url"."""
    host = host_of_url(url)
    if not host:  # robots.txt has rules only for pages of hosts
        return "no url"
    if is_exempt(host, options.robots_allowlist):
        return "allowlisted"
    return _VERDICTS[rules.verdict(url)]


def _origin(source: str) -> str:
    """Returns the origin of a URL; empty for a file."""
    is_url = source.lower().startswith(_SCHEMES)
    return "/".join(source.split("/", 3)[:3]) if is_url else ""


def _rules(source: str, options: Options) -> RobotsRules:
    agents = (agent_token(options), *options.robots_agents)
    origin = _origin(source)
    if not origin:
        return RobotsRules(RobotsRecord(200, decode_robots(_read(source)), 0), agents)
    with configuration():
        require_agent(options)
    with contextlib.closing(Client(options)) as client:
        return fetch_robots(client, origin, options.robots_redirect_max, options.robots_agents)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        why = error.strerror or "it cannot be read"
        raise UsageError(f"there must be a file or a url, got {path!r}: {why}") from error


class RequestedRobots:
    """The robots.txt of sites, requested once each, by the client of fetch and through its guard.

    Args:
        options: ``RobotsOptions``, and those of ``HttpOptions`` that the command has.

    Raises:
        UsageError: The options do not say who requests it.
    """

    def __init__(self, options: Any) -> None:
        with configuration():
            require_agent(options)
            # Whatever schemes the command has, the request is one of HTTP.
            own = {f.name for f in dataclasses.fields(HttpOptions)} - _OF_FILES
            http_values = {name: value for name, value in vars(options).items() if name in own}
            self._http = HttpOptions(**http_values)
        self._robots: RobotsOptions = options
        self._known: dict[str, RobotsRules] = {}

    def host_of(self, url: str) -> dict[str, Any] | None:
        """Returns the columns of a host record about robots.txt, as of now; None without a request.

        A site without robots.txt, or one that is exempt from it, gets no request.
        """
        if not is_web(url) or is_exempt(host_of_url(url) or "", self._robots.robots_allowlist):
            return None
        origin = "/".join(url.split("/", 3)[:3])
        if origin not in self._known:
            with contextlib.closing(Client(self._http)) as client:
                self._known[origin] = fetch_robots(
                    client, origin, self._robots.robots_redirect_max, self._robots.robots_agents
                )
        rules = self._known[origin]
        record = rules.record
        return {
            "robots_status": record.status, "robots_origin": origin, "robots_text": record.text,
            "robots_time": now_ms(), "robots_failing_since": record.failing_since,
            "error": rules.error,
        }  # fmt: skip
