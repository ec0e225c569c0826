"""The protocol of ``gopher:`` URLs (RFC 1436), and a parser of its menus."""

from urllib.parse import quote, unquote, urlsplit

from nutbeam.web.clients.protocol_plugins import ProtocolAnswer, ProtocolRequest
from nutbeam.web.pages.page import Source
from nutbeam.web.parsers.parser_plugins import ParsedDocument

PORT = 70
MENU = "application/gopher-menu"
TYPES = {"0": "text/plain; charset=utf-8", "1": MENU, "h": "text/html"}


def fetch(request: ProtocolRequest) -> ProtocolAnswer:
    """Fetches a menu or a file; the path of the URL is ``/TYPE/SELECTOR``."""
    parts = urlsplit(request.url)
    path = unquote(parts.path)
    kind, selector = (
        path[1:2] or "1",
        path[2:] + (f"?{unquote(parts.query)}" if parts.query else ""),
    )
    if kind not in TYPES:
        return ProtocolAnswer(404, reason="a type of Gopher that is not fetched")
    body = bytearray()
    with request.connect(request.port or PORT) as connection:
        connection.sendall(f"{selector}\r\n".encode())
        while data := connection.recv(65_536):
            body += data
            if 0 <= request.content_limit < len(body):
                break  # nutbeam cuts the rest off
    if bytes(body[:1]) == b"3":  # an error
        return ProtocolAnswer(404, reason="not found")
    return ProtocolAnswer(body=bytes(body), content_type=TYPES[kind])


fetch.port = PORT  # type: ignore[attr-defined]  # needs no entry in --allowed_ports


def parse_menu(source: Source) -> ParsedDocument:
    """Reads a menu: its lines of information are the text, its entries are links."""
    title, texts, links = "", [], []
    for line in source.body.decode("utf-8", "replace").splitlines():
        kind, (label, selector, host, port, *_) = line[:1], [*line[1:].split("\t"), "", "", "", ""]
        if line == ".":
            break
        texts.append(label)
        title = title or label
        if kind in TYPES and host:
            place = host if port in ("", str(PORT)) else f"{host}:{port}"
            links.append((f"gopher://{place}/{kind}{quote(selector, '/?=&')}", label))
    return ParsedDocument(title, " ".join(texts), links, {"entries": str(len(links))})
