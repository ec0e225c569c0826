"""Options of robots.txt and of robots directives in documents."""

from ..base.dataclass import dataclass
from ..base.options import option, seconds


@dataclass(frozen=True)
class RobotsOptions:
    """Options of fetching and storing robots.txt."""

    robots_max_age: float = seconds(
        86_400.0,
        "How long a robots.txt is used before it is fetched again.",
        maximum=86_400,  # RFC 9309 2.4
    )
    robots_redirect_max: int = option(
        5,
        "Most redirects of a robots.txt that are followed. If it is less than 5, the pages of a host "
        "whose robots.txt has more stay due.",
        nutch="http.robots.redirect.max",
        minimum=0,
    )
    robots_redirect_targets: int = option(
        10,
        "How many redirects from robots.txt of other domains to one domain are followed during the "
        "fetch of a partition. If the robots.txt of a host needs more, its pages stay due.",
        minimum=0,
    )
    robots_defer_delay: float = seconds(
        300.0,
        "Pause for a site whose robots.txt answers 425, 429 or 5xx.",
        nutch="http.robots.503.defer.visits.delay",
    )
    robots_agents: tuple[str, ...] = option(
        (),
        "Further names whose rules in robots.txt and in pages are obeyed, together with "
        "agent_name's.",
        nutch="http.robots.agents",
        pattern="[A-Za-z0-9_-]+",  # as agent_name
        form="a word of letters, digits, _ and -",
    )
    robots_allowlist: tuple[str, ...] = option(
        (),
        "Hosts, with all below them, whose robots.txt is NOT fetched and NOT obeyed: only for "
        "sites of your own, or whose operators have agreed.",
        nutch="http.robot.rules.allowlist",
        pattern=r"[^\s/:*]+|\[[0-9a-fA-F:.]+\]",
    )
