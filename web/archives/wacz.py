"""What a WACZ 1.1.1 package has beside its archives: a list of pages, an index of the index, digests."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .member_codecs import encode_gzip
from .warc_records import record_id, warc_date

WACZ_VERSION = "1.1.1"
INDEX, INDEX_LINES = "indexes/index.cdx.gz", "indexes/index.idx"
PAGE_LIST, PACKAGE, PACKAGE_DIGEST = (
    "pages/pages.jsonl",
    "datapackage.json",
    "datapackage-digest.json",
)
_BLOCK_LINES = 1024  # of the index, compressed as one


class PackagedFile(NamedTuple):
    """A file of a package: its path in it, its size in bytes, and its SHA-256."""

    path: str
    size: int
    sha256: bytes


def index_blocks(lines: Iterable[str]) -> Iterator[tuple[bytes, str]]:
    """Yields the blocks of a compressed CDXJ index, and the line of ``index.idx`` for each.

    Args:
        lines: All lines, sorted.

    >>> [(block, line)] = index_blocks(['com,a)/ 2026 {"url": "http://a.com/"}'])
    >>> line.startswith('com,a)/ 2026 {"offset": 0, "length": ')
    True
    """
    rest, offset = iter(lines), 0
    while block := list(itertools.islice(rest, _BLOCK_LINES)):
        data, line = _index_block(block, offset)
        yield data, line
        offset += len(data)


def _index_block(block: Sequence[str], offset: int) -> tuple[bytes, str]:
    data = encode_gzip("".join(block).encode())
    key, time, _ = block[0].split(" ", 2)
    place = {
        "offset": offset,
        "length": len(data),
        "digest": _label(hashlib.sha256(data).digest()),
        "filename": INDEX.rpartition("/")[2],
    }
    return data, f"{key} {time} {json.dumps(place)}\n"


def index_header() -> str:
    """Returns the first line of ``index.idx``."""
    meta = {"format": "cdxj-gzip-1.0", "filename": INDEX.rpartition("/")[2]}
    return f"!meta 0 {json.dumps(meta)}\n"


def pages_header() -> str:
    """Returns the first line of ``pages.jsonl``."""
    return json.dumps({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}) + "\n"


def page_line(url: str, time: int, title: str | None) -> str:
    """Returns the line of a page.

    Args:
        url: Its URL.
        time: When it was requested, UTC ms.
        title: Its title; None if it has none.
    """
    page = {"id": record_id("page", url, time).removeprefix("urn:uuid:"), "url": url,
            "ts": warc_date(time, "1.0")}  # fmt: skip
    if title:
        page["title"] = title
    return json.dumps(page) + "\n"


def package_description(
    files: Sequence[PackagedFile], software: str, created: int, title: str, description: str
) -> bytes:
    """Returns ``datapackage.json``.

    Args:
        files: The files of the package.
        software: The program and its version.
        created: When it was made, UTC ms.
        title: Its title.
        description: What it is; it may be empty.
    """
    resources = [
        {
            "name": file.path.rpartition("/")[2].lower(),
            "path": file.path,
            "hash": _label(file.sha256),
            "bytes": file.size,
        }
        for file in files
    ]
    described = {
        "profile": "data-package",
        "title": title,
        **({"description": description} if description else {}),
        "created": warc_date(created, "1.0"),
        "wacz_version": WACZ_VERSION,
        "software": software,
        "resources": resources,
    }
    return json.dumps(described, indent=2).encode()


def package_digest(description: bytes) -> bytes:
    """Returns ``datapackage-digest.json``."""
    digest = _label(hashlib.sha256(description).digest())
    return json.dumps({"path": PACKAGE, "hash": digest}, indent=2).encode()


def _label(sha256: bytes) -> str:
    return f"sha256:{sha256.hex()}"
