"""Lines of a CDXJ index, as pywb and OutbackCDX read them."""

import json
from typing import NamedTuple

from .surt import surt_key
from .warc_records import REVISIT, label_digest, timestamp14

_REVISIT_TYPE = "warc/revisit"


class IndexedRecord(NamedTuple):
    """Where the record of an answer is.

    Attributes:
        url: The requested URL.
        time: When it was requested, UTC ms.
        kind: WARC-Type.
        status: HTTP's status code; None if there is none.
        mime: Content type as sent, without parameters; None if it is unknown.
        digest: SHA-1 of the payload; None if there is none.
        file: Name of the file.
        offset: Position of the compressed record in the file.
        length: Its compressed size, bytes.
    """

    url: str
    time: int
    kind: str
    status: int | None
    mime: str | None
    digest: bytes | None
    file: str
    offset: int
    length: int


def cdxj_line(record: IndexedRecord) -> str:
    """Returns the line of a record: SURT key, 14 digits of its time, and JSON, where all are texts.

    >>> print(cdxj_line(IndexedRecord("ftp://a.com/", 0, "resource", None, None, None, "x", 9, 8)), end="")
    com,a)/ 19700101000000 {"url": "ftp://a.com/", "length": "8", "offset": "9", "filename": "x"}
    """
    fields = {
        "url": record.url,
        "mime": _REVISIT_TYPE if record.kind == REVISIT else record.mime,
        "status": None if record.status is None else str(record.status),
        "digest": None if record.digest is None else label_digest(record.digest),
        "length": str(record.length),
        "offset": str(record.offset),
        "filename": record.file,
    }
    present = {name: value for name, value in fields.items() if value is not None}
    return f"{surt_key(record.url)} {timestamp14(record.time)} {json.dumps(present)}\n"
