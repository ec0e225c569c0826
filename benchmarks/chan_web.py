"""A web of large pages for ``chan.py``: TLS with a certificate for each host, and servers that fail.

``python benchmarks/chan_web.py FOLDER`` serves ``https://site0.test/`` and so on on one port of
loopback, writes the certificate of their authority to ``FOLDER/authority.pem``, and prints the port.

**Pages** have the sizes of the web's: log-normal, with a mean of 242 KB and a median of 138 KB. A page is a
head with metadata, JSON-LD and 40 links of the site, and then pieces that are drawn by their shares of the
bytes: scripts (minified code and JSON, 50 %), styles (9 %), drawings (5 %), and content (36 %): cards of nested
elements with long attributes, images, two links and a few sentences. So a page of 242 KB has about 9 KB of
text, 1,300 elements and 160 links, a third of them to other sites. Seven of eight sites send gzip, a quarter of
the bytes. All of this is deterministic.

**Failures.** Of 100 sites, 4 have no address and 4 refuse connections (``url_of`` names them so). Of the
pages of the others, 6.5 % never answer, and 6.5 % answer 500, 502 or 503. That is 20 % of all pages.
"""

import asyncio
import datetime
import functools
import itertools
import json
import pathlib
import random
import re
import ssl
import struct
import sys
import zlib
from collections.abc import Callable, Iterator

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from nutbeam.web.simweb.render import words

MEAN_BYTES, MEDIAN_BYTES = 242_000, 138_000
SIGMA = 1.06  # of a log-normal distribution with this mean and median
LARGEST_BYTES = 4_000_000
_PIECES = 200  # of each kind
_KEEP_ALIVE_S = 15
_SILENT = "silent"
_VOCABULARY = words(7)
_WEIGHTS = list(itertools.accumulate(1 / rank for rank in range(1, len(_VOCABULARY) + 1)))
_ANSWER = "HTTP/1.1 {}\r\nServer: bench\r\nContent-Type: {}\r\n{}Content-Length: {}\r\n\r\n"


def url_of(host: int, page: int) -> str:
    """Returns the URL of a page; the top-level domain says which sites cannot be reached."""
    domain = {0: "invalid", 1: "closed"}.get(host % 25, "test")
    return f"https://site{host}.{domain}/articles/{page}.html"


def fault_of(host: int, page: int) -> str:
    """Returns the status of a page that fails although its site can be reached; empty for none."""
    dice = random.Random(f"luck {host}/{page}")
    if dice.random() >= 0.13:
        return ""
    return dice.choice((*[_SILENT] * 3, "500 Error", "502 Bad Gateway", "503 Unavailable"))


# ---- Pages


def _sentence(dice: random.Random, count: int) -> str:
    return " ".join(dice.choices(_VOCABULARY, cum_weights=_WEIGHTS, k=count)).capitalize() + "."


def _name(dice: random.Random) -> str:
    return f"{dice.choice(_VOCABULARY)}-{dice.choice(_VOCABULARY[:200])}"


def _classes(dice: random.Random) -> str:
    names = (f"{_name(dice)}__{dice.choice(_VOCABULARY[:60])}" for _ in range(dice.randint(1, 3)))
    return f'class="{" ".join(names)} css-{dice.getrandbits(24):x}"'


def _link(dice: random.Random) -> str:
    path = f"/{_name(dice)}/{_name(dice)}-{dice.getrandbits(20)}"
    return f"https://site{dice.randrange(100_000)}.test{path}" if dice.random() < 0.4 else path


def _content(dice: random.Random) -> str:
    """Returns eight cards of one kind, each of about 1,300 bytes: 12 elements, two links, 130 bytes of text."""
    of = [_classes(dice) for _ in range(9)]
    return "".join(_card(dice, of) for _ in range(8))


def _card(dice: random.Random, of: list[str]) -> str:
    image = f"/images/{_name(dice)}-{dice.getrandbits(32):x}"
    sizes = ", ".join(f"{image}-{width}.webp {width}w" for width in (320, 640, 1280))
    tracked = json.dumps({"id": dice.getrandbits(32), "list": _name(dice)}).replace('"', "&quot;")
    return (
        f'<div {of[0]} data-testid="{_name(dice)}"><div {of[1]}>'
        f'<a href="{_link(dice)}" {of[2]} data-track="{tracked}">'
        f'<img {of[3]} src="{image}-640.webp" srcset="{sizes}" sizes="(max-width: 640px) 100vw, 33vw"'
        f' alt="{_sentence(dice, 4)}" loading="lazy" width="640" height="360"></a></div>\n'
        f'<div {of[4]}><h3 {of[5]}><a href="{_link(dice)}" {of[2]}>{_sentence(dice, 6)}</a></h3>'
        f"<p {of[6]}>{_sentence(dice, 14)}</p><span {of[7]}>{dice.randrange(60)} min</span> "
        f'<time {of[8]} datetime="2026-01-01T{dice.randrange(24):02}:00:00Z">{dice.randrange(28)} May</time>'
        "</div></div>\n"
    )


def _script(dice: random.Random) -> str:
    """Returns about 12 KB of code, or of JSON."""
    if dice.random() < 0.5:
        state = [
            {"__typename": "Item", "id": dice.getrandbits(24), "slug": _link(dice), "isVisible": True,
             "createdAt": None, "title": _sentence(dice, 6), "labels": [], "author": {"name": "Staff"}}
            for _ in range(60)
        ]  # fmt: skip
        return f"<script>window.__STATE__={json.dumps(state)}</script>\n"
    code = (
        f"function {dice.choice('abcdefgh')}(e,t){{var n=e.{dice.choice(_VOCABULARY[:300])};return n&&"
        f't{dice.choice(_COMPARED)}{dice.randrange(99)}?n.push({{key:t}}):r("{_name(dice)}",{dice.randrange(99)})}}'
        for _ in range(130)
    )
    return f'<script type="text/javascript">!{";".join(code)}</script>\n'


def _style(dice: random.Random) -> str:
    rules = (
        f".{_name(dice)}{{display:flex;margin:{dice.randrange(40)}px;color:var(--{dice.choice(_VOCABULARY[:40])})}}"
        for _ in range(80)
    )
    return f"<style>{''.join(rules)}</style>\n"


def _drawing(dice: random.Random) -> str:
    path = "".join(f"L{dice.random() * 24:.2f} {dice.random() * 24:.2f}" for _ in range(90))
    return f'<svg {_classes(dice)} viewBox="0 0 24 24"><path d="M0 0{path}Z"/></svg>\n'


class Piece:
    """A piece of many pages, and the same deflated, so that pieces can be joined."""

    def __init__(self, markup: str) -> None:
        self.plain = markup.encode()
        deflater = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        self.deflated = deflater.compress(self.plain) + deflater.flush(zlib.Z_FULL_FLUSH)


@functools.cache
def _pieces(make: Callable[[random.Random], str]) -> list[Piece]:
    dice = random.Random(make.__name__)
    return [Piece(make(dice)) for _ in range(_PIECES)]


# One of four functions has a "<", one per 400 bytes, as in code of the web.
_COMPARED = ("<", ">", "===", "!==")
_SHARES = ((_style, 0.09), (_content, 0.36), (_drawing, 0.05), (_script, 0.5))


def _head(host: int, page: int, dice: random.Random) -> str:
    url, title = url_of(host, page), f"{_sentence(dice, 7)} {host}/{page}"
    article = {"@context": "https://schema.org", "@type": "NewsArticle", "headline": title, "url": url,
               "author": {"@type": "Person", "name": _name(dice)}, "datePublished": "2026-05-01"}  # fmt: skip
    metas = "".join(
        f'<meta property="og:{name}" content="{_sentence(dice, 8)}">\n'
        for name in ("title", "description", "site_name", "image:alt")
    )
    sections = random.Random(host)  # the same on all pages of the site
    links = "".join(
        f'<li><a href="/{_name(sections)}/">{_name(sections)}</a></li>' for _ in range(40)
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<link rel="canonical" href="{url}">\n{metas}<meta name="description" content="{_sentence(dice, 20)}">\n'
        f'<script type="application/ld+json">{json.dumps(article)}</script>\n</head><body>\n'
        f"<nav><ul>{links}</ul></nav>\n<h1>{title}</h1>\n<p>{_sentence(dice, 80)}</p>\n"
    )


def pieces_of(host: int, page: int) -> Iterator[Piece]:
    """Yields the pieces of a page."""
    dice = random.Random(f"{host}/{page}")
    size = min(LARGEST_BYTES, MEDIAN_BYTES * dice.lognormvariate(0, SIGMA))
    head = Piece(_head(host, page, dice))
    yield head
    for make, share in _SHARES:
        left = share * max(0.0, size - len(head.plain))
        while left > 0:
            piece = dice.choice(_pieces(make))
            if dice.random() * len(piece.plain) < left:  # so that the mean stays
                yield piece
            left -= len(piece.plain)


def answer_of(host: int, page: int) -> bytes:
    """Returns a page with its head."""
    pieces = list(pieces_of(host, page))
    kind = "text/html; charset=utf-8"
    plain = b"".join(piece.plain for piece in pieces)
    if host % 8 == 0:
        return _ANSWER.format("200 OK", kind, "", len(plain)).encode() + plain
    trailer = struct.pack("<II", zlib.crc32(plain), len(plain))
    body = b"".join(
        (b"\x1f\x8b\x08\0\0\0\0\0\0\xff", *(piece.deflated for piece in pieces), b"\x03\0", trailer)
    )
    return _ANSWER.format("200 OK", kind, "Content-Encoding: gzip\r\n", len(body)).encode() + body


# ---- Servers


class Authority:
    """Signs the certificates of hosts.

    Args:
        folder: For its own certificate, ``authority.pem``.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "benchmark")])
        certificate = self._sign(self._name, self._key, x509.BasicConstraints(True, 0))
        (folder / "authority.pem").write_bytes(certificate)

    @functools.cache  # noqa: B019 - it lives as long as the process
    def context(self, host: str) -> ssl.SSLContext:
        """Returns the context of a host, with a key and a certificate of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        path = self._folder / "host.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path.write_bytes(secret + self._sign(name, key, names))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _sign(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> bytes:
        now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
        builder = (
            x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(extension, critical=False)
        )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


_REQUEST = re.compile(
    rb"GET /(?:(robots\.txt)|articles/(\d+)\.html) .*?\r\nHost: site(\d+)\.", re.DOTALL
)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers the requests of a connection."""
    try:
        while True:
            request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _KEEP_ALIVE_S)
            match = _REQUEST.match(request)
            assert match, request
            if match[1]:
                body = "User-agent: *\nDisallow: /private/\n"
                writer.write(
                    (_ANSWER.format("200 OK", "text/plain", "", len(body)) + body).encode()
                )
                continue
            host, page = int(match[3]), int(match[2])
            fault = fault_of(host, page)
            if fault == _SILENT:
                await reader.read(1)  # until the client gives up
                return
            if fault:
                writer.write(_ANSWER.format(fault, "text/html", "", 0).encode())
                continue
            writer.write(answer_of(host, page))
            await writer.drain()
    except (OSError, EOFError, TimeoutError):
        pass
    finally:
        writer.close()


async def run(folder: pathlib.Path) -> None:
    """Serves until the process ends."""
    authority = Authority(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def choose(connection: ssl.SSLObject, name: str, _: ssl.SSLContext) -> None:
        connection.context = authority.context(name)

    context.sni_callback = choose
    for make, _ in _SHARES:
        _pieces(make)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(run(pathlib.Path(sys.argv[1])))
