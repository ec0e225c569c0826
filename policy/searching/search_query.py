"""The query language of ``search``: words, phrases, minus, and operators such as ``site:``."""

import datetime
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...web.base.wording import quote_value
from ...web.content.searched_forms import searched_form
from ...web.urls.row_keys import BadUrl
from ...web.urls.row_keys import host as host_of

MOST_CHARS = 1_000
MOST_CLAUSES = 32
# Names of operators; each is also the name of what it searches.
OPERATORS = ("site", "type", "lang", "after", "before", "inurl", "intitle")
# Names that people know from other search engines, each with the operator that it is here; those that
# are none search words in any text.
_OTHER_NAMES = {
    "title": "intitle", "url": "inurl", "host": "site", "domain": "site", "filetype": "type",
    "ext": "type", "mime": "type", "language": "lang", "since": "after", "until": "before",
    "intext": "", "text": "", "content": "", "body": "", "inbody": "",
}  # fmt: skip
# Operators of other search engines that nothing here stands for: their values are searched as words.
_FOREIGN = (
    "allinanchor", "allintext", "allintitle", "allinurl", "anchor", "author", "cache", "contains",
    "date", "daterange", "define", "description", "feed", "inanchor", "info", "keywords", "link",
    "linkfromdomain", "loc", "location", "numrange", "related", "source", "subject", "tag",
)  # fmt: skip
_FILTERS = ("site", "type", "lang", "after", "before")
_CLAUSE = re.compile(
    rf"""(?P<minus>-)?(?:(?P<name>{"|".join(OPERATORS)}|(?:{"|".join((*_OTHER_NAMES, *_FOREIGN))})(?=:\S)):)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))?""",
    re.IGNORECASE,
)
# What looks like an operator, and is none.
_UNKNOWN = re.compile(r"([A-Za-z][A-Za-z_]{1,14}):(?![:/\d])\S+")
# Articles and the like before a vowel in French and Italian: "l'hiver", "dell'acqua".
_ELIDED = re.compile(
    r"(?:[ldjmtsnc]|qu|un|dell|nell|sull|dall|all)['\u2019](?=\w{3})", re.IGNORECASE
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Words that questions have, and that pages which answer them need not have.
_QUESTION_WORDS = """
a about all am an and any are as at be been but by can could did do does for from get had has have
how i if in into is it its me my no not of on or our should so such that the their then there these
they this to us was we were what when where which who why will with would you your
"""
QUESTION_WORDS = frozenset(_QUESTION_WORDS.split())
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
# What people write, and the part of a MIME type that pages have.
TYPE_NAMES = {
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
    text = _readable(text)
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


class TypedWord(NamedTuple):
    """A word of a query that is searched in texts or titles: without a minus and quotation marks.

    Attributes:
        begin: Where it begins in the query, in the form in which texts are searched.
        end: Where it ends.
        text: The word.
    """

    begin: int
    end: int
    text: str


def typed_words(text: str) -> tuple[TypedWord, ...]:
    """Returns the words of a query that may be corrected.

    >>> [word.text for word in typed_words('vacum -full "old one" site:a.com http://b.com x:y')]
    ['vacum']
    """
    return tuple(
        TypedWord(*match.span("word"), match["word"])
        for match in _CLAUSE.finditer(_readable(text))
        if match["word"]
        and not match["minus"]
        and _standard_name(match) in ("", "intitle")
        and not re.search("[:/@]", match["word"])
    )


def replace_words(text: str, words: Sequence[tuple[TypedWord, str]]) -> str:
    """Returns a query with some of its words replaced.

    >>> replace_words("vacum  full", [(typed_words("vacum  full")[0], "vacuum")])
    'vacuum full'
    """
    text = _readable(text)
    for word, other in sorted(words, reverse=True):
        text = text[: word.begin] + other + text[word.end :]
    return " ".join(text.split())


def foreign_operators(text: str) -> tuple[str, ...]:
    """Returns the operators of other search engines in a query that nothing here stands for.

    >>> foreign_operators("x author:smith related:a.com")
    ('author', 'related')
    """
    names = [(match["name"] or "").lower() for match in _CLAUSE.finditer(_readable(text))]
    return tuple(dict.fromkeys(name for name in names if name in _FOREIGN))


def unknown_operators(clauses: Iterable[Clause]) -> dict[str, str]:
    """Returns what looks like an operator and is none: its name by the text that has it.

    >>> unknown_operators(parse_search("colour:red std::map 12:30 http://a.com/"))
    {'colour:red': 'colour'}
    """
    matches = {
        clause.text: _UNKNOWN.fullmatch(clause.text)
        for clause in clauses
        if not clause.name and not clause.phrase
    }
    return {text: match[1].lower() for text, match in matches.items() if match}


def _readable(text: str) -> str:
    """Returns a query in the form in which texts are searched; control characters are spaces."""
    return _CONTROL.sub(" ", searched_form(text))


def _standard_name(match: re.Match[str]) -> str:
    """Returns the operator of a part of a query by the name that it has here; empty if it has none."""
    name = (match["name"] or "").lower()
    return "" if name in _FOREIGN else _OTHER_NAMES.get(name, name)


def _clause(match: re.Match[str]) -> Clause:
    typed, name = (match["name"] or "").lower(), _standard_name(match)
    phrase = match["phrase"] is not None
    text = (match["phrase"] if phrase else match["word"] or "").strip()
    if not text and typed:
        raise ValueError(f"{typed}: needs a value, as in {typed}:{_EXAMPLES.get(name, 'word')}")
    if not name and not phrase:
        elided = _ELIDED.match(text)
        text = text[elided.end() :] if elided else text
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
    return TYPE_NAMES.get(wanted, wanted)


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
