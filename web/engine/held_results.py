"""Redirects that wait for cookies: a page may lead back to itself over one that sets a cookie.

``/`` redirects to ``/welcome``, which sets a cookie and redirects to ``/``. The result of ``/`` is held
until the queue of its host has ended. If a redirect leads back to it, and there are other cookies for
it than before, it is requested again, and only its last result counts.
"""

import dataclasses

from .host_queue import HostQueue, HostTurn
from .tasks import MOST_REPEATS, Result, Task, body_bytes

_MOST_OF_QUEUE = 50
_MAX_BODY_BYTES = 65_536


class HeldResults:
    """Results that are held, by the key of their page."""

    def __init__(self) -> None:
        self._by_key: dict[str, tuple[Result, str]] = {}

    def hold(self, turn: HostTurn, queue: HostQueue) -> bool:
        """Holds the result of a turn, if its page may be requested again; returns whether it does.

        Args:
            turn: The turn.
            queue: The queue until whose end the result is held.
        """
        result = turn.result
        if turn.cookies is None or result is None or turn.task.again >= MOST_REPEATS:
            return False
        key = turn.task.key
        crowded = len(queue.held) >= _MOST_OF_QUEUE or body_bytes(result) > _MAX_BODY_BYTES
        if crowded or key in self._by_key:
            return False
        self._by_key[key] = result, turn.cookies
        queue.held = (*queue.held, key)
        return True

    def take_again(self, key: str, cookies: str) -> list[Task]:
        """Returns the task for a page that is requested again; its result is forgotten.

        Args:
            key: Key of the page that a redirect leads to.
            cookies: The cookies for it now.
        """
        held = self._by_key.get(key)
        if held is None or held[1] == cookies:
            return []
        del self._by_key[key]
        task = held[0].task
        return [dataclasses.replace(task, at="", again=task.again + 1, fresh=False)]

    def release(self, queue: HostQueue) -> list[Result]:
        """Returns the results that were held until the end of a queue."""
        keys, queue.held = queue.held, ()
        return [self._by_key.pop(key)[0] for key in keys if key in self._by_key]
