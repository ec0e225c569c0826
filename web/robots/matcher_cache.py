"""Caches the matchers of robots.txt, within a limit of memory."""

import threading
from collections import OrderedDict

from .match import Matcher

_LARGE_CHARS = 32_768


class MatcherCache:
    """Matchers by owner; those unused for longest are removed first.

    Args:
        most_bytes: Limit of memory; one matcher is kept even if it is larger.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[int, tuple[object, Matcher]] = OrderedDict()
        self._lock = threading.Lock()
        self.size = 0

    def get(self, owner: object) -> Matcher | None:
        """Returns the matcher of an owner, if it is still cached."""
        with self._lock:
            kept = self._kept.get(id(owner))
            if kept is None or kept[0] is not owner:
                return None
            self._kept.move_to_end(id(owner))
            return kept[1]

    def put(self, owner: object, matcher: Matcher) -> None:
        """Caches the matcher of an owner, and removes others where there is no room."""
        with self._lock:
            if id(owner) in self._kept:  # another thread has read the rules, too
                return
            self._kept[id(owner)] = owner, matcher
            self.size += matcher.size
            while self.size > self._most and len(self._kept) > 1:
                self.size -= self._kept.popitem(last=False)[1][1].size


# Large ones have a cache of their own, so that a few hosts do not push out all others.
_LARGE, _OTHERS = MatcherCache(48 << 20), MatcherCache(16 << 20)


def cache_for(text: str) -> MatcherCache:
    """Returns the cache for a robots.txt."""
    return _LARGE if len(text) > _LARGE_CHARS else _OTHERS
