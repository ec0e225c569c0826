"""Lets a query use short names of statuses, as options do: ``status = 'fetched'``.

Short names work where a status is compared with a text or with a list of texts. A text there that
is no status is an error: otherwise the result would be empty, in silence. Elsewhere, for example
after an alias, only a hint can say what to write.
"""

import re

from ...policy.components.vocabulary import STATUS_WORDS, statuses_of
from ...web.base.errors import UsageError
from .sql_shell import QUOTED

_NAMES = [word for word in STATUS_WORDS if word.startswith("db_")]
_SHORT = frozenset(STATUS_WORDS) - frozenset(_NAMES)
_CONSTANT = re.compile(r"'(\w+)'")
_COMPARED = re.compile(
    r"""(?<![\w".])((?:[\w"]+\s*\.\s*)*"?status"?(?:\s*::\s*\w+)?\s*)
        (?: (?:(==?)|<>|!=) \s* ('\w+') (?=\s*(?:$|[)\],;\w]))
          | ((?:not\s+)?in|(?:==?|<>|!=)\s*(?:any|all)) \s*[(\[]+\s* '\w+'(?:\s*,\s*'\w+')* \s*[)\]])""",
    re.IGNORECASE | re.VERBOSE,
)
# The name ``status`` for something else: of a column, of a subquery, of a common table expression.
_REDEFINED = re.compile(
    r"""\bas\s+"?status\b | \)\s*(?:as\s+)?\w+\s*\([^()]*\bstatus\b
        | \bstatus\b[^()]*\)\s*as\s*(?:(?:not\s+)?materialized\s*)?\(""",
    re.IGNORECASE | re.VERBOSE,
)


def with_statuses(query: str) -> str:
    """Returns a query, one statement, with short names of statuses replaced.

    >>> with_statuses("SELECT url FROM state WHERE status <> 'gone'")
    "SELECT url FROM state WHERE status NOT IN ('gone', 'db_gone')"

    Raises:
        UsageError: A status is compared with a word that means none.
    """
    plain = _plain_query(query)
    is_redefined = _REDEFINED.search(plain) is not None
    words, at = list[str](), 0
    for match in _COMPARED.finditer(plain):
        words += query[at : match.start()], _expand_names(match, is_redefined)
        at = match.end()
    return "".join([*words, query[at:]])


def hint_on_statuses(query: str) -> str | None:
    """Returns advice on a short name of a status that ``with_statuses`` leaves as it is, if any."""
    rest = _COMPARED.sub("", _plain_query(query))
    word = next((word for word in _CONSTANT.findall(rest) if word in _SHORT), None)
    if word is None or "status" not in rest.lower():
        return None
    return (
        f"write {_full_names(word)} for {word!r}: short names work in status = {word!r} and "
        f"in status IN ({word!r}, …)"
    )


def _plain_query(query: str) -> str:
    """Returns a query of the same length without comments, odd names and odd texts."""
    return QUOTED.sub(_blank_quoted, query)


def _blank_quoted(quoted: re.Match[str]) -> str:
    """Returns a simple name or text as it is, blanks for a comment, and underscores for others."""
    text = quoted[0]
    if re.fullmatch(r"""(['"])\w+\1""", text):
        return text
    return re.sub(r"\S", " " if text.startswith(("--", "/*")) else "_", text)


def _expand_names(match: re.Match[str], is_redefined: bool) -> str:
    """Returns a comparison with the full names of statuses beside the short names."""

    def expand(constant: re.Match[str]) -> str:
        word = constant[1]
        if word not in STATUS_WORDS and not is_redefined:
            listed = ", ".join(_NAMES)
            raise UsageError(
                f"there is no status {word!r}: the statuses are {listed}, also without db_"
            )
        # The short name stays, because a status of the query's own may have it.
        return f"'{word}', {_full_names(word)}" if word in _SHORT else constant[0]

    if match[3] is None:
        return _CONSTANT.sub(expand, match[0])
    negation = "" if match[2] else "NOT "
    return f"{match[1].rstrip()} {negation}IN ({_CONSTANT.sub(expand, match[3])})"


def _full_names(word: str) -> str:
    return ", ".join(f"'{status.name.lower()}'" for status in statuses_of(word))
