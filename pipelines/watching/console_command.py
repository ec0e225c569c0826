"""console: serves on this machine what runs on a table, while a crawl runs in another process."""

import json

from ...policy.indexing.index_options import IndexWriterOptions
from ...web.base.dataclass import dataclass
from ...web.base.options import option, shared_option
from ..base.command import DONE, TABLE, Invocation
from ..base.served_address import ServedAddress, ServedOptions
from ..base.served_token import new_secret, read_secret
from ..searching import search
from ..views import explain
from .status import WatchOptions
from .table_watch import TableWatch

ARGUMENTS = (TABLE,)


@dataclass(frozen=True)
class Options(WatchOptions, ServedOptions, explain.Options):
    """Options of console: those of status, of explain, and where it is served."""

    GROUP = "watching"

    token_file: str = option(
        "",
        "File whose first line is the token that requests must have. Without it, a new token is made "
        "if --host is not loopback or --allowed_hosts names a host, and printed with the address.",
        group="watching",
    )
    index: str = shared_option(IndexWriterOptions, "index")
    cache_folder: str = shared_option(search.Options, "cache_folder")


def run(invocation: Invocation) -> int:
    """Serves until interrupted; prints the addresses."""
    from .console_serving import ConsoleServer, SearchedIndex  # late, so that --help is fast

    options, table = invocation.options, str(invocation.table)
    address = ServedAddress(options.port, options.host, options.allowed_hosts, options.base_path)
    secret = read_secret(options.token_file) if options.token_file else ""
    if not secret and not address.is_local:
        secret = new_secret()
    watch = TableWatch(table, options.stale_after, options.most_counted, options.least_free)
    watch.look()  # a wrong address fails before anything is served
    index = SearchedIndex(table, options.index, options.cache_folder)
    with ConsoleServer(watch, address, options, index, secret) as server:
        query = f"?token={secret}" if secret and not options.token_file else ""
        if invocation.format == "json":
            record = {"url": server.urls[0], "port": server.port, "token": bool(secret)}
            print(json.dumps(record), flush=True)
        else:
            print("\n".join(f"console: {url}{query}" for url in server.urls), flush=True)
        server.serve_until_interrupted()
    return DONE
