"""The response to one request, of any protocol."""

import dataclasses


@dataclasses.dataclass(slots=True)
class Response:
    """The response to one request, or the reason why there is none.

    Attributes:
        url: The requested URL.
        http_version: ``HTTP/1.1``; ``HTTP/0.9`` for a page without a head; empty without an answer.
        status: Status code; 0 without an answer.
        reason: Reason phrase.
        headers: (name, value) in the order received.
        body: Decoded bytes.
        truncated: None, or the reason why the body is incomplete; see ``Body``. ``frame`` and
            ``checksum``: it is whole, but the answer broke off, or its checksum is wrong.
        ip: Address connected to; empty if there was none.
        request: Head of the request as sent, without secrets.
        started: UTC ms.
        elapsed_ms: Until the last byte, or the error.
        error: None, or the reason of a failure, such as ``dns``; docs/reference/reasons.md lists them.
        status_line: As received, without the line's end.
        tls: None, ``checked``, or ``unchecked`` if the operator has turned the check off.
        resend: Whether an idle connection was closed without an answer, so that the request may be
            sent again at the host's next turn; then ``error`` is ``reset``.
        cookies: The cookies that were sent, a secret; empty for none.
        new_cookie: Whether it has set a cookie that is new, or has a new value.
    """

    url: str
    http_version: str = ""
    status: int = 0
    reason: str = ""
    headers: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    body: bytes = b""
    truncated: str | None = None
    ip: str = ""
    request: str = ""
    started: int = 0
    elapsed_ms: int = 0
    error: str | None = None
    tls: str | None = None
    status_line: str = ""
    resend: bool = False
    cookies: str = ""
    new_cookie: bool = False

    def header(self, name: str) -> str | None:
        """Returns the first header of a name, given in lower case."""
        return next(iter(self.header_values(name)), None)

    def header_values(self, name: str) -> list[str]:
        """Returns the values of all headers of a name, given in lower case."""
        return [value for key, value in self.headers if key.lower() == name]
