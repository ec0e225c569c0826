"""The statements of ``nutbeam sql``: reads them from a terminal, or from standard input.

They may have short names of statuses, as options do: ``status = 'fetched'``. Short names work where a
status is compared with a text or with a list of texts. A text there that is no status is an error:
otherwise the result would be empty, in silence. Elsewhere, for example after an alias, only a hint
can say what to write.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ...policy.components.views import View, views
from ...policy.components.vocabulary import STATUS_WORDS, statuses_of
from ...web.base.errors import UsageError, UserError, one_line
from ..base.ending import ENDING

HELP = """\
End a statement with a semicolon; it may have several lines. Ctrl-C cancels it, Ctrl-D leaves.

.tables        the views, and what a row of each is
.schema NAME   the columns of a view: name, unit or values, and meaning
.help          this
.quit          leave

SELECT url, title FROM pages WHERE text ILIKE '%bicycle%' LIMIT 10;
SELECT status, count(*) AS urls FROM state GROUP BY ALL ORDER BY urls DESC;"""
_PROMPT, _MORE = "sql> ", "...> "
_LEAVING = (".quit", ".exit", "quit", "exit")
_HISTORY_LINES = 1000
# Quoted text and comments: a semicolon there does not end a statement. What is left open reaches to
# the end.
QUOTED = re.compile(
    r"""\b[eE]'(?:\\.|''|[^'\\])*'|'(?:[^']|'')*(?:'|$(?P<open>))|"""
    r""""(?:[^"]|"")*(?:"|$(?P<open2>))|--[^\n]*|"""
    r"""/\*.*?(?:\*/|$(?P<open3>))|\$(\w*)\$.*?(?:\$\4\$|$(?P<open4>))""",
    re.DOTALL,
)

# Prints the result of one or more statements.
_Answer = Callable[[str], None]


def run_shell(answer: _Answer, address: str) -> None:
    """Answers statements that are typed on a terminal, until Ctrl-D or ``.quit``; prints errors.

    Args:
        answer: Prints the result of statements; raises UserError.
        address: Address of the table, for the greeting.
    """
    print(f"{address}: {', '.join(views())}. A statement ends with a semicolon; .help shows more.")
    text = ""
    with _history(), ENDING.shell():
        while True:
            try:
                line = input(_MORE if text else _PROMPT)
                text, statement = add_line(text, f"{line}\n")
                if statement in _LEAVING:
                    return
                _do(statement, answer)
            except UserError as error:
                print(one_line(error))
            except KeyboardInterrupt:
                text = ""
                print()
            except EOFError:
                print()
                return


def run_statements(answer: _Answer, lines: Iterable[str]) -> None:
    """Answers the statements in lines, such as a file.

    Args:
        answer: Prints the result of statements; raises UserError.
        lines: The lines. The last statement needs no semicolon.

    Raises:
        UserError: A statement is wrong, or there is none.
    """
    text = ""
    number = 0
    for number, line in enumerate(lines, 1):  # noqa: B007 - it is used below
        text, statement = add_line(text, line)
        if statement in _LEAVING:
            return
        _do(statement, answer)
    if not number:
        raise UsageError("missing argument QUERY: a SELECT, which standard input has not, either")
    _do(text.strip(), answer)


def add_line(text: str, line: str) -> tuple[str, str]:
    """Adds a line; returns (text without a complete statement, the statement that it completes).

    >>> add_line("", ".help\\n"), add_line("select\\n", "1;\\n"), add_line("select\\n", ";;';\\n")
    (('', '.help'), ('', 'select\\n1;'), ("select\\n;;';\\n", ''))
    """
    word = line.strip().rstrip(";")
    if not text and (word.startswith(".") or word in _LEAVING):
        return "", word
    text = (text + line).lstrip()
    return ("", text.strip()) if is_complete(text) else (text, "")


def is_complete(text: str) -> bool:
    """Returns whether a text ends with a semicolon that ends a statement.

    >>> is_complete("select 1;"), is_complete("select ';"), is_complete("select 1 -- one;")
    (True, False, False)
    """
    rest = QUOTED.sub(lambda match: "?" if match.lastgroup else " ", text)
    return rest.rstrip().endswith(";")


def _do(statement: str, answer: Callable[[str], None]) -> None:
    """Does what a statement or a dot command says; nothing if it is empty."""
    if not statement.startswith("."):
        if statement:
            answer(statement)
        return
    command, *words = statement.split()
    all_views = views()
    match command, words:
        case ".help", []:
            print(HELP)
        case ".tables", []:
            width = max(map(len, all_views))
            print(*(f"{name:<{width}}  {view.meaning}" for name, view in all_views.items()),
                  sep="\n")  # fmt: skip
        case ".schema", [name] if name in all_views:
            print(*_columns(all_views[name]), sep="\n")
        case ".schema", [name]:
            raise UsageError(f"there is no view {name!r}: the views are {', '.join(all_views)}")
        case ".schema", _:
            raise UsageError(f".schema needs the name of a view: {', '.join(all_views)}")
        case _:
            raise UsageError(f"unknown command {statement!r}: .help shows those that there are")


def _columns(view: View) -> Iterator[str]:
    names = [column.name for column in view.columns]
    width = max(map(len, names))
    for column in view.columns:
        unit = f" ({column.unit})" if column.unit else ""
        values = f" One of {', '.join(column.codes.values())}." if column.codes else ""
        yield f"{column.name:<{width}}  {column.meaning}{unit}{values}"


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Makes lines editable, and keeps them for the next shell."""
    try:
        import readline
    except ImportError:  # Python was built without it
        yield
        return
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state) / "nutbeam" / "sql_history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY_LINES)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)


_FULL_STATUSES = [word for word in STATUS_WORDS if word.startswith("db_")]
_SHORT_STATUSES = frozenset(STATUS_WORDS) - frozenset(_FULL_STATUSES)
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
    word = next((word for word in _CONSTANT.findall(rest) if word in _SHORT_STATUSES), None)
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
            listed = ", ".join(_FULL_STATUSES)
            raise UsageError(
                f"there is no status {word!r}: the statuses are {listed}, also without db_"
            )
        # The short name stays, because a status of the query's own may have it.
        return f"'{word}', {_full_names(word)}" if word in _SHORT_STATUSES else constant[0]

    if match[3] is None:
        return _CONSTANT.sub(expand, match[0])
    negation = "" if match[2] else "NOT "
    return f"{match[1].rstrip()} {negation}IN ({_CONSTANT.sub(expand, match[3])})"


def _full_names(word: str) -> str:
    return ", ".join(f"'{status.name.lower()}'" for status in statuses_of(word))
