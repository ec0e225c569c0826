"""Finds the known names that a person may have meant by an unknown one."""

import re
from collections.abc import Iterable, Sequence

_MOST = 4
# First words of options that concern one kind of file, or one service.
_TOPICS = ("pdf", "sitemap", "hdfs", "geoip", "tld")


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Returns a text that suggests known names; empty if none is similar enough.

    >>> suggestion("--top_m", ["--top_n", "--scope"])
    "; did you mean '--top_n'?"
    >>> suggestion("--agent", ["--agent_name", "--agent_url", "--user"])
    "; did you mean one of '--agent_name', '--agent_url'?"
    """
    return one_of(similar(name, candidates))


def one_of(names: Sequence[str]) -> str:
    """Returns a text that suggests names; empty if there are none."""
    if not names:
        return ""
    words = "" if len(names) == 1 else "one of "
    return f"; did you mean {words}{', '.join(map(repr, names[:_MOST]))}?"


def similar(name: str, candidates: Iterable[str]) -> list[str]:
    """Returns the known names that a name may stand for.

    These are the names that differ only in case, dashes and underscores; else the nearest ones
    with few typing errors; else those that contain the name as whole words.

    >>> similar("-topN", ["--top_n", "--to"]), similar("fecth", ["fetch", "next"])
    (['--top_n'], ['fetch'])
    >>> similar("readseg", ["readdb"]), similar("--delay", ["--server_delay", "--relay_to"])
    ([], ['--server_delay'])
    """
    names = list(dict.fromkeys(candidates))
    folded = _fold_name(name)
    if not folded:
        return []
    by_form = [each for each in names if _fold_name(each) == folded]
    return by_form or nearest_spellings(name, names) or _with_words(name, names)


def nearest_spellings(name: str, candidates: Iterable[str]) -> list[str]:
    """Returns the known names that are nearest, if so few typing errors lead to the name.

    >>> nearest_spellings("prot", ["port", "ports"]), nearest_spellings("top", ["to"])
    (['port'], ['to'])
    """
    folded = _fold_name(name)
    errors = {each: _errors(folded, _fold_name(each)) for each in candidates}
    least = min(errors.values(), default=0)
    return [
        each
        for each, number in errors.items()
        if number == least <= _most_errors(folded, _fold_name(each))
    ]


def endings(name: str, candidates: Iterable[str]) -> list[str]:
    """Returns the known names that end in a name, after a word of their own.

    >>> endings("--min_interval", ["--generate_min_interval", "--min_intervals"])
    ['--generate_min_interval']
    """
    ending = "_" + name.lstrip("-").replace("-", "_").lower()
    return [each for each in candidates if len(ending) > 3 and each.endswith(ending)]


def _most_errors(typed: str, meant: str) -> int:
    """Returns how many typing errors may be in a name: with more it is probably another word."""
    if len(typed) < 6:
        return 1
    return 2 if len(typed) > 8 or typed.startswith(meant) else 1


def _fold_name(name: str) -> str:
    return re.sub("[-_]", "", name).lower()


def _with_words(name: str, candidates: Iterable[str]) -> list[str]:
    """Returns the names that begin with a name, or have it and one word more.

    With more words, or in the middle of a topic such as PDF, it means something else.
    """
    word = name.lstrip("-").replace("-", "_").lower()
    if len(word) < 3:
        return []
    plain = ((each, each.lstrip("-")) for each in candidates)
    most = word.count("_") + 1
    return [
        each
        for each, text in plain
        if text.count("_") <= most
        and (
            text.startswith(word)
            or (f"_{word}_" in f"_{text}_" and text.partition("_")[0] not in _TOPICS)
        )
    ]


def _errors(typed: str, meant: str) -> int:
    """Returns the number of letters to add, remove, replace or swap with their neighbour.

    >>> _errors("fecth", "fetch"), _errors("readseg", "readdb")
    (1, 3)
    """
    previous_row: list[int] = []
    row = list(range(len(meant) + 1))
    for i, letter in enumerate(typed, start=1):
        older_row, previous_row, row = previous_row, row, [i]
        for j, other in enumerate(meant, start=1):
            number = min(row[-1] + 1, previous_row[j] + 1, previous_row[j - 1] + (letter != other))
            if i > 1 and j > 1 and typed[i - 2] == other and letter == meant[j - 2]:
                number = min(number, older_row[j - 2] + 1)
            row.append(number)
    return row[-1]
