"""Requests of the fetch engine to a client, as steps that need neither threads nor an event loop.

Steps are generators that yield ``Fetch`` and ``Locate`` and receive the result; a thread
or a task on an event loop runs them.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Fetch(NamedTuple):
    """Requests a URL once; the result is a ``Response``.

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
    """Looks up a URL's host; the result is an address, or None.

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
