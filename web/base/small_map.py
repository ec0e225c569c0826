"""A mapping for very many objects that have one entry each."""

from collections.abc import Iterator, MutableMapping
from typing import Any, TypeVar

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
