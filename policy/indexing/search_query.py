"""The query language of ``search``: words, phrases, minus, and operators such as ``site:``."""

import datetime
import re
from collections.abc import Callable
from typing import NamedTuple

from ...web.base.wording import quote_value
from ...web.content.searched_forms import searched_form
from ...web.urls.row_keys import BadUrl
from ...web.urls.row_keys import host as host_of

MOST_CHARS = 1_000
MOST_CLAUSES = 32
# Names of operators; each is also the name of what it searches.
OPERATORS = ("site", "type", "lang", "after", "before", "inurl", "intitle")
_FILTERS = ("site", "type", "lang", "after", "before")
_CLAUSE = re.compile(
    rf"""(?P<minus>-)?(?:(?P<name>{"|".join(OPERATORS)}):)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))?""",
    re.IGNORECASE,
)
# Words that questions have, and that pages which answer them need not have.
_QUESTION_WORDS = """
a about all am an and any are as at be been but by can could did do does for from get had has have
how i if in into is it its me my no not of on or our should so such that the their then there these
they this to us was we were what when where which who why will with would you your
"""
QUESTION_WORDS = frozenset(_QUESTION_WORDS.split())
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
# What people write, and the part of a MIME type that pages have.
_TYPES = {
    "htm": "html", "xhtml": "application/xhtml+xml", "txt": "plain", "text": "text", "md": "markdown",
    "doc": "application/msword", "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text", "epub": "application/epub+zip",
    "rss": "application/rss+xml", "atom": "application/atom+xml", "svg": "image/svg+xml",
    "sitemap": "application/x-sitemap+xml",
}  # fmt: skip


class Clause(NamedTuple):
    """A part of a query.

    Attributes:
        name: Operator, or empty for words and phrases in any text of a page.
        text: Its value: words, a host, a type, a language, a time in ms as text.
        phrase: Whether the words must follow one another.
        excluded: Whether pages that match are left out.
    """

    name: str
    text: str
    phrase: bool = False
    excluded: bool = False

    @property
    def is_filter(self) -> bool:
        """Whether it only selects pages, and does not change their order."""
        return self.name in _FILTERS or self.excluded


def parse_search(text: str) -> tuple[Clause, ...]:
    """Returns the clauses of a query, in the form in which texts are searched.

    Raises:
        ValueError: The query is wrong; the message is one line and quotes it.

    >>> parse_search('beam "direct runner" -flink site:example.com')[1:3]
    (Clause(name='', text='direct runner', phrase=True, excluded=False), Clause(name='', text='flink', phrase=False, excluded=True))
    >>> parse_search("after:2026-02")[0].text
    '1769904000000'
    """
    text = searched_form(text)
    if len(text) > MOST_CHARS:
        raise ValueError(f"a query has at most {MOST_CHARS:,} characters, got {len(text):,}")
    if text.count('"') % 2:
        raise ValueError(f"a quotation mark is not closed in the query {quote_value(text)}")
    clauses = [_clause(match) for match in _CLAUSE.finditer(text) if match[0]]
    if len(clauses) > MOST_CLAUSES:
        raise ValueError(
            f"a query has at most {MOST_CLAUSES} words and phrases, got {len(clauses)} in {quote_value(text)}"
        )
    if all(clause.excluded for clause in clauses):
        raise ValueError(f"a query must say what to find, got {quote_value(text)}")
    return tuple(clauses)


def _clause(match: re.Match[str]) -> Clause:
    name = (match["name"] or "").lower()
    phrase = match["phrase"] is not None
    text = (match["phrase"] if phrase else match["word"] or "").strip()
    if not text and name:
        raise ValueError(f"{name}: needs a value, as in {name}:{_EXAMPLES[name]}")
    if name in _VALUES:
        text = _VALUES[name](text)
    # A phrase or a minus without words finds nothing, and excludes nothing.
    return Clause(name, text, phrase, match["minus"] is not None)


_EXAMPLES = {
    "site": "example.com",
    "type": "pdf",
    "lang": "de",
    "after": "2026-01-31",
    "before": "2026-01-31",
    "inurl": "docs",
    "intitle": "guide",
}


def _site(text: str) -> str:
    host = re.sub(r"^[a-z][a-z0-9+.-]*://", "", text.lower()).rstrip("/").removeprefix("*.")
    host = host.strip(".")
    if not re.fullmatch(r"[^\s/?#@]+", host):
        raise ValueError(f"site: takes a host or a domain, got {quote_value(text)}")
    try:
        return host_of(f"http://{host}/")  # as browsers read it: also beyond ASCII
    except BadUrl:
        raise ValueError(f"site: takes a host or a domain, got {quote_value(text)}") from None


def _type(text: str) -> str:
    wanted = text.lower().removeprefix(".")
    return _TYPES.get(wanted, wanted)


def _lang(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*", text):
        raise ValueError(f"lang: takes a code of two or three letters, got {quote_value(text)}")
    return re.split("[-_]", text.lower())[0]


def _day(name: str) -> Callable[[str], str]:
    def moment(text: str) -> str:
        match = _DATE.fullmatch(text)
        try:
            if match is None:
                raise ValueError
            year, month, day = (int(part or 1) for part in match.groups())
            time = datetime.datetime(year, month, day, tzinfo=datetime.UTC)
        except ValueError:
            raise ValueError(
                f"{name}: takes a date, such as 2026, 2026-01 or 2026-01-31, got {quote_value(text)}"
            ) from None
        return str(int(time.timestamp() * 1000))

    return moment


_VALUES: dict[str, Callable[[str], str]] = {
    "site": _site,
    "type": _type,
    "lang": _lang,
    "after": _day("after"),
    "before": _day("before"),
}
