"""Parsers of plug-ins, by media type: a body and its metadata in, a document out."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Protocol

from ..base.wording import quote_value
from ..pages.directives import header_directives, obey
from ..pages.page import (
    MAX_TITLE_CHARS,
    NoParser,
    Page,
    ParseFailed,
    Source,
    collapse,
    trim_lines,
)
from ..pages.parse_options import PARSERS, ParseOptions
from ..plugins.plugin_calls import report_call
from ..plugins.plugin_files import plugin_label
from ..plugins.plugins import callable_plugin, load_plugin


@dataclasses.dataclass(slots=True)
class ParsedDocument:
    """What a parser of a plug-in makes of a document.

    Attributes:
        title: The title.
        text: The text to index.
        links: URLs, absolute or relative to the document; each alone, or with its text.
        metadata: Texts by name.
        language: ISO 639-1 code of the declared language; empty if there is none.
    """

    title: str = ""
    text: str = ""
    links: Sequence[str | tuple[str, str]] = ()
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    language: str = ""


class ParserPlugin(Protocol):
    """What a parser is: a function of a document, or a class whose objects are such functions.

    It runs in the child processes that parse, as the parsers of nutbeam do: it is ended after
    ``--parser_timeout``, and when it needs more memory than ``--parser_memory``. That and a crash
    cost only the page, counted as ``failed/parser_NAME``. Directives in headers of the page, and the limits and rules for links, hold for its
    documents, too. Parse filters come after it.
    """

    def __call__(self, source: Source, /) -> ParsedDocument | None:
        """Returns the document; None if it cannot read this one, which then has no parser.

        Args:
            source: ``url``, ``body`` (bytes), ``content_type``, ``headers`` and ``fetch_time``.

        Raises:
            Exception: Any is a fault of the plug-in; it costs this page, counted as
                ``failed/parser_NAME``.
        """


def parse_by_plugin(name: str, source: Source, options: ParseOptions) -> Page:
    """Parses a document with a plug-in.

    Raises:
        NoParser: The plug-in cannot read it.
        ParseFailed: ``parser_NAME``: the plug-in raises, or its result is no document.
        UsageError: The plug-in is unknown, or cannot be imported.
    """
    reason = f"parser_{plugin_label(name)}"
    report_call(reason)
    function = _callable(load_plugin(PARSERS, name), f"parser {name!r}")
    try:
        document = function(source)
        page = None if document is None else _page_of(document, source, options)
    except MemoryError:
        raise
    # BaseException: SystemExit in a plug-in is a mistake, and a page must not end the process.
    except BaseException as error:
        raise ParseFailed(reason) from error
    report_call("")
    if page is None:
        raise NoParser
    return page


_callable = functools.lru_cache(maxsize=64)(callable_plugin)  # one object of a class per process


def _page_of(document: Any, source: Source, options: ParseOptions) -> Page:
    if not isinstance(document, ParsedDocument):
        raise TypeError(f"expected a ParsedDocument, got {quote_value(document)}")
    page = Page(base=source.url, body=source.body)
    page.title = collapse(_text("title", document.title))[:MAX_TITLE_CHARS]
    page.language = _text("language", document.language) or None
    page.metas = {
        _text("a name in metadata", name): _text(f"metadata {name!r}", value)
        for name, value in document.metadata.items()
    }
    for link in document.links:
        href, anchor = (link, "") if isinstance(link, str) else link
        page.add_link(_text("a link", href).strip(), collapse(_text("the text of a link", anchor)))
    page.directives = header_directives(source, options)
    obey(page, trim_lines(_text("text", document.text)))
    return page


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a text, got {quote_value(value)}")
    return value.encode("utf-8", "replace").decode()
