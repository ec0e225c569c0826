"""Input and output of the fetch engine."""

import dataclasses

from ..exchange.response import Response


@dataclasses.dataclass(slots=True)
class Task:
    """A page to fetch, with its earlier findings.

    Attributes:
        url: Absolute, normalized URL.
        key: Row key.
        score: Score of the page.
        distance: Number of links from a seed.
        etag: ETag of the stored copy, for a conditional request.
        last_modified: Last-Modified of that copy, as the server sent it.
        modified_time: UTC ms of that copy, if the server sent no date; 0 if unknown.
        hops: Number of redirects that led to the URL.
        depth: Number of links followed to the URL within this fetch.
        delay: Seconds between two requests to its queue; None for the usual delay.
        threads: Most turns at a time to its queue; None for the usual number.
        address: Address of its host, which is the name of its queue; None to look it up.
        host: Host of the URL; the engine sets it.
        robots: Whether it is not a page, but the target of a redirect of another host's robots.txt.
        fresh: Whether it needs a new connection, as a server closed an idle one without an answer.
    """

    url: str
    key: str = ""
    score: float = 0.0
    distance: int = 0
    etag: str | None = None
    last_modified: str | None = None
    modified_time: int = 0
    hops: int = 0
    depth: int = 0
    delay: float | None = None
    threads: int | None = None
    address: str | None = None
    host: str = ""
    robots: bool = False
    fresh: bool = False


@dataclasses.dataclass(slots=True)
class Result:
    """The outcome of a task.

    Attributes:
        task: The task.
        response: The response; None if no request was sent.
        fetch_status: One of ``status.FETCH_…``.
        protocol_status: One of the ProtocolStatus codes.
        message: The reason as a short text; empty for success.
        redirect: Absolute URL of the redirect's target, if any.
        fetched_at: UTC ms.
        usage: What robots.txt allows the content to be used for; None: it is silent.
    """

    task: Task
    response: Response | None
    fetch_status: int
    protocol_status: int
    message: str = ""
    redirect: str | None = None
    fetched_at: int = 0
    usage: str | None = None


def body_bytes(result: Result) -> int:
    """Returns the length of the body that a result holds."""
    return 0 if result.response is None else len(result.response.body)
