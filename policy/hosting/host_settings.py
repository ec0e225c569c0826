"""Settings of single hosts: the lines that set them, and what they mean for the jobs."""

import dataclasses
import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...web.base.quoting import quoted
from ...web.engine.pace import FetchOptions
from ...web.rule_files.rule_hosts import host_name
from ...web.urls.row_keys import BadUrl, host, host_key
from ..components.schema import MAX_DELAY

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
LONGEST_INTERVAL = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class HostSettings:
    """The settings of a host; None means the usual.

    Attributes:
        delay: Pause between two requests, s.
        threads: Requests at a time.
        max_count: How many URLs a batch takes of it at most.
        min_interval: Shortest interval of its pages, s.
        max_interval: Longest interval of its pages, s, except those that are gone.
        boost: Factor of the score by which generate sorts its URLs.
        blocked: Whether it is left alone.
        metadata: Other names and values.
    """

    delay: float | None = None
    threads: int | None = None
    max_count: int | None = None
    min_interval: int | None = None
    max_interval: int | None = None
    boost: float | None = None
    blocked: bool = False
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)


def _number(least: float, most: float, kind: type = float) -> tuple[str, Callable[[str], Any]]:
    def read(text: str) -> Any:
        value = kind(text)
        if not (least <= value <= most and math.isfinite(value)):
            raise ValueError(text)
        return value

    what = "a whole number" if kind is int else "a number"
    return f"{what} from {least:g} to {most:g}", read


def _truth(text: str) -> bool:
    if text.lower() not in (*_TRUE, *_FALSE):
        raise ValueError(text)
    return text.lower() in _TRUE


_SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "delay": _number(0, MAX_DELAY),
    "threads": _number(1, 1_000, int),
    "max_count": _number(0, LONGEST_INTERVAL, int),
    "min_interval": _number(1, LONGEST_INTERVAL, int),
    "max_interval": _number(1, LONGEST_INTERVAL, int),
    "boost": _number(0, 1e6),
    "blocked": ("true or false", _truth),
}


def settings_of(values: Mapping[str, str]) -> HostSettings:
    """Returns the settings that names and values mean.

    Raises:
        ValueError: A value cannot be read, or two contradict each other; the message quotes them.

    >>> settings_of({"delay": "2.5", "team": "a"})
    HostSettings(delay=2.5, threads=None, max_count=None, min_interval=None, max_interval=None, \
boost=None, blocked=False, metadata={'team': 'a'})
    """
    found: dict[str, Any] = {}
    metadata = {}
    for name, text in values.items():
        if name not in _SETTINGS:
            metadata[name] = text
            if near := difflib.get_close_matches(name, _SETTINGS, 1, 0.75):
                raise ValueError(f"unknown setting {quoted(name)}, did you mean {near[0]}?")
            continue
        expected, read = _SETTINGS[name]
        try:
            found[name] = read(text)
        except (ValueError, OverflowError):
            raise ValueError(f"{name} must be {expected}, got {quoted(text)}") from None
    settings = HostSettings(**found, metadata=metadata)
    _check_contradictions(settings, values)
    return settings


def _check_contradictions(settings: HostSettings, values: Mapping[str, str]) -> None:
    def refuse(*names: str) -> None:
        both = " and ".join(f"{name}={values[name]}" for name in names)
        raise ValueError(f"{both} contradict each other")

    low, high = settings.min_interval, settings.max_interval
    if low is not None and high is not None and low > high:
        refuse("min_interval", "max_interval")
    if settings.blocked:
        for name in ("delay", "threads", "max_count", "boost"):
            if name in values:
                refuse("blocked", name)
    if (settings.threads or 1) > 1 and (settings.delay or 0) > 0:
        # A delay is one between requests: with one, only one request runs at a time.
        refuse("threads", "delay")
    if settings.max_count == 0 and "boost" in values:
        refuse("max_count", "boost")


def pause_of(threads: int | None, delay: float | None, usual: FetchOptions) -> float | None:
    """Returns the pause between two requests to a host, in s; None is the usual one.

    Args:
        threads: Threads that its settings say.
        delay: Delay that its settings, or else those of a URL, say.
        usual: The usual threads and pauses.

    >>> usual = FetchOptions(threads_per_host=4, server_delay=5.0, server_min_delay=0.5)
    >>> pause_of(2, None, usual), pause_of(1, None, usual), pause_of(None, None, usual)
    (0.5, 5.0, None)
    """
    if delay is not None or threads is None or max(threads, usual.threads_per_host) == 1:
        return delay
    return usual.server_min_delay if threads > 1 else usual.server_delay


def host_lines(lines: Iterable[tuple[int, str]], name: str) -> dict[str, dict[str, str]]:
    r"""Returns the settings in lines of a file, by host (reversed); ``HOST NAME=VALUE …``.

    A host may be written as a URL. Tabs separate, as in Nutch; if a line has none, spaces do. A
    host without settings loses those that it has.

    Args:
        lines: Numbers of lines, and lines.
        name: Name of the file, for errors.

    Raises:
        ValueError: A line cannot be read, or contradicts itself or another line; it is quoted.

    >>> host_lines([(1, "www.example.com\tdelay=2\tmax_count=50")], "f")
    {'com.example.www': {'delay': '2', 'max_count': '50'}}
    """
    found: dict[str, dict[str, str]] = {}
    places: dict[str, tuple[int, str]] = {}
    for number, line in lines:
        words = [word.strip() for word in (line.split("\t") if "\t" in line else line.split())]
        key, where = _host(words[0]), f"{name}:{number}"
        if key is None:
            raise ValueError(f"{where}: expected a host or a URL, got {quoted(words[0])}")
        values: dict[str, str] = {}
        for word in filter(None, words[1:]):
            setting, equals, value = (part.strip() for part in word.partition("="))
            if not (equals and setting and value):
                raise ValueError(f"{where}: expected NAME=VALUE, got {quoted(word)}")
            if values.get(setting, value) != value:
                first = f"{setting}={values[setting]}"
                raise ValueError(
                    f"{where}: {quoted(first)} and {quoted(word)} contradict each other"
                )
            values[setting] = value
        try:
            settings_of(values)
        except ValueError as error:
            raise ValueError(f"{where}: {error} in {quoted(line)}") from None
        if key in found and found[key] != values:
            before, text = places[key]
            raise ValueError(f"{where}: {quoted(line)} contradicts line {before}: {quoted(text)}")
        found[key], places[key] = values, (number, line)
    return found


def _host(text: str) -> str | None:
    if "://" in text:
        try:
            return host_key(host(text).removesuffix(".")) or None
        except BadUrl:
            return None
    name = host_name(text)
    return None if name is None else host_key(name)
