"""Decodes URLs that servers write in bytes that are not UTF-8.

Nobody knows their encoding. The server that wrote them understands the bytes, so they are escaped as
they are, as browsers do in ``Location``.
"""

import codecs
import re

# Name of the handler of errors: bytes that are wrong in the encoding become ``%XX``.
ESCAPED = "nutbeam.escaped"
# Scheme and host. A host is not escaped: the bytes are Latin-1 there, as HTTP once said.
_HOST = re.compile(rb"\s*(?:[a-z][a-z0-9+.-]*:)?[/\\]{2}[^/\\?#]*", re.IGNORECASE)


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(f"%{byte:02X}" for byte in wrong), error.end


codecs.register_error(ESCAPED, _escape)


def url_of_bytes(raw: bytes) -> str:
    r"""Returns a URL, absolute or relative, from its bytes: UTF-8, or else escaped.

    >>> url_of_bytes("/café".encode()), url_of_bytes(b"/caf\xe9?q=\xfc")
    ('/café', '/caf%E9?q=%FC')
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        host = _HOST.match(raw)
        start = host.end() if host else 0
        try:
            before = raw[:start].decode()
        except UnicodeDecodeError:
            before = raw[:start].decode("latin-1")
        return before + raw[start:].decode("utf-8", ESCAPED)
