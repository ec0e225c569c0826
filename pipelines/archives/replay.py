"""replay: serves what was crawled on this machine, to look at it and to crawl it again."""

import json
import ssl
from collections.abc import Sequence

from ...web.base.dataclass import dataclass
from ...web.base.errors import NothingToDo, UsageError
from ...web.base.options import option
from ...web.base.wording import format_count
from ...web.replay.replay_requests import time_of_digits
from ...web.urls.domains import suffix_and_domain
from ..base.command import DONE, Argument, Invocation
from ..base.loopback_server import LOOPBACK

ARGUMENTS = (
    Argument("archives", "Web tables, WARC files, packages (WACZ), or folders of them.", nargs="+"),
)
_MOST_DOMAINS = 5


@dataclass(frozen=True)
class Options:
    """Options of replay."""

    GROUP = "replay"

    port: int = option(0, "Port on loopback; 0 takes a free one.", minimum=0, maximum=65535)
    time: str = option(
        "",
        "Show the captures that are nearest to a time, 4 to 14 digits such as 20261128163000 (UTC), "
        "where a request names none; without it the newest.",
    )
    certificate: str = option(
        "",
        "PEM file with a private key and its certificate, for requests of https; without it they are "
        "refused.",
    )

    def __post_init__(self) -> None:
        try:
            _ = self.chosen_time
        except ValueError as error:
            raise ValueError(f"--time: {error}") from None

    @property
    def chosen_time(self) -> int | None:
        """The chosen time, UTC ms; None: the newest capture."""
        return time_of_digits(self.time) if self.time else None


def run(invocation: Invocation) -> int:
    """Serves until interrupted; prints the address, and how to crawl the archive again."""
    from .replay_archive import ReplayArchive  # late, so that --help is fast
    from .replay_serving import ReplayServer

    options, words = invocation.options, invocation.arguments["archives"]
    tls = replay_tls(options.certificate)
    archive = ReplayArchive(words, options.chosen_time)
    damages = dict(sorted((+archive.damages).items()))
    if not len(archive.index):
        reasons = (f"{name} {number:,}" for name, number in damages.items())
        raise NothingToDo(
            "; ".join([f"nothing to replay: {archive.name} has no captures", *reasons])
        )
    hosts = archive.index.hosts().get_column("host").to_list()
    with ReplayServer(archive, options.port, tls) as server:
        rules = connect_rules(hosts, server.port)
        if invocation.format == "json":
            record = {"port": server.port, "captures": len(archive.index), "connect_to": rules}
            print(json.dumps(record | ({"damages": damages} if damages else {})), flush=True)
        else:
            print(f"replay of {archive.name}: {format_count(len(archive.index), 'captures')}")
            for name, number in damages.items():
                print(f"{name} {number:,}")
            print(f"look at it: http://{LOOPBACK}:{server.port}/")
            print(f"proxy: http://{LOOPBACK}:{server.port}")
            words = " ".join(f"--connect_to '{rule}'" for rule in rules)
            print(
                f"crawl it with {words or f'--http_proxy http://{LOOPBACK}:{server.port}'}",
                flush=True,
            )
        server.serve_until_interrupted()
    return DONE


def connect_rules(hosts: Sequence[str], port: int) -> list[str]:
    """Returns values of ``--connect_to`` for the domains of hosts; none if there are many.

    >>> connect_rules(["a.example.com", "b.example.com", "localhost"], 8000)
    ['*.example.com::127.0.0.1:8000', 'localhost::127.0.0.1:8000']
    """
    rules = []
    for host in filter(None, hosts):
        suffix, domain = suffix_and_domain(host)
        rules.append(f"{f'*.{domain}' if suffix else host}::{LOOPBACK}:{port}")
    unique = list(dict.fromkeys(rules))
    return unique if len(unique) <= _MOST_DOMAINS else []


def replay_tls(path: str) -> ssl.SSLContext | None:
    """Returns the context of TLS with a certificate.

    Raises:
        UsageError: The file cannot be used.
    """
    if not path:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(path, password=lambda: "")
    except (OSError, ValueError) as error:  # SSLError is an OSError
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"--certificate must be a PEM file with a key and its certificate, got {path!r}: {reason}"
        ) from error
    return context
