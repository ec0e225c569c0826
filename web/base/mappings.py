"""Mappings that save memory: a cache with a limit on its size, a map for very many objects."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from typing import Any, Generic, TypeVar

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


_K = TypeVar("_K")
_V = TypeVar("_V")
_NOTHING: Any = object()


class SmallMap(MutableMapping[_K, _V]):
    """A dict that needs a quarter of the memory while it has at most one entry.

    It may be read while another thread changes it; iterate over a ``copy`` then.

    >>> hosts = SmallMap()
    >>> hosts["a"] = 1
    >>> hosts["b"] = 2
    >>> del hosts["a"]
    >>> hosts.copy(), hosts.get("a")
    ({'b': 2}, None)
    """

    __slots__ = ("_key", "_more", "_value")

    def __init__(self) -> None:
        self._key: _K = _NOTHING
        self._value: _V = _NOTHING
        self._more: dict[_K, _V] | None = None  # all entries, since there were two

    def _sole_entry(self) -> tuple[_K, _V] | None:
        """Returns the entry while there was at most one."""
        while (value := self._value) is not _NOTHING:
            key = self._key
            if value is self._value:  # else another thread has changed the entry
                return key, value
        return None

    def __getitem__(self, key: _K) -> _V:
        only = self._sole_entry()
        if only is not None and only[0] == key:
            return only[1]
        if self._more is None:
            raise KeyError(key)
        return self._more[key]

    def __setitem__(self, key: _K, value: _V) -> None:
        if self._more is None and (self._value is _NOTHING or key == self._key):
            self._key = key
            self._value = value
            return
        if self._more is None:
            self._more = {self._key: self._value}
            self._empty()
        self._more[key] = value

    def __delitem__(self, key: _K) -> None:
        if self._more is not None:
            del self._more[key]
        elif self._value is not _NOTHING and key == self._key:
            self._empty()
        else:
            raise KeyError(key)

    def _empty(self) -> None:
        self._value = _NOTHING  # before the key, for ``_sole_entry``
        self._key = _NOTHING

    def __iter__(self) -> Iterator[_K]:
        return iter(self.copy())

    def __len__(self) -> int:
        return int(self._value is not _NOTHING) if self._more is None else len(self._more)

    def copy(self) -> dict[_K, _V]:
        """Returns its entries at this moment."""
        only = self._sole_entry()
        if only is not None:
            return dict((only,))
        return {} if self._more is None else self._more.copy()
