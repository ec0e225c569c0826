"""Addresses of tables in Bigtable: ``bigtable://PROJECT/INSTANCE/TABLE[?app_profile=NAME]``.

This module does not import Google's libraries, so a mistyped address fails at once.
"""

import dataclasses
import os
import re
from collections.abc import Mapping

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError

_SCHEME = "bigtable://"
EMULATOR = "BIGTABLE_EMULATOR_HOST"
_USAGE = "bigtable://PROJECT/INSTANCE/TABLE"
# Names that Google Cloud accepts; a project may belong to a domain (example.com:name).
_PARTS = {
    "project": (r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]", "6 to 30 of a-z, 0-9 and -"),
    "instance": (r"[a-z][a-z0-9-]{4,31}[a-z0-9]", "6 to 33 of a-z, 0-9 and -"),
    "table": (r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,49}", "1 to 50 of letters, digits, _, . and -"),
}
_PARAMETERS = {
    "app_profile": (r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,49}", "letters, digits, _, . and -"),
    "emulator": (r"[A-Za-z0-9.\[\]:-]+:[0-9]{1,5}", "HOST:PORT"),
}


@dataclass(frozen=True)
class BigtableAddress:
    """The address of a table in Bigtable.

    Attributes:
        project: Id of the project of Google Cloud.
        instance: Id of the instance in the project.
        table: Id of the table in the instance.
        app_profile: Application profile of the requests; empty for the instance's default.
        emulator: Address of an emulator (HOST:PORT); empty for Google's Bigtable.
    """

    project: str
    instance: str
    table: str
    app_profile: str = ""
    emulator: str = ""

    @property
    def instance_name(self) -> str:
        return f"projects/{self.project}/instances/{self.instance}"

    @property
    def name(self) -> str:
        """The table's name in Bigtable's own interfaces."""
        return f"{self.instance_name}/tables/{self.table}"

    def __str__(self) -> str:
        parameters = [(n, getattr(self, n)) for n in _PARAMETERS if getattr(self, n)]
        query = "&".join(f"{name}={value}" for name, value in parameters)
        address = f"{_SCHEME}{self.project}/{self.instance}/{self.table}"
        return f"{address}?{query}" if query else address


def is_bigtable(address: str) -> bool:
    """Returns whether an address begins as those of Bigtable; it may be malformed."""
    return address.startswith(_SCHEME)


def parse_address(text: str, environ: Mapping[str, str] | None = None) -> BigtableAddress:
    """Parses an address.

    Args:
        text: The address.
        environ: Environment variables; None means those of this process. Only
            ``BIGTABLE_EMULATOR_HOST`` is used. ``str`` of the result contains the
            emulator's address, so workers with other variables find it, too.

    Raises:
        UsageError: The address is malformed; the message quotes it.

    >>> parse_address("bigtable://my-project/my-instance/crawl?app_profile=batch", {}).name
    'projects/my-project/instances/my-instance/tables/crawl'
    >>> str(parse_address("bigtable://my-project/my-instance/crawl", {EMULATOR: "localhost:1"}))
    'bigtable://my-project/my-instance/crawl?emulator=localhost:1'
    """
    path, mark, query = text.removeprefix(_SCHEME).partition("?")
    names = path.split("/")
    if not is_bigtable(text) or len(names) != len(_PARTS):
        raise UsageError(f"the table must be {_USAGE}, got {text!r}")
    values = dict(zip(_PARTS, names, strict=True))
    values |= _parameters(query, text) if mark else {}
    for name, (pattern, expected) in (_PARTS | _PARAMETERS).items():
        if name in values and not re.fullmatch(pattern, values[name]):
            word = name.replace("app_profile", "application profile")
            raise UsageError(f"the {word} must be {expected}, got {values[name]!r} in {text!r}")
    address = BigtableAddress(**values)
    emulator = (os.environ if environ is None else environ).get(EMULATOR, "")
    if address.emulator or not emulator:
        return address
    if not re.fullmatch(_PARAMETERS["emulator"][0], emulator):
        raise UsageError(f"{EMULATOR} must be HOST:PORT, got {emulator!r}")
    return dataclasses.replace(address, emulator=emulator)


def _parameters(query: str, text: str) -> dict[str, str]:
    pairs = [part.partition("=")[::2] for part in query.split("&")]
    names = [name for name, _ in pairs]
    for name in names:
        if name not in _PARAMETERS or names.count(name) > 1:
            allowed = " and ".join(_PARAMETERS)
            raise UsageError(f"after ? only {allowed} may be given, once each, got {text!r}")
    return dict(pairs)
