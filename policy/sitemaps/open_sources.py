"""Which sources of sitemaps are done, and what was counted for each."""

import threading
from collections import Counter, defaultdict

from .sitemap_list import Sitemap


class OpenSources:
    """The sources with sitemaps under way, and their counts; safe to use in any thread.

    A source is done when all sitemaps that were reached from it have ended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()
        self._ended: list[str] = []
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)

    def begin(self, sitemap: Sitemap) -> None:
        """Notes that a sitemap is under way."""
        with self._lock:
            self._open[sitemap.source] += 1

    def end(self, sitemap: Sitemap) -> None:
        """Notes the end of a sitemap, after all that it leads to were added to the list."""
        with self._lock:
            self._ended.append(sitemap.source)

    def count(self, source: str, name: str, number: int = 1) -> None:
        """Counts something for a source."""
        with self._lock:
            self._counts[source][name] += number

    def take_ended(self) -> list[str]:
        """Returns the sources of the sitemaps that have ended since the last call.

        Call it before sitemaps are taken from the list: those that these lead to are among them.
        """
        with self._lock:
            ended, self._ended = self._ended, []
        return ended

    def settle(self, ended: list[str]) -> list[str]:
        """Returns the sources that are done, after what they lead to has begun.

        Args:
            ended: What ``take_ended`` has returned.
        """
        with self._lock:
            self._open.subtract(ended)
            done = [source for source in dict.fromkeys(ended) if self._open[source] == 0]
            for source in done:
                del self._open[source]
        return done

    def take_open(self) -> list[str]:
        """Returns the sources that are not done, and forgets them."""
        with self._lock:
            sources = list(dict.fromkeys((*self._open, *self._counts)))
            self._open.clear()
        return sources

    def take_counts(self, source: str) -> Counter[str]:
        """Returns the counts of a source, and forgets them."""
        with self._lock:
            return self._counts.pop(source, Counter())
