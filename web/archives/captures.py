"""A capture: what is known of one request and its answer, for records of an archive."""

import dataclasses
import re

USUAL_TYPE = "application/octet-stream"
# Where programs that write CDXJ end a type.
_BETWEEN = re.compile(r"[;\s]")


@dataclasses.dataclass(slots=True, frozen=True)
class Capture:
    """One request and its answer.

    Attributes:
        url: The requested URL.
        batch: Id of the batch that it belongs to.
        time: When the request ended, UTC ms.
        request: Head of the request; empty if there is none, as with file:.
        status: HTTP's status code; 0 if there was no answer of HTTP.
        status_line: As received; ``HTTP/0.9 200`` for an answer without a head.
        headers: (name, value) in the order received.
        body: Body without the codings of HTTP; None if it was not kept.
        truncated: Why the body is incomplete, as in the column ``truncated``; None: it is complete.
        content_type: Content type, as the server sent it; empty if it sent none.
        ip: Address of the server; empty if it is unknown.
        wire: The body as it was transferred, with its codings; None if it was not kept, or if it is
            ``body``.
        wire_head: The head of the answer as it came; None if it was not kept, or if it is what status
            line and headers give.
        redirect: Target of a redirect, as an absolute URL; empty if there is none.
        cipher: Version of TLS and cipher suite, as OpenSSL names it; empty if they are unknown.
    """

    url: str
    batch: str
    time: int
    request: str = ""
    status: int = 0
    status_line: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    truncated: str | None = None
    content_type: str = ""
    ip: str = ""
    wire: bytes | None = None
    wire_head: str | None = None
    cipher: str = ""
    redirect: str = ""

    def header(self, name: str) -> str:
        """Returns the first header of a name, given in lower case; empty if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


def mime_of(capture: Capture) -> str:
    """Returns the type that the server sent, without parameters; it may be empty.

    A page of another protocol without a type has the one that its record has.

    >>> mime_of(Capture("http://a/", "1", 0, status=200, content_type="Text/HTML; charset=x"))
    'Text/HTML'
    """
    kind = capture.content_type if capture.status else capture.content_type or USUAL_TYPE
    return _BETWEEN.split(kind.strip(), maxsplit=1)[0]
