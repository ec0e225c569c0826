"""User names, passwords and tokens from a file of the operator, each for one origin.

Secrets are never printed: errors name the file and the line.
"""

import base64
import dataclasses
import hashlib
import itertools
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.request import parse_http_list

from ..base.dataclass import dataclass
from ..base.errors import UsageError
from ..base.mappings import SizeCache
from ..network.dialer import Origin, split_url
from ..urls.schemes import split_ftp

_ORIGIN = re.compile(r"(?:https?|ftp)://[^/?#@\s]+/?")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 2.1
_KINDS = ("basic", "digest", "bearer", "apikey")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9-]*)(?:\s+(?!=)|\Z)")
_HASHES = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}
_MAX_CHALLENGES = 1_000
_MAX_CHALLENGE = 8_192  # letters of a header that are read


@dataclass(frozen=True)
class Credential:
    """User and secret for one origin.

    Attributes:
        kind: ``basic``, ``digest``, ``bearer`` or ``apikey``.
        user: User name; empty for bearer and apikey.
        secret: Password, token or key.
    """

    kind: str
    user: str = dataclasses.field(repr=False)
    secret: str = dataclasses.field(repr=False)

    def header(self) -> str:
        """Returns the value of Authorization; not for digest, which needs a challenge."""
        if self.kind == "bearer":
            return f"Bearer {self.secret}"
        if self.kind == "apikey":  # of Elasticsearch and OpenSearch
            return f"ApiKey {self.secret}"
        pair = f"{self.user}:{self.secret}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


def load_credentials(path: str) -> dict[Origin, Credential]:
    """Reads a file of credentials.

    A line is ``ORIGIN basic USER PASSWORD``, ``ORIGIN digest USER PASSWORD``,
    ``ORIGIN bearer TOKEN`` or ``ORIGIN apikey KEY``. ORIGIN is ``https://HOST``, with a port if it
    is not the usual one; ``ftp://HOST`` needs basic. Passwords extend to the end of the line. Empty
    lines and lines that begin with # are ignored.

    Raises:
        UsageError: The file cannot be read, or a line is not valid.
    """
    try:
        lines = Path(path).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(
            f"http_credentials must be a file that can be read, got {path!r}: {reason}"
        ) from None
    credentials: dict[Origin, Credential] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            origin, credential = _read_entry(line.strip())
            if origin in credentials:
                raise ValueError("the origin has a line already")
        except ValueError as error:
            # Not "from error": a traceback must not show the line.
            raise UsageError(f"{path}, line {number}: {error}") from None
        credentials[origin] = credential
    return credentials


def _read_entry(line: str) -> tuple[Origin, Credential]:
    words = line.split(None, 2)
    if len(words) < 3 or words[1].lower() not in _KINDS:
        raise ValueError(
            "expected ORIGIN, then basic, digest, bearer or apikey, then user and password, token "
            "or key"
        )
    if not _ORIGIN.fullmatch(words[0]):
        raise ValueError(
            "ORIGIN must be http://HOST, https://HOST or ftp://HOST, with :PORT if needed"
        )
    try:
        ftp = words[0].startswith("ftp:")
        origin = ("ftp", *split_ftp(words[0])[:2]) if ftp else split_url(words[0])[0]
    except ValueError:
        raise ValueError("ORIGIN must have a host, in ASCII") from None
    kind, rest = words[1].lower(), words[2]
    if ftp and kind != "basic":
        raise ValueError("FTP needs user and password: ftp://HOST basic USER PASSWORD")
    if kind in ("bearer", "apikey"):
        if not is_token(rest):
            raise ValueError(f"{kind} needs one token, of letters, digits and -._~+/=")
        return origin, Credential(kind, "", rest)
    pair = rest.split(None, 1)
    if len(pair) < 2 or any(ord(letter) < 32 or ord(letter) == 127 for letter in rest):
        raise ValueError(f"{kind} needs a user name and a password")
    if kind == "basic" and ":" in pair[0]:
        raise ValueError("a user name of basic must not have a colon (RFC 7617 2)")
    return origin, Credential(kind, *pair)


def is_token(text: str) -> bool:
    """Returns whether a text has the form of a token (RFC 6750 2.1)."""
    return _TOKEN.fullmatch(text) is not None


def is_open_to_others(path: str) -> bool:
    """Returns whether other users of the machine may read a file."""
    return os.name == "posix" and bool(Path(path).stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


class Credentials:
    """Makes the Authorization header of requests; safe to share by threads.

    Args:
        entries: By origin.
    """

    def __init__(self, entries: dict[Origin, Credential]) -> None:
        self._entries = entries
        # Each with the counter of the requests that have answered it.
        self._challenges: SizeCache[Origin, tuple[dict[str, str], Iterator[int]]]
        self._challenges = SizeCache(_MAX_CHALLENGES)

    def proxy_header(self, host: str, port: int) -> str:
        """Returns the value of Proxy-Authorization for a proxy; empty if it has no entry.

        Raises:
            UsageError: The entry is for digest.
        """
        entry = self._entries.get(("http", f"[{host}]" if ":" in host else host, port))
        if entry is None:
            return ""
        if entry.kind == "digest":
            raise UsageError("a proxy's entry in http_credentials must be basic or bearer")
        return entry.header()

    def login(self, host: str, port: int) -> tuple[str, str] | None:
        """Returns user and password for an FTP server, if it has an entry."""
        entry = self._entries.get(("ftp", host, port))
        return (entry.user, entry.secret) if entry is not None else None

    def header(self, url: str) -> str | None:
        """Returns the value of Authorization for a URL, if its origin has an entry.

        For digest it returns a value only after a challenge.
        """
        if not self._entries:
            return None
        origin, target = split_url(url)
        entry = self._entries.get(origin)
        if entry is None:
            return None
        if entry.kind != "digest":
            return entry.header()
        last_challenge = self._challenges.get(origin)
        if last_challenge is None:
            return None
        challenge, counts = last_challenge
        return digest_header(entry, challenge, target, next(counts), secrets.token_hex(8))

    def read_challenge(self, url: str, values: list[str], sent: bool) -> bool:
        """Reads the WWW-Authenticate headers of a 401; returns whether to send the request again.

        Args:
            url: The URL of the request.
            values: Values of the headers.
            sent: Whether the request answered an earlier challenge.
        """
        if not self._entries:
            return False
        origin, _ = split_url(url)
        entry = self._entries.get(origin)
        if entry is None or entry.kind != "digest":
            return False
        challenge = choose_challenge(values)
        # A second challenge is answered only if the first was too old.
        if challenge is None or (sent and challenge.get("stale", "").lower() != "true"):
            return False
        self._challenges.put(origin, (challenge, itertools.count(1)))
        return True


def choose_challenge(values: list[str]) -> dict[str, str] | None:
    """Returns the best supported digest challenge, or None.

    >>> choose_challenge(['Basic realm="a", Digest realm="b", nonce="n", qop="auth,auth-int"'])
    {'realm': 'b', 'nonce': 'n', 'qop': 'auth,auth-int'}
    """
    best: dict[str, str] | None = None
    for challenge in _digests(values):
        algorithm = challenge.get("algorithm", "MD5").upper().removesuffix("-SESS")
        qops = [word.strip() for word in challenge.get("qop", "auth").split(",")]
        if not challenge.get("nonce") or algorithm not in _HASHES or "auth" not in qops:
            continue
        if best is None or (algorithm == "SHA-256" and "SHA-256" not in best.get("algorithm", "")):
            best = challenge
    return best


def _digests(values: list[str]) -> Iterator[dict[str, str]]:
    """Yields the parameters of the digest challenges in WWW-Authenticate headers."""
    for value in values:
        scheme, parameters = "", dict[str, str]()
        for part in parse_http_list(value[:_MAX_CHALLENGE]):
            begins = _SCHEME.match(part)
            if begins:  # with its first parameter, if there is one
                if scheme == "digest":
                    yield parameters
                scheme, parameters, part = begins[1].lower(), {}, part[begins.end() :]
            name, _, text = part.partition("=")
            text = text.strip()
            parameters[name.strip().lower()] = text[1:-1] if text.startswith('"') else text
        if scheme == "digest":
            yield parameters


def digest_header(
    entry: Credential, challenge: dict[str, str], target: str, count: int, cnonce: str
) -> str:
    """Returns the answer to a digest challenge for a GET (RFC 7616 3.4).

    Args:
        entry: User and password.
        challenge: As ``choose_challenge`` returns it.
        target: Path and query, as in the request line.
        count: Number of uses of this nonce, this one included.
        cnonce: Unpredictable characters.
    """
    algorithm = challenge.get("algorithm", "MD5").upper()
    make = _HASHES[algorithm.removesuffix("-SESS")]

    def digest(text: str) -> str:
        return make(text.encode("latin-1")).hexdigest()

    # Received text has one character per byte; convert user and secret to the same form.
    user, secret = (text.encode().decode("latin-1") for text in (entry.user, entry.secret))
    realm, nonce = challenge.get("realm", ""), challenge["nonce"]
    fields = {"username": user, "realm": realm, "nonce": nonce, "uri": target}
    first = digest(f"{user}:{realm}:{secret}")
    if algorithm.endswith("-SESS"):
        fields["cnonce"] = cnonce
        first = digest(f"{first}:{nonce}:{cnonce}")
    words, middle = "", nonce  # RFC 2069
    if "qop" in challenge:
        words, middle = f", qop=auth, nc={count:08x}", f"{nonce}:{count:08x}:{cnonce}:auth"
        fields["cnonce"] = cnonce
    fields["response"] = digest(f"{first}:{middle}:{digest(f'GET:{target}')}")
    if "opaque" in challenge:
        fields["opaque"] = challenge["opaque"]
    if "algorithm" in challenge:
        words += f", algorithm={challenge['algorithm']}"
    return "Digest " + ", ".join(f'{n}="{_escape_quotes(v)}"' for n, v in fields.items()) + words


def _escape_quotes(value: str) -> str:
    # The server's text goes into a header: it must not end a line.
    clean = re.sub(r"[^\x20-\x7e\x80-\xff]", "", value)
    return clean.replace("\\", "\\\\").replace('"', '\\"')
