"""console: serves on this machine what runs on a table, while a crawl runs in another process."""

import dataclasses
import json

from ...policy.indexing.index_options import IndexWriterOptions
from ...web.base.options import option, shared_option
from ..base.command import DONE, TABLE, Invocation
from ..base.served_address import ServedAddress
from ..base.served_token import new_secret, read_secret
from ..searching import search
from ..views import explain
from .status import WatchOptions
from .table_watch import TableWatch

ARGUMENTS = (TABLE,)


@dataclasses.dataclass(frozen=True)
class Options(WatchOptions, explain.Options):
    """Options of console: those of status, of explain, and where it is served."""

    GROUP = "watching"

    port: int = option(
        0, "Port of the console; 0 takes a free one.", minimum=0, maximum=65535, group="watching"
    )
    host: str = option(
        "127.0.0.1",
        "IP address of this machine on which the console is served. If that is not loopback, requests "
        "need a token; with 0.0.0.0 and :: name the hosts in allowed_hosts.",
        group="watching",
    )
    allowed_hosts: tuple[str, ...] = option(
        (),
        "Names by which requests may call the console, such as that of a reverse proxy; without a port "
        "for any port. With one, requests need a token. Requests for other names are refused.",
        group="watching",
    )
    base_path: str = option(
        "/", "Path of the console, below which all its addresses are.", group="watching"
    )
    token_file: str = option(
        "",
        "File whose first line is the token that requests must have. Without it, a new token is made "
        "if other machines can ask, and printed with the address.",
        group="watching",
    )
    index: str = shared_option(IndexWriterOptions, "index")
    cache_folder: str = shared_option(search.Options, "cache_folder")


def run(invocation: Invocation) -> int:
    """Serves until interrupted; prints the address."""
    from .console_serving import ConsoleServer, SearchedIndex  # late, so that --help is fast

    options, table = invocation.options, str(invocation.table)
    address = ServedAddress(options.port, options.host, options.allowed_hosts, options.base_path)
    secret = read_secret(options.token_file) if options.token_file else ""
    if not secret and not address.is_local:
        secret = new_secret()
    watch = TableWatch(table, options.stale_after, options.most_counted)
    watch.look()  # a wrong address fails before anything is served
    index = SearchedIndex(table, options.index, options.cache_folder)
    with ConsoleServer(watch, address, options, index, secret) as server:
        url = f"http://{server.names[0]}{address.path}"
        shown_url = f"{url}?token={secret}" if secret and not options.token_file else url
        if invocation.format == "json":
            print(json.dumps({"url": url, "port": server.port, "token": bool(secret)}), flush=True)
        else:
            print(f"console: {shown_url}", flush=True)
        server.serve_until_interrupted()
    return DONE
