"""What the fetch engine asks of a client, so that its rules know neither threads nor a loop.

Rules are generators that yield ``Ask`` and ``Locate`` and are sent what came of
it; who runs them waits as it likes: a thread, or a task on an event loop.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Fetch(NamedTuple):
    """Asks for a URL once; its answer is a ``Response``.

    Attributes:
        url: Absolute.
        headers: More headers.
        content_limit: Bytes, in place of the client's option.
        fresh: Whether a new connection is to be made.
    """

    url: str
    headers: Sequence[tuple[str, str]] = ()
    content_limit: int | None = None
    fresh: bool = False


class Locate(NamedTuple):
    """Asks where a URL's host is; its answer is an address, or None.

    Attributes:
        url: Absolute.
    """

    url: str


Request = Fetch | Locate
Steps = Generator[Request, Any, T]


def drive(steps: Steps[T], answer: Callable[[Request], Any]) -> T:
    """Runs steps to their end and returns what they return.

    >>> def steps():
    ...     address = yield Locate("http://a.example/")
    ...     return f"it is {address}"
    >>> drive(steps(), lambda request: "192.0.2.1")
    'it is 192.0.2.1'
    """
    try:
        request = next(steps)
        while True:
            request = steps.send(answer(request))
    except StopIteration as end:
        return end.value
