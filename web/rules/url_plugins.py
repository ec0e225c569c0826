"""URL filters and URL normalizers of plug-ins: columns in, columns out.

A fault of a plug-in costs the URL that causes it, and no other: a batch that fails, or takes too long,
is halved until the URL is alone. The URL is counted as ``url_filter_NAME`` or ``url_normalizer_NAME``,
and the first fault in each process is logged with the URL and the line of the plug-in's code.
"""

import logging
import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import polars as pl

from ..base.columns import falses, nulls, put, repeat_value, zeros
from ..base.wording import quote_value
from ..filters.verdicts import UrlFilter, Verdicts
from ..normalizers.normalizer_step import NormalizedColumn, Step
from ..plugins.call_limits import CallTookTooLong, call_within
from ..plugins.plugin_files import fault_text, plugin_label
from ..plugins.plugins import callable_plugin
from ..urls.row_keys import BadUrl

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = logging.getLogger("nutbeam.plugins")
_WORD = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
_IS_WORD = re.compile(_WORD)
_REFUSED = "normalizer_refused"
# Longest time of a call. Of a batch that took longer each part gets its share, but at least some.
_LONGEST_S, _LEAST_S = 60.0, 5.0
_NO_WORD = pl.Series([""], dtype=pl.String)
_logged: set[str] = set()


class UrlFilterPlugin(Protocol):
    """What a URL filter is: a function of a column, or a class whose objects are such functions.

    It is called with the URLs of a batch: absolute, normalized, without nulls, each once. It runs
    wherever URLs are judged (inject, parse, updatedb, generate, filterdb and others), in several
    processes, and in several threads of each. It must not keep a state, and must give the same
    answer for the same URL: a URL is judged many times. A call may take 60 s.
    """

    def __call__(self, urls: pl.Series, /) -> "pl.Series | pa.Array | Sequence[bool | str | None]":
        """Returns one value per URL, in the same order.

        True or null accepts a URL. False or a text refuses it; the text is a word that says why:
        letters, digits and ``_.-``. ``--count_by_rule`` counts these words, and filterchecker and
        explain show them.
        """


class UrlNormalizerPlugin(Protocol):
    """What a URL normalizer is: a function of a column, or a class whose objects are such functions.

    It runs where URLs are judged, as a URL filter does. The chain of normalizers is repeated until
    nothing changes, so it must leave its own results as they are. A call may take 60 s.
    """

    def __call__(
        self, urls: pl.Series, scope: str, /
    ) -> "pl.Series | pa.Array | Sequence[str | None]":
        """Returns one text per URL, in the same order; null refuses the URL.

        Args:
            urls: URLs without nulls; not normalized yet if it comes before ``basic``.
            scope: Where they come from: ``inject``, ``outlink``, ``fetcher`` or another scope.
        """


class _Run(NamedTuple):
    """Values of a plug-in for a column, and the faults: masks of URLs, and the first one's text."""

    values: pl.Series
    failed: pl.Series
    fault: str = ""


class PluginFilter(UrlFilter):
    """The URL filter of a plug-in.

    Args:
        name: Its name in options.
        function: The plug-in; see ``UrlFilterPlugin``.

    Raises:
        UsageError: It is a class, and no object of it can be made.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = plugin_label(name)
        self.slow_reason = self.fault = f"url_filter_{self.name}"
        self.function = callable_plugin(function, f"url filter {name!r}")
        self._words: list[str] = []
        self._lock = threading.Lock()

    def rule(self, line: int, url: str = "") -> str:
        """Returns the word with which the plug-in refuses, or for 0 its fault with the URL."""
        if line:
            return self._words[line - 1]
        run = self._run(pl.Series([url.encode(errors="replace").decode()]))
        return run.fault or "the plug-in decides"

    def place(self, line: int) -> str:
        """Returns ``NAME:WORD``, or only the name."""
        return f"{self.name}:{self._words[line - 1]}" if line else self.name

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict on each URL; nulls are refused."""
        present = urls.is_not_null()
        whole = bool(present.all())
        run = self._run(urls if whole else urls.filter(present))
        values, failed = run.values, run.failed
        if not whole:
            at = present.arg_true()
            values = put(repeat_value("", len(urls), pl.String), at, values)
            failed = put(falses(len(urls)), at, failed)
        accept = values.is_null() & ~failed
        return Verdicts(accept, self._numbers(values), failed)

    def _numbers(self, values: pl.Series) -> pl.Series:
        """Returns the numbers of words in ``_words``, from 1; 0 for none."""
        words = values.drop_nulls().unique()
        if not len(words) or words.equals(_NO_WORD):
            return zeros(len(values))
        with self._lock:
            self._words += [word for word in words if word and word not in self._words]
            numbers = {word: at for at, word in enumerate(self._words, 1)}
        return values.replace_strict(numbers, default=0, return_dtype=zeros(0).dtype)

    def _run(self, urls: pl.Series) -> _Run:
        return _run_by_halves(lambda part: _refusals(self.function(part), len(part)), urls, self)


class PluginNormalizer(Step):
    """The URL normalizer of a plug-in in one scope.

    Args:
        name: Its name in options.
        function: The plug-in; see ``UrlNormalizerPlugin``.
        scope: Where the URLs come from.

    Raises:
        UsageError: It is a class, and no object of it can be made.
    """

    in_columns = True

    def __init__(self, name: str, function: Callable[..., Any], scope: str) -> None:
        self.name, self._scope = plugin_label(name), scope
        self.fault = f"url_normalizer_{self.name}"
        self.function = callable_plugin(function, f"url normalizer {name!r}")

    def apply(self, url: str) -> str:
        """Returns the URL that the plug-in makes of a URL.

        Raises:
            BadUrl: ``normalizer_refused``, or ``url_normalizer_NAME`` if the plug-in fails.
        """
        urls, reasons = self.apply_column(pl.Series([url.encode(errors="replace").decode()]))
        if reasons[0] is not None:
            raise BadUrl(reasons[0], url)
        return str(urls[0])

    def fault_of(self, url: str) -> str:
        """Returns the plug-in's fault with a URL; empty if it does not fail."""
        return self._run(pl.Series([url.encode(errors="replace").decode()])).fault

    def apply_column(self, urls: pl.Series) -> NormalizedColumn:
        """Returns the results of the plug-in."""
        values, failed, _ = self._run(urls)
        if not values.null_count():
            return NormalizedColumn(values, nulls(len(urls)))
        reason = pl.when("failed").then(pl.lit(self.fault)).when(pl.col("url").is_null())
        frame = pl.DataFrame({"url": values, "failed": failed})
        reasons = frame.select(reason=reason.then(pl.lit(_REFUSED))).to_series()
        return NormalizedColumn(values, reasons)

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs the plug-in changes or refuses; it is asked."""
        present = urls.is_not_null()
        if present.all():
            return (self._run(urls).values != urls).fill_null(True)
        at = present.arg_true()
        return put(falses(len(urls)), at, self.touches(urls.gather(at)))

    def _run(self, urls: pl.Series) -> _Run:
        call = self.function
        return _run_by_halves(lambda part: _texts(call(part, self._scope), len(part)), urls, self)


def fault_at_once(plugin: PluginFilter | PluginNormalizer, urls: pl.Series) -> str:
    """Returns the fault that a plug-in has only with several URLs at once; empty if it has none."""
    run = plugin._run(urls)
    return "" if run.failed.any() else run.fault


def _run_by_halves(
    call: Callable[[pl.Series], pl.Series],
    urls: pl.Series,
    of: PluginFilter | PluginNormalizer,
    seconds: float = 0.0,
) -> _Run:
    """Calls a plug-in; if it fails, calls it with halves, until the URLs that fail are alone."""
    seconds = seconds or _LONGEST_S
    try:
        if not len(urls):
            return _Run(nulls(0), falses(0))
        values = call_within(
            lambda: call(urls), seconds, lambda: f"{_kind_of(of)} at {_some(urls)}"
        )
        return _Run(values, falses(len(urls)))
    except (Exception, SystemExit, CallTookTooLong) as error:  # noqa: BLE001 - it may raise anything
        fault = fault_text(error, of.function)
        is_late = isinstance(error, CallTookTooLong)
    if len(urls) == 1:
        _log_once(of, urls, fault)
        return _Run(nulls(1), ~falses(1), fault)
    middle = len(urls) // 2
    share = max(seconds / 2, _LEAST_S) if is_late else seconds
    parts = (urls[:middle], urls[middle:])
    runs = [_run_by_halves(call, part, of, share) for part in parts]
    values, failed = (pl.concat(columns) for columns in list(zip(*runs, strict=True))[:2])
    if not failed.any():
        _log_once(of, urls, fault)
    return _Run(values, failed, fault)


def _log_once(of: PluginFilter | PluginNormalizer, urls: pl.Series, fault: str) -> None:
    if of.fault not in _logged:
        _logged.add(of.fault)
        _LOG.warning(
            "%s failed for %s: %s; the URLs that fail are counted as %s",
            *(_kind_of(of), _some(urls), fault, of.fault),
        )


def _kind_of(of: PluginFilter | PluginNormalizer) -> str:
    return f"{of.fault.rpartition(of.name)[0].strip('_').replace('_', ' ')} {of.name!r}"


def _some(urls: pl.Series) -> str:
    first = quote_value(urls[0])
    return first if len(urls) == 1 else f"{len(urls):,} URLs from {first} on"


def _column(result: Any, number: int) -> pl.Series:
    """Returns the result of a plug-in as a column.

    Raises:
        TypeError: It is none.
        ValueError: It has another length.
    """
    if isinstance(result, str | bytes) or not hasattr(result, "__len__"):
        raise TypeError(f"expected a column with a value per URL, got {quote_value(result)}")
    column = result if isinstance(result, pl.Series) else pl.Series(result)
    if len(column) != number:
        raise ValueError(f"expected a value for each of {number} URLs, got {len(column)}")
    return column


def _refusals(result: Any, number: int) -> pl.Series:
    """Returns null for each accepted URL, and a word, perhaps empty, for each refused one."""
    if isinstance(result, list | tuple):
        result = pl.Series([_refusal(value) for value in result], dtype=pl.String)
    column = _column(result, number)
    if column.dtype == pl.Boolean:
        refused = pl.when(~column.fill_null(True)).then(pl.lit(""))
        return pl.select(refused.alias("word")).to_series()
    column = _text_column(column, "booleans or texts")
    if column.null_count() < number:
        words = column.drop_nulls()
        if not ((words == "") | words.str.contains(_WORD)).all():
            (odd, *_) = words.filter((words != "") & ~words.str.contains(_WORD))
            raise ValueError(_no_word(odd))
    return column


def _refusal(value: Any) -> str | None:
    if value is None or value is True:
        return None
    if value is False:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"expected True, False, None or a word, got {quote_value(value)}")
    if value and not _IS_WORD.match(value):
        raise ValueError(_no_word(value))
    return value


def _no_word(value: str) -> str:
    return (
        "expected True, False, None, or a word of letters, digits, _.- that says why a URL is refused, "
        f"got {quote_value(value)}"
    )


def _texts(result: Any, number: int) -> pl.Series:
    return _text_column(_column(result, number), "texts")


def _text_column(column: pl.Series, wanted: str) -> pl.Series:
    if column.dtype == pl.Null:
        return column.cast(pl.String)
    if column.dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if column.dtype != pl.String:
        raise TypeError(f"expected a column of {wanted}, got one of {column.dtype}")
    return column
