"""Folders as pages of links, as Nutch's plug-ins for file: and ftp: make them."""

import html
from collections.abc import Iterable
from typing import NamedTuple

from ..base.visible import visible
from ..urls.percent import name_url

INDEX_TYPE = "text/html; charset=utf-8"


class Entry(NamedTuple):
    """An entry of a folder.

    Attributes:
        name: Its bytes.
        folder: Whether it is a folder.
        size: Bytes, where they are known.
        changed: Time of the last change, as text.
    """

    name: bytes
    folder: bool = False
    size: int | None = None
    changed: str = ""


def index_page(
    path: bytes, entries: Iterable[Entry], parent: bool = False, limit: int = -1
) -> tuple[bytes, int]:
    """Returns a page that links to the entries of a folder.

    Args:
        path: Of the folder, for the title.
        entries: Its entries.
        parent: Whether to link to the folder above.
        limit: Most bytes of the page; negative: no limit. Whole entries
            are left out at the end.

    Returns:
        (the page in UTF-8, how many entries were left out).

    >>> page, _ = index_page(b"/a/", [Entry(b"<b>", folder=True)])
    >>> page.split(b"<pre>")[1].splitlines()[1].decode()
    "<a href='%3Cb%3E/'>&lt;b&gt;/</a>\\t-\\t-"
    """
    title = f"Index of {_shown(path)}"
    head = (
        f"<html><head><title>{title}</title></head>\n<body><h1>{title}</h1><pre>\n"
        + ("<a href='../'>../</a>\t-\t-\n" if parent else "")
    ).encode()
    end = b"</pre></body></html>\n"
    lines, size, left_out = [head], len(head) + len(end), 0
    for entry in entries:
        slash = "/" if entry.folder else ""
        length = "-" if entry.size is None or entry.folder else str(entry.size)
        line = (
            f"<a href='{html.escape(name_url(entry.name))}{slash}'>{_shown(entry.name)}{slash}</a>"
            f"\t{_shown(entry.changed.encode()) or '-'}\t{length}\n"
        ).encode()
        if left_out or 0 <= limit < size + len(line):
            left_out += 1
            continue
        lines.append(line)
        size += len(line)
    return b"".join([*lines, end]), left_out


def _shown(name: bytes) -> str:
    return html.escape(visible(name.decode("utf-8", "replace"), keep=""))
