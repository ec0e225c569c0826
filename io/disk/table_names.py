"""Names of files in records of a table: checked where a record is read, made by jobs.

A table may come from a stranger. Its manifests, lists, receipts and records of operations name
files, so each name is checked when the record is parsed: it is relative and below the table.
"""

import functools
import re
from typing import Any

from ...policy.components.graph_schema import GRAPH_LEVELS
from ...policy.components.kinds import KINDS, folders, folders_of

LONGEST_NAME = 1_000
# Characters that clients of stores, or HTTP, would misinterpret; lone surrogates are no UTF-8.
_STRANGE_CHARACTERS = r"\x00-\x20\x7f?*\[\]{}#%\\\ud800-\udfff"
STRANGE = re.compile(f"[{_STRANGE_CHARACTERS}]")
# Parts that are neither empty nor ``.`` or ``..``.
_PART = rf"(?!\.\.?(?:/|\Z))[^/{_STRANGE_CHARACTERS}]+"
_BELOW = re.compile(f"{_PART}(?:/{_PART})*")
# The smallest numbers of digits.
_DIGITS = {"SNAPSHOT": 8, "ROUND": 4, "BLOCK": 6, "LEASE": 6, "TIME": 13}
# The words in forms of names. ``NAME`` is made by chance, so that nobody knows the name of a file
# that he does not see.
_WORDS = {
    "NAME": r"(?:[0-9a-f]{16}|p\d{5,}-\d+-\w+-\d+)",
    "PARTITION": r"p\d{5,}",
    **{word: rf"\d{{{digits},}}" for word, digits in _DIGITS.items()},
    "RUN": r"\d+-(?:[0-9a-f]{3})?[0-9a-f]{8}",
    **dict.fromkeys(("ID", "INDEX", "SET", "COMPONENT"), "[^/]+"),
    "PART": r"[^/]+(?:/[^/]+)*",
}
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")
# Names that jobs give to files besides those of components. Cleaning deletes the files of the
# first ones; docs/reference/files.md describes all.
_CLEANED_FORMS = (
    *("manifest/SNAPSHOT.json", "manifest/lists/COMPONENT-NAME.parquet", "manifest/made/SNAPSHOT"),
    *("manifest/reports/NAME.json", "manifest/closed/NAME.json"),
    *("operations/ID.json", "operations/ID@SNAPSHOT.json", "operations/ID.lost"),
    "operations/ID.beat",
    *(f"{level}_nodes/aside-ID/NAME.parquet" for level in GRAPH_LEVELS),
    *(f"{level}_ranks/rounds-NAME/ROUND-BLOCK.values" for level in GRAPH_LEVELS),
    *(f"{level}_ranks/changes-ID.json" for level in GRAPH_LEVELS),
    *(
        f"index/INDEX/receipts/TIME-ID/{end}"
        for end in ("NAME.receipt", "NAME.intent", "ended.json")
    ),
    *(f"batches/ID/leases/PARTITION-LEASE.{end}" for end in ("claim", "beat")),
    *("batches/ID/aside/NAME.arrow", "seeds/NAME.txt", "seeds/RUN.txt", "exports/RUN/PART"),
    *(f"changes/{above}COMPONENT/NAME.parquet" for above in ("", "deleted/", "purged/")),
)
_OTHER_FORMS = (
    *("history/SNAPSHOT-SNAPSHOT.jsonl", "operations/purge.hold"),
    "extracts/SET/RUN.json",
)
# A file that is not complete yet.
_HIDDEN = r"(?:[^/]+/){1,4}\.(?:exclusive-|[^/]+\.)?[0-9a-f]{16}"
_BY_CHANCE = re.compile(rf"{_WORDS['NAME']}\.(?:parquet|arrow)")


def name_forms() -> tuple[str, ...]:
    """Returns the forms of all names that jobs give to files, those of components first.

    >>> name_forms()[0], name_forms()[-1]
    ('state/NAME.parquet', 'extracts/SET/RUN.json')
    """
    return (*_forms_of_components(), *_CLEANED_FORMS, *_OTHER_FORMS)


def _forms_of_components() -> list[str]:
    owners = {"": "", "batches": "batches/ID/", "index": "index/INDEX/"}
    components = (f"{owners[kind.owner.folder]}{name}" for name, kind in KINDS.items())
    return [f"{one}/NAME.parquet" for component in components for one in folders_of(component)]


def table_folders() -> frozenset[str]:
    """Returns the names of all folders directly in a table."""
    others = (form.partition("/")[0] for form in (*_CLEANED_FORMS, *_OTHER_FORMS))
    return frozenset((*folders(), *others))


def checked_name(name: Any) -> str:
    r"""Returns the name of a file, or of a folder, of a table: relative, below the table.

    Raises:
        ValueError: It is anything else; the message quotes it.

    >>> checked_name("batches/1/pages/a.parquet")
    'batches/1/pages/a.parquet'
    >>> for name in ("/etc/passwd", "state/../../x", "s3://b/x", "a//b", "a\nb", "", 7):
    ...     try:
    ...         checked_name(name)
    ...     except ValueError as error:
    ...         print(error)
    it names a file outside of the table: '/etc/passwd'
    it names a file outside of the table: 'state/../../x'
    it names a file outside of the table: 's3://b/x'
    it names a file outside of the table: 'a//b'
    it names no file of a table: 'a\nb'
    it names no file of a table: ''
    it names no file of a table: 7
    """
    if isinstance(name, str) and len(name) <= LONGEST_NAME and _BELOW.fullmatch(name):
        return name
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or STRANGE.search(name):
        raise ValueError(f"it names no file of a table: {name!r}"[:200])
    raise ValueError(f"it names a file outside of the table: {name!r}"[:200])


def checked_part(name: Any) -> str:
    """Returns a word that is a part of names of files, such as the id of a batch.

    Raises:
        ValueError: It is no such word.

    >>> checked_part("1790000000-0a1b2c3d")
    '1790000000-0a1b2c3d'
    """
    if "/" in checked_name(name):
        raise ValueError(f"it names no file of a table: {name!r}"[:200])
    return str(name)


def is_made_name(name: str) -> bool:
    """Returns whether jobs give such names to files; cleaning deletes no other file.

    Args:
        name: The name of a file, relative to the table.

    >>> is_made_name("state/0123456789abcdef.parquet"), is_made_name("state/notes.txt")
    (True, False)
    """
    return bool(_cleaned_names(tuple(KINDS)).fullmatch(name))


@functools.lru_cache(maxsize=4)
def _cleaned_names(kinds: tuple[str, ...]) -> re.Pattern[str]:
    """Returns the pattern of names of files that cleaning deletes, if these kinds are declared."""
    forms = (*_forms_of_components(), *_CLEANED_FORMS)
    patterns = (_WORD.sub(lambda word: _WORDS[word[0]], form.replace(".", r"\.")) for form in forms)
    return re.compile("|".join((*patterns, _HIDDEN)))


def is_unguessable_name(name: str) -> bool:
    """Returns whether a name is one that a job has made by chance, so that it proves whose it is.

    >>> is_unguessable_name("batches/1-0a1b2c3d/pages/0123456789abcdef.parquet")
    True
    >>> is_unguessable_name("manifest/made/00000001"), is_unguessable_name("batches/.profile")
    (False, False)
    """
    return is_made_name(name) and bool(_BY_CHANCE.search(name))
