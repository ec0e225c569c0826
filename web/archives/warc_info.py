"""What the first record of each file says: software, rules, operator, options."""

import dataclasses
from collections.abc import Iterator
from email.utils import formatdate

from .warc_options import WarcOptions

_SPECIFICATION = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-{}/"
_ROBOTS = "obeyed, as RFC 9309 says"
_OWN = ("warc_version", "warc_operator", "warc_description")


def derived_info_fields(
    options: WarcOptions, software: str, batch: str, time: int
) -> Iterator[tuple[str, str]]:
    """Yields names and values for warcinfo of a WET or WAT file, as Common Crawl has them.

    Args:
        options: What records are written.
        software: The program and its version.
        batch: Id of the batch.
        time: When the file is made, UTC ms.

    >>> list(derived_info_fields(WarcOptions(), "nutbeam/1", "17-a", 0))[:2]
    [('Software-Info', 'nutbeam/1'), ('Extracted-Date', 'Thu, 01 Jan 1970 00:00:00 GMT')]
    """
    yield "Software-Info", software
    yield "Extracted-Date", formatdate(time / 1000, usegmt=True)
    yield "robots", _ROBOTS
    yield "isPartOf", batch
    if options.warc_operator:
        yield "operator", options.warc_operator
    if options.warc_description:
        yield "description", options.warc_description


def info_fields(
    options: WarcOptions, software: str, batch: str, expr: str, agent: str = ""
) -> Iterator[tuple[str, str]]:
    """Yields names and values for warcinfo (ISO 28500 6.2).

    Args:
        options: What records are written.
        software: The program and its version.
        batch: Id of the batch.
        expr: The condition of its pages; empty if there is none.
        agent: The User-Agent of its requests; empty if it is unknown.

    >>> list(info_fields(WarcOptions(warc_operator="Ada"), "nutbeam/1", "17-a", ""))[4:7]
    [('operator', 'Ada'), ('isPartOf', '17-a'), ('http-body', 'as transferred where that was \
kept; else decoded, and headers that do not fit are named X-Crawl-')]
    """
    yield "software", software
    yield "format", f"WARC File Format {options.warc_version}"
    yield "conformsTo", _SPECIFICATION.format(options.warc_version)
    yield "robots", _ROBOTS
    if agent:
        yield "http-header-user-agent", agent
    if options.warc_operator:
        yield "operator", options.warc_operator
    if options.warc_description:
        yield "description", options.warc_description
    yield "isPartOf", batch
    yield (
        "http-body",
        (
            "as transferred where that was kept; else decoded, and headers that do not fit are named "
            "X-Crawl-"
        ),
    )
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    chosen = [
        f"--{field.name} {','.join(value) if isinstance(value, tuple) else value}"
        for field in dataclasses.fields(WarcOptions)
        if field.name not in _OWN and (value := values[field.name]) != field.default
    ]
    if words := [*chosen, *([f"--expr {expr}"] if expr else [])]:
        yield "options", " ".join(words)
