"""Requests the robots.txt of single URLs now: explain --ask_robots."""

import contextlib
import dataclasses
from typing import Any

from ...web.base.agent import require_agent
from ...web.base.clock import now_ms
from ...web.clients.requests_client import Client
from ...web.exchange.file_options import FileOptions
from ...web.exchange.http_options import HttpOptions
from ...web.robots.robots import RobotsRules, fetch_robots, is_exempt
from ...web.robots.robots_options import RobotsOptions
from ...web.urls.schemes import is_web
from ...web.urls.url_parts import host_of_url
from ..base.command import configuration

_OF_FILES = {field.name for field in dataclasses.fields(FileOptions)}


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
