"""What the commands that check single URLs share."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...web.base.visible import visible_lines
from ..command_line.command import Argument

URLS = Argument("urls", "URLs to check; none reads them from standard input.", nargs="*")


def urls_of(given: Sequence[str]) -> Iterator[str]:
    """Yields the URLs that were given; none, or ``-``, stands for the lines of standard input."""
    for url in given or ("-",):
        if url == "-":
            yield from (line.rstrip("\r\n") for line in sys.stdin)
        else:
            yield url


def say(record: Mapping[str, Any], lines: Iterable[str], form: str) -> None:
    """Prints a result at once: one line of JSON, or the lines for people."""
    json_line = form == "json"
    print(json.dumps(record, ensure_ascii=False) if json_line else visible_lines(lines), flush=True)
