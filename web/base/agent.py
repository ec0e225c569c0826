"""The crawler's identity: the User-Agent of every request."""

import dataclasses
import re

from .dataclass import dataclass
from .options import option

_FORBIDDEN = re.compile(r"[^\x20-\x7e]")


@dataclass(frozen=True)
class AgentOptions:
    """Options of the crawler's identity in requests."""

    agent_name: str = option(
        "",
        "Name of the crawler: first word of the User-Agent. The rules for a robot of this name are "
        "obeyed, in robots.txt and in pages. Letters, digits, _ and - only.",
        nutch="http.agent.name",
        pattern="[A-Za-z0-9_-]*",  # RFC 9309 2.2.1: product token; many contain digits, too
        form="one word of letters, digits, _ and -",
    )
    agent_version: str = option(
        "", "Version of the crawler.", nutch="http.agent.version", pattern="[!-'*-:<-~]*"
    )
    agent_description: str = option(
        "", "Purpose of the crawler, in a few words.", nutch="http.agent.description"
    )
    agent_url: str = option(
        "", "Page that says what the crawler does and how to stop it.", nutch="http.agent.url"
    )
    agent_email: str = option(
        "", "Address that the operators of sites can write to.", nutch="http.agent.email"
    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(AgentOptions):
            value = getattr(self, field.name)
            if _FORBIDDEN.search(value):
                raise ValueError(f"{field.name} must be printable ASCII, got {value!r}")


DEFAULT_NAME = "nutbeam"


def agent_token(options: AgentOptions) -> str:
    """Returns the product token that is compared with robots.txt (RFC 9309 2.2.1)."""
    return options.agent_name or DEFAULT_NAME


def user_agent(options: AgentOptions) -> str:
    """Returns the User-Agent header, in the same form as in Nutch.

    >>> user_agent(AgentOptions("Bot", "1.0", "tests", "http://a/", "a@b"))
    'Bot/1.0 (tests; http://a/; a@b)'
    >>> user_agent(AgentOptions())
    'nutbeam'
    """
    name = agent_token(options)
    if options.agent_version:
        name += f"/{options.agent_version}"
    about = (options.agent_description, options.agent_url, options.agent_email)
    comment = "; ".join(text for text in about if text)
    return f"{name} ({comment})" if comment else name


def missing_agent(options: AgentOptions) -> str | None:
    """Returns the missing options that requests to other people's servers need, or None.

    >>> missing_agent(AgentOptions("Bot", agent_email="a@b")) is None
    True
    """
    contact = options.agent_url or options.agent_email
    if options.agent_name and contact:
        return None
    parts = [] if options.agent_name else ["--agent_name NAME"]
    parts += [] if contact else ["--agent_url URL or --agent_email ADDRESS"]
    return " and ".join(parts)


def require_agent(options: AgentOptions) -> None:
    """Checks that requests identify the crawler and a contact address.

    The check passes with ``connect_to`` or ``allow_addresses``, which contain the operator's own
    servers: then the client refuses all other hosts.

    Raises:
        ValueError: Name or contact is missing; the message says which options to add.
    """
    missing = missing_agent(options)
    own = getattr(options, "connect_to", ()) or getattr(options, "allow_addresses", ())
    if getattr(options, "schemes", ()) == ("file",):
        return  # there is no server
    if missing is not None and not own:
        raise ValueError(f"sites must be able to tell who crawls them: add {missing}")
