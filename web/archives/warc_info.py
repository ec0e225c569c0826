"""What the first record of each file says: software, rules, operator, options."""

import dataclasses
from collections.abc import Iterator

from .warc_options import WarcOptions

_SPECIFICATION = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-{}/"
_OWN = ("warc_version", "warc_operator", "warc_description")


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
    yield "robots", "obeyed, as RFC 9309 says"
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
