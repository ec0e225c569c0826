"""The lines that set settings of single hosts, and what these mean for requests."""

from collections.abc import Iterable

from ...web.base.wording import quote_value
from ...web.engine.pace import FetchOptions
from ...web.rule_files.rule_files import host_name
from ...web.urls.row_keys import BadUrl, host, host_key
from ..components.host_rows import settings_of


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
    settings_by_host: dict[str, dict[str, str]] = {}
    places: dict[str, tuple[int, str]] = {}
    for number, line in lines:
        words = [word.strip() for word in (line.split("\t") if "\t" in line else line.split())]
        key, where = _host(words[0]), f"{name}:{number}"
        if key is None:
            raise ValueError(f"{where}: expected a host or a URL, got {quote_value(words[0])}")
        values: dict[str, str] = {}
        for word in filter(None, words[1:]):
            setting, equals, value = (part.strip() for part in word.partition("="))
            if not (equals and setting and value):
                raise ValueError(f"{where}: expected NAME=VALUE, got {quote_value(word)}")
            if values.get(setting, value) != value:
                first = f"{setting}={values[setting]}"
                raise ValueError(
                    f"{where}: {quote_value(first)} and {quote_value(word)} contradict each other"
                )
            values[setting] = value
        try:
            settings_of(values)
        except ValueError as error:
            raise ValueError(f"{where}: {error} in {quote_value(line)}") from None
        if key in settings_by_host and settings_by_host[key] != values:
            earlier_line, text = places[key]
            raise ValueError(
                f"{where}: {quote_value(line)} contradicts line {earlier_line}: {quote_value(text)}"
            )
        settings_by_host[key], places[key] = values, (number, line)
    return settings_by_host


def _host(text: str) -> str | None:
    if "://" in text:
        try:
            return host_key(host(text).removesuffix(".")) or None
        except BadUrl:
            return None
    name = host_name(text)
    return None if name is None else host_key(name)
