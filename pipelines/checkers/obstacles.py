"""Finds options that a crawl of given seeds needs, before anything runs."""

import itertools
import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from ...io.storage.place_addresses import is_place
from ...web.base.agent import missing_agent
from ...web.base.errors import UsageError
from ...web.base.json_logs import without_login
from ...web.exchange.http_options import HttpOptions, guard_of
from ...web.network.guard import Denied, Guard, is_public, parse_ip
from ..base.command import Invocation, configuration
from .reasons import address_block

_PORTS = {"http": 80, "https": 443, "ftp": 21}


def is_local(seed: str) -> bool:
    """Returns whether a seed is a file: URL."""
    return seed.lower().startswith("file:")


def check_obstacles(invocation: Invocation, seeds: Sequence[str]) -> None:
    """Checks that the options let a crawl request at least one of its seeds.

    Names are not resolved: only addresses in URLs, and localhost, are known before a crawl.

    Args:
        invocation: The crawl.
        seeds: The seeds as typed; files of seeds are not read.

    Raises:
        UsageError: No seed can be requested. The message has all options that are missing, in a
            command that works.
    """
    options: HttpOptions = invocation.options
    if not seeds or any(map(is_place, seeds)):
        return
    with configuration():
        guard = guard_of(options)
    needs_by_seed = [_needs(seed, options, guard) for seed in seeds]
    if not all(needs_by_seed):
        return
    reasons = list(dict.fromkeys(reason for needs in needs_by_seed for _, reason, _ in needs))
    flags: dict[str, dict[str, Any]] = {}
    for name, _, value in (need for needs in needs_by_seed for need in needs):
        old = getattr(options, name)
        flags.setdefault(name, dict.fromkeys(map(str, old))).setdefault(value)
    words = [f"--{name} {_join_values(values)}" for name, values in flags.items()]
    web = [seed for seed in seeds if not is_local(seed)]
    own = "allow_addresses" in flags or options.allow_addresses or options.connect_to
    missing = missing_agent(options) if web and not own else None
    if missing is not None:
        reasons.append("sites must be able to tell who crawls them")
        words.append(missing.replace(" and ", " ").partition(" or ")[0])
    others = [[f"--{n}", text] for n, texts in invocation.typed.items() if n not in flags
              for text in texts]  # fmt: skip
    typed = ["nutbeam", "crawl", str(invocation.table), *seeds, *itertools.chain(*others)]
    what = without_login(seeds[0]) if len(seeds) == 1 else "none of the seeds"
    can = "cannot" if len(seeds) == 1 else "can"
    raise UsageError(
        f"{what} {can} be crawled: {'; '.join(reasons)}; this works: "
        f"{without_login(shlex.join(typed))} {' '.join(words)}"
    )


def _join_values(values: Mapping[str, Any]) -> str:
    return shlex.quote(",".join(values))


def _needs(seed: str, options: HttpOptions, guard: Guard) -> list[tuple[str, str, str]]:
    """Returns (option, reason, value to add) of each obstacle of a seed."""
    try:
        parts = urlsplit(seed)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError:
        return []  # inject has the reason
    needs = []
    if scheme not in options.schemes and scheme in ("file", *_PORTS):
        needs.append(("schemes", f"the scheme {scheme} is not allowed", scheme))
    if is_local(seed):
        if not options.file_roots:
            folder = unquote(parts.path).rpartition("/")[0] or "/"
            needs.append(("file_roots", "no folder may be read", folder))
        return needs
    own = _PORTS.get(scheme, 0)
    if not host or options.http_proxy or guard.connect_to(host, port or own) is not None:
        return needs
    block = address_block(host)
    if block != "CIDR" and not _passes(host, guard):
        needs.append(("allow_addresses", f"the address of {host} is private or special", block))
    try:
        guard.check_port(port or own)
    except Denied:
        needs.append(("allowed_ports", f"the port {port or own} is not allowed", str(port or own)))
    return needs


def _passes(host: str, guard: Guard) -> bool:
    """Returns whether the guard lets an address, or localhost, pass."""
    addresses = [host] if parse_ip(host) else ["127.0.0.1", "::1"]
    return any(guard.allows(address) or is_public(address) for address in addresses)
