"""``nutbeam.fetch`` and ``nutbeam.parse``: single pages, without a table.

A fetch is as polite as a crawl: it obeys robots.txt, names who asks, waits between two requests to a
host, and refuses private addresses. A page is parsed in a child process, as in a crawl: a page that
takes too much time or memory ends only the child.
"""

import datetime
import json
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack, cast

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError
from ...web.base.option_checks import check_setup
from ...web.base.wording import quote_value
from ...web.engine.tasks import HostRecord
from ...web.pages.markdown import markdown_of
from ..base.call_values import check_kind
from ..base.command import DONE, CommandModule, CommandParts, Invocation, configuration
from ..checkers.left_out import left_out_by_reason
from ..checkers.reasons import NOT_FETCHED, NOT_PARSED, in_brackets
from ..parse_job_options import ParseJobOptions
from .calls import calling, read_call, with_options
from .python_wording import in_python
from .table_pages import PageBlock, PageHeader, PageLink, PageStructuredData

if TYPE_CHECKING:
    from .job_keywords import ParsecheckerKeywords, ParseKeywords

_MOST_HOSTS = 1000
# Of the command parse only the options count, so that neither its pipeline nor Beam is loaded.
_PARSE = cast(CommandModule, CommandParts(ParseJobOptions, lambda _: DONE))
# What this process knows of hosts: robots.txt, when it sent its last request, back-off.
_known_hosts: dict[str, HostRecord] = {}
_fetching = threading.Lock()


class NotFetched(UserError):
    """A page was not fetched: robots.txt or the guard of addresses forbids it, or no server answers.

    Attributes:
        reason: The reason in a word; docs/reference/reasons.md explains it.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class NotParsed(UserError):
    """A page was not parsed: it has no text, or its parser failed.

    Attributes:
        reason: The reason in a word; docs/reference/reasons.md explains it.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class RuleRecord:
    """A record that the rules of the option ``extract`` have taken from a page.

    Attributes:
        rules: Name of the set of rules.
        rules_version: Version of the set: 12 digits that change with its text.
        rule: Name of the rule.
        position: Number of the item on the page, from 0.
        fields: Values by name, as in JSON: decimals are texts, and dates are milliseconds since 1970.
    """

    rules: str
    rules_version: str
    rule: str
    position: int
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class DocumentContent:
    """The content of a page.

    Attributes:
        url: Its URL, normalized.
        title: Its title; empty if it says noindex.
        text: Its text, a line for each block; empty if it says noindex.
        language: Language that it declares, or None.
        charset: Its encoding, by the name in the WHATWG Encoding Standard, or None.
        directives: The directives noindex, nofollow and noarchive that apply.
        refresh: URL of a meta refresh, or None.
        canonical: URL of ``link rel=canonical``, or None.
        links: Its links, without those with nofollow and those that the URL rules refuse.
        dropped: Number of links that were left out, by reason.
        metadata: Description, keywords, Open Graph and similar metadata.
        signature: MD5 of the body, or the hash that the option ``signature`` selects.
        blocks: Blocks of the text and marks in it.
        structured_data: Its structured data, such as products and articles, as in ``TablePage``.
        records: What the rules of ``extract`` have taken from it.
        faults: Number of things in it that could not be read or were cut, by reason, such as
            ``json_ld_malformed``; the guides say what they mean.
        main_text: Its main content, without navigation and the like; the text if that is not known.
        parts: Documents in it, such as the items of a feed.
    """

    url: str
    title: str
    text: str
    language: str | None
    charset: str | None
    directives: tuple[str, ...]
    refresh: str | None
    canonical: str | None
    links: tuple[PageLink, ...]
    dropped: Mapping[str, int]
    metadata: Mapping[str, str]
    signature: bytes
    blocks: tuple[PageBlock, ...]
    structured_data: tuple[PageStructuredData, ...]
    records: tuple[RuleRecord, ...]
    faults: Mapping[str, int]
    main_text: str
    parts: "tuple[DocumentContent, ...]" = ()

    @property
    def markdown(self) -> str:
        """The text as Markdown, with links and images."""
        blocks = [(b.kind, b.start, b.end, b.level, b.of) for b in self.blocks]
        return markdown_of(self.text, blocks, self.url)  # type: ignore[arg-type]


@dataclass(frozen=True)
class FetchedDocument:
    """The answer of a server, of any status.

    Attributes:
        url: The URL that has answered: after redirects the last one.
        redirects: The URLs that redirected to it.
        http_code: Its status code.
        ok: Whether it is a page: its status code is of success.
        content_type: Its Content-Type, or None.
        headers: Its headers, in order.
        body: Its body, without the codings of HTTP; empty if it is no page.
        ip: IP address of the server; None with a proxy.
        fetch_time: When the request ended.
        response_ms: How long the request took, ms.
        truncated: Why the body is not complete, or None.
    """

    url: str
    redirects: tuple[str, ...]
    http_code: int
    ok: bool
    content_type: str | None
    headers: tuple[PageHeader, ...]
    body: bytes
    ip: str | None
    fetch_time: datetime.datetime
    response_ms: int
    truncated: str | None

    def parse(self, **options: "Unpack[ParseKeywords]") -> DocumentContent:
        """Returns its content; see ``nutbeam.parse``.

        Raises:
            NotParsed: It is no page, or cannot be parsed.
        """
        if not self.ok:
            raise NotParsed(
                f"{self.url} is no page: http_{self.http_code}", f"http_{self.http_code}"
            )
        return parse(self.body, self.url, content_type=self.content_type, **options)


@with_options("parsechecker")
def fetch(url: str, **options: "Unpack[ParsecheckerKeywords]") -> FetchedDocument:
    """Requests a URL, and returns the answer of its server.

    It is as polite as a crawl. robots.txt is obeyed. ``agent_name`` and a contact must say who asks.
    Between two requests to a host, also of earlier calls in this process, it waits ``server_delay``
    seconds (5), or what robots.txt wants. Private addresses are refused, unless ``allow_addresses``
    has them; docs/guides/security.md has the other guards. Calls of several threads take turns.
    Up to three redirects are followed, unless ``follow_redirects=False``.

    Args:
        url: The URL.

    Raises:
        NotFetched: No server has answered, or the request is not allowed.
        UserError: An option is wrong.
    """
    from ..checkers.checking import rules_of
    from ..checkers.parsechecker import request_page

    options.setdefault("follow_redirects", True)
    with calling():
        _, invocation = read_call("parsechecker", (url,), options)
        given = invocation.options
        rules = rules_of(given)
        with _fetching:
            record, page = request_page(url, given, rules, _known_hosts)
            for host in list(_known_hosts)[:-_MOST_HOSTS]:
                del _known_hosts[host]
    if page is None:
        error = record["error"]
        raise NotFetched(
            f"{url} was not fetched: {_why(error, NOT_FETCHED, given, url)}", error["reason"]
        )
    return FetchedDocument(
        page["url"], tuple(record["redirects"]), page["http_code"], page["fetch_status"] == "success",
        page["content_type"], tuple(PageHeader(**header) for header in page["headers"]),
        page["body"] or b"", page["ip"],
        datetime.datetime.fromtimestamp(page["fetch_time"] / 1000, datetime.UTC),
        page["response_ms"], page["truncated"],
    )  # fmt: skip


@with_options("parse")
def parse(
    html: str | bytes,
    url: str,
    *,
    content_type: str | None = "text/html",
    **options: "Unpack[ParseKeywords]",
) -> DocumentContent:
    """Returns the content of a page, as a crawl takes it. It sends no request.

    Args:
        html: The page; or another document that a crawl can read, with its content type.
        url: Its URL, to which its links are relative.
        content_type: Its content type; None lets the content decide.

    Raises:
        NotParsed: It has no text, or its parser fails.
        UserError: The URL or an option is wrong.
    """
    import pyarrow as pa

    from ...transforms.fetching import FETCHED, admit
    from ...transforms.parsing import PoolOptions, parse_pages, parse_pool

    check_kind("url", url, str)
    body, kind = html, content_type
    if kind is not None:
        check_kind("content_type", kind, str)
    if isinstance(body, str):  # the encoding that the page declares does not count then
        body, kind = (
            body.encode("utf-8", "replace"),
            f"{(kind or 'text/html').partition(';')[0]}; charset=utf-8",
        )
    if not isinstance(body, bytes):
        raise UsageError(f"html must be a text or bytes, got {quote_value(html)}")
    with calling():
        _, invocation = read_call("parse", ("-",), options, _PARSE)
        given = _checked_options(invocation)
        row = {"url": url, "fetch_status": "success", "content_type": kind, "body": body}
        rows = pa.Table.from_pylist([row], FETCHED)
        if len(admit(rows, given.schemes)[1]):
            raise UsageError(
                f"url must be the page's full URL, such as http://example.com/, got {quote_value(url)}"
            )
        pool = parse_pool(PoolOptions(given.parse_processes or 1, given.parser_memory))
        parsed, failed, counts = parse_pages(rows, given, pool)
    if len(failed) or not len(parsed):
        error: dict[str, Any] = {"reason": "no_text", "message": None}
        error = failed.row(0, named=True) if len(failed) else error
        raise NotParsed(
            f"{url} was not parsed: {_why(error, NOT_PARSED, None, url)}", error["reason"]
        )
    first, *parts = parsed.to_dicts()
    dropped, faults = left_out_by_reason(counts)
    return _document(first, dropped, faults, tuple(_document(part, {}, {}) for part in parts))


def _checked_options(invocation: Invocation) -> Any:
    with configuration():
        check_setup(invocation.options)
    return invocation.options


def _why(error: Mapping[str, Any], counted: Any, options: Any, url: str) -> str:
    message = f" ({error['message']})" if error["message"] else ""
    hint = in_python(in_brackets(error["reason"], counted, options, url))
    return f"{error['reason']}{message}{hint}"


def _document(
    row: Mapping[str, Any],
    dropped: Mapping[str, int],
    faults: Mapping[str, int],
    parts: tuple[DocumentContent, ...] = (),
) -> DocumentContent:
    text = row["text"]
    main = "\n\n".join(text[part["start"] : part["end"]] for part in row["main"] or ())
    return DocumentContent(
        row["url"], row["title"], text, row["language"], row["charset"],
        tuple(row["directives"]), row["refresh"], row["canonical"],
        tuple(PageLink(**link) for link in row["links"]), dropped, dict(row["metadata"] or {}),
        row["signature"], tuple(PageBlock(**block) for block in row["blocks"]),
        tuple(PageStructuredData(**item) for item in row["structured_data"]),
        tuple(RuleRecord(**one | {"fields": json.loads(one["fields"])}) for one in row["extracted"]),
        faults, main or text, parts,
    )  # fmt: skip
