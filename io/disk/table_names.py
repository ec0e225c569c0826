"""Names of files in records of a table: checked where a record is read, made by jobs.

A table may come from a stranger. Its manifests, lists, receipts and records of operations name
files, so each name is checked when the record is parsed: it is relative and below the table.
"""

import re
from typing import Any

from ...policy.components.kinds import folders

# Folders of a table, besides those of components.
OTHER_FOLDERS = ("manifest", "history", "operations", "changes", "exports", "seeds")
LONGEST_NAME = 1_000
# Characters that clients of stores, or HTTP, would misinterpret; lone surrogates are no UTF-8.
_STRANGE_CHARACTERS = r"\x00-\x20\x7f?*\[\]{}#%\\\ud800-\udfff"
_STRANGE = re.compile(f"[{_STRANGE_CHARACTERS}]")
# Parts that are neither empty nor ``.`` or ``..``.
_PART = rf"(?!\.\.?(?:/|\Z))[^/{_STRANGE_CHARACTERS}]+"
_BELOW = re.compile(f"{_PART}(?:/{_PART})*")
# By chance, so that nobody knows the name of a file that he does not see.
_UNIQUE = r"(?:[0-9a-f]{16}|p\d{5,}-\d+-\w+-\d+)"
_ID = r"\d+-[0-9a-f]{8}"
# Names that jobs give to files, by docs/reference/files.md; hidden ones are not complete yet.
_MADE = re.compile(
    rf"""
    manifest/(?: \d{{8,}}\.json | made/\d{{8,}} | lists/[^/]+-{_UNIQUE}\.parquet )
    | operations/[^/]+\.(?: json | lost )
    | seeds/(?: {_UNIQUE} | {_ID} )\.txt
    | exports/{_ID}/(?:[^/]+/)*[^/]+
    | index/[^/]+/receipts/\d{{13,}}-[^/]+/(?: {_UNIQUE}\.(?: receipt | intent ) | ended\.json )
    | batches/[^/]+/leases/p\d{{5,}}-\d{{6,}}\.(?: claim | beat )
    | [^/]+_ranks/(?: rounds-[0-9a-f]{{16}}/\d{{4,}}-\d{{6,}}\.values | changes-[^/]+\.json )
    | (?: [^/]+ | (?: batches | index )/[^/]+/[^/]+ | [^/]+_nodes/aside-[^/]+ | changes(?: /[^/]+ ){{1,2}} )
        / {_UNIQUE}\.(?: parquet | arrow )
    | (?:[^/]+/){{1,4}} \.(?: exclusive- | [^/]+\. )?[0-9a-f]{{16}}
    """,
    re.VERBOSE,
)
_BY_CHANCE = re.compile(rf"{_UNIQUE}\.(?:parquet|arrow)")


def table_folders() -> frozenset[str]:
    """Returns the names of all folders directly in a table."""
    return frozenset((*folders(), *OTHER_FOLDERS))


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
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or _STRANGE.search(name):
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
    return bool(_MADE.fullmatch(name))


def is_unguessable_name(name: str) -> bool:
    """Returns whether a name is one that a job has made by chance, so that it proves whose it is.

    >>> is_unguessable_name("batches/1-0a1b2c3d/pages/0123456789abcdef.parquet")
    True
    >>> is_unguessable_name("manifest/made/00000001"), is_unguessable_name("batches/.profile")
    (False, False)
    """
    return is_made_name(name) and bool(_BY_CHANCE.search(name))
