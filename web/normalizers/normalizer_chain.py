"""Applies several URL normalizers in order, until nothing changes."""

from collections.abc import Callable

import polars as pl

from ..base.columns import falses, nulls, put
from ..base.dataclass import dataclass
from ..urls.row_keys import BadUrl
from .basic import Basic, normalize_basic
from .normalizer_step import Step, apply_each

MAX_ROUNDS = 5

LOOP = "normalizer_loop"


@dataclass(frozen=True)
class Normalizer:
    """A chain of normalizers.

    It is repeated until nothing changes, so a normalized URL does not change when it is
    normalized again. The result always has the form of the basic normalizer.

    Attributes:
        steps: In their order; one is ``Basic``.
        rounds: Largest number of rounds through the steps. With 1, as in Nutch, the result may
            change when it is normalized again.
        last: Steps after all rounds, for a URL that needs no row key.
    """

    steps: tuple[Step, ...] = (Basic(),)
    rounds: int = MAX_ROUNDS
    last: tuple[Step, ...] = ()

    def normalize(self, url: str) -> str:
        """Returns the normalized URL.

        Raises:
            BadUrl: ``malformed`` as in ``normalize_basic``, also for the result of a rule;
                ``normalizer_loop`` if the URL still changes after all rounds; other reasons of
                steps.
        """
        url = self._repeat_steps(url)
        for step in self.last:
            url = step.apply(url)
        return url

    def _repeat_steps(self, url: str) -> str:
        for _ in range(self.rounds):
            round_start, others = url, False
            for step in self.steps:
                after = step.apply(url)
                others |= after != url and not isinstance(step, Basic)
                url = after
            if url == round_start or (self._basic_first and not others):
                # If steps undo each other (file:/x, file:///x), basic decides.
                return normalize_basic(url) if others else url
        if self.rounds == 1:
            return normalize_basic(url)
        raise BadUrl(LOOP, url)

    @property
    def _basic_first(self) -> bool:
        """Whether ``Basic`` is first; then a URL that only ``Basic`` has changed is done."""
        return isinstance(self.steps[0], Basic)

    @property
    def in_columns(self) -> bool:
        """Whether a step wants columns; see ``Step``."""
        return any(step.in_columns for step in self.steps)

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs a step other than ``Basic`` might change."""
        touched = falses(len(urls))
        for step in (*self.steps, *self.last):
            if not isinstance(step, Basic):
                touched |= step.touches(urls)
        return touched

    def normalize_column(self, urls: pl.Series) -> pl.DataFrame:
        """Normalizes URLs.

        Args:
            urls: No nulls.

        Returns:
            One row per URL, in the same order: ``url``, or null and a ``reason``.
        """
        state = _Column(urls)
        for turn in range(self.rounds):
            if not len(state.active):
                break
            state.begin()
            for step in self.steps:
                # At first few URLs are normal, so a search for normal ones would waste time.
                state.apply(step, every=not turn and step is self.steps[0] and self._basic_first)
            state.end(self._basic_first)
        if self.rounds == 1:
            state.begin()
            state.apply(Basic())
        elif len(state.active):
            state.refuse(LOOP)
        state.active = pl.arange(0, len(urls), eager=True)
        for step in self.last:
            state.begin()
            state.apply(step)
            state.end(False)
            state.active = pl.arange(0, len(urls), eager=True)
        return pl.DataFrame({"url": state.urls, "reason": state.reasons})

    def trace(self, url: str) -> list[tuple[str, str]]:
        """Returns the changes of the URL in order: (name of the step, URL after it).

        Changes that other steps undo are left out, except with ``normalizer_loop``.

        Raises:
            BadUrl: ``malformed``, and other reasons of steps.
        """
        original, done = url, list[tuple[str, str]]()
        steps = [function for step in self.steps for function in step.functions()]
        for _ in range(self.rounds):
            round_start = url
            url = _trace_steps(steps, url, done)
            if url == round_start:
                break
        else:
            if self.rounds > 1:
                return done
        url = _trace_steps([("basic normalizer", normalize_basic)], url, done)
        _trace_steps([function for step in self.last for function in step.functions()], url, done)
        return _lasting_changes(original, done)


def _trace_steps(
    steps: list[tuple[str, Callable[[str], str]]], url: str, done: list[tuple[str, str]]
) -> str:
    for name, apply in steps:
        after = apply(url)
        if after != url:
            done.append((name, after))
        url = after
    return url


def _lasting_changes(url: str, done: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Leaves out changes that led back to an earlier URL.

    >>> _lasting_changes("a", [("x", "b"), ("y", "c"), ("z", "b")])
    [('x', 'b')]
    """
    changes = [("", url)]
    for name, after in done:
        earlier_urls = [url for _, url in changes]
        if after in earlier_urls:
            del changes[earlier_urls.index(after) + 1 :]
        else:
            changes.append((name, after))
    return changes[1:]


class _Column:
    """A column of URLs while a chain normalizes it.

    Attributes:
        urls: The URLs so far; null for refused ones.
        reasons: Reasons of the refused ones; else null.
        active: Positions of the URLs that are not done.
    """

    def __init__(self, urls: pl.Series) -> None:
        self.urls = urls.cast(pl.String)
        self.reasons = nulls(len(urls))
        self.active = pl.arange(0, len(urls), eager=True)

    def begin(self) -> None:
        """Begins a round."""
        self._round_start = self._current = self.urls.gather(self.active)
        self._others = falses(len(self._current))

    def apply(self, step: Step, every: bool = False) -> None:
        """Applies a step to the round's URLs: to all, or to those that it might change."""
        at = (self._current.is_not_null() if every else step.touches(self._current)).arg_true()
        if not len(at):
            return
        old = self._current.gather(at)
        new, reasons = step.apply_column(old)
        self._current = put(self._current, at, new)
        refused = reasons.is_not_null()
        if refused.any():
            places = self.active.gather(at.filter(refused))
            self.reasons = put(self.reasons, places, reasons.filter(refused))
        if not isinstance(step, Basic):
            self._others = put(self._others, at.filter((old != new).fill_null(True)), True)
        self.urls = put(self.urls, self.active.gather(at), new)

    def end(self, basic_first: bool) -> None:
        """Ends a round. URLs that a step other than ``Basic`` has changed stay active."""
        goes_on = (self._current != self._round_start).fill_null(False)
        undone = (~goes_on & self._others & self._current.is_not_null()).arg_true()
        if len(undone):  # if steps undo each other, basic decides
            basic = apply_each(normalize_basic, self._current.gather(undone))
            self.urls = put(self.urls, self.active.gather(undone), basic.urls)
            self.reasons = put(self.reasons, self.active.gather(undone), basic.reasons)
        if basic_first:
            goes_on &= self._others
        self.active = self.active.filter(goes_on)

    def refuse(self, reason: str) -> None:
        """Refuses the URLs that still change."""
        self.reasons = put(self.reasons, self.active, reason)
        self.urls = put(self.urls, self.active, None)
