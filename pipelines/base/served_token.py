"""A secret that requests to a server must have, if other machines can reach it."""

import hmac
import secrets
from collections.abc import Mapping
from email.message import Message
from pathlib import Path

from ...web.base.errors import UsageError
from ...web.base.wording import quote_value

_LEAST, _MOST = 16, 500  # characters


class ServedToken:
    """A secret, in a cookie of a browser or in the header Authorization of a program.

    Args:
        secret: The secret.
        name: Name of the cookie; servers on other ports of a machine get the same cookies.
    """

    def __init__(self, secret: str, name: str) -> None:
        self.secret, self._name = secret, name

    def is_secret(self, value: str) -> bool:
        """Returns whether a value is the secret; takes the same time for each wrong one."""
        return hmac.compare_digest(value.encode("utf-8", "replace"), self.secret.encode())

    def is_in(self, headers: Mapping[str, str] | Message) -> bool:
        """Returns whether the headers of a request have the secret.

        >>> token = ServedToken("s" * 16, "console")
        >>> [token.is_in(one) for one in ({"Cookie": f"a=b; console={'s' * 16}"}, {"Cookie": "x"})]
        [True, False]
        """
        kind, _, value = (headers.get("Authorization") or "").partition(" ")
        if kind.lower() == "bearer" and self.is_secret(value.strip()):
            return True
        cookies = (one.strip().partition("=") for one in (headers.get("Cookie") or "").split(";"))
        return any(name == self._name and self.is_secret(value) for name, _, value in cookies)

    def cookie(self, path: str) -> str:
        """Returns the value of Set-Cookie.

        Args:
            path: Path of the server.
        """
        return f"{self._name}={self.secret}; Path={path}; HttpOnly; SameSite=Strict"


def new_secret() -> str:
    """Returns a secret that nobody guesses."""
    return secrets.token_urlsafe(24)


def read_secret(path: str) -> str:
    """Returns the secret in the first line of a file.

    Raises:
        UsageError: The file cannot be read, or its first line is no secret.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            line = file.readline(_MOST + 2).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(f"--token_file cannot be read: {quote_value(path)}: {reason}") from error
    if not _LEAST <= len(line) <= _MOST or not line.isascii() or set(line) & set(' ;,"\\'):
        raise UsageError(
            f"the first line of --token_file must have {_LEAST} to {_MOST} letters, digits or signs "
            f"without spaces, quotes, commas and semicolons: {quote_value(path)}"
        )
    return line
