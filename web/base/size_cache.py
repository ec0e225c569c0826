"""A cache with a limit on the size of its values."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizeCache(Generic[K, V]):
    """A least-recently-used cache with a limit on the total size of its values; safe for threads.

    Args:
        most: Limit of the sizes of all values.
        size_of: Returns the size of a value; by default each value counts as 1.

    Attributes:
        size: Total size of all values.

    >>> cache = SizeCache(2)
    >>> for key in "abac":
    ...     cache.put(key, cache.get(key) or key.upper())
    >>> cache.get("a"), cache.get("b"), cache.get("c")
    ('A', None, 'C')
    """

    def __init__(self, most: int, size_of: Callable[[V], int] = lambda _: 1) -> None:
        self._most, self._size_of = most, size_of
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        self.size = 0

    def get(self, key: K) -> V | None:
        """Returns the value of a key, if it is still kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Stores a value; removes other values if there is no space."""
        with self._lock:
            self._remove(key)
            self._values[key] = value
            self.size += self._size_of(value)
            while self.size > self._most:
                self._remove(next(iter(self._values)))

    def _remove(self, key: K) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self.size -= self._size_of(value)
