"""A web of honest domains, and a link farm: domains without an end that link to one another.

Two comments on one honest domain lead to the farm. All names end in ``.test``, which has no public
suffix, so that each host is its own registered domain.
"""

import contextlib
import hashlib
import random

from web_servers import reply, serve

HONEST, PAGES, FARM, FARM_LINKS = 30, 40, 30, 20
SEEDS = [f"http://h{n}.test/" for n in range(3)]


def _links_of_honest(site, page):
    numbers = random.Random(f"{site} {page}")
    own = [f"/{number}" for number in (2 * page + 1, 2 * page + 2) if number < PAGES]
    others = [f"http://h{numbers.randrange(HONEST)}.test/" for _ in range(3)]
    spam = [f"http://f{n}.test/" for n in range(2)] if (site, page) == (0, 0) else []
    return [*own, *others, *spam]


def _links_of_farm(site, path):
    digest = hashlib.sha256(f"{site} {path}".encode()).hexdigest()
    own = [f"/{digest[:12]}-{n}" for n in range(FARM_LINKS)]
    return [*own, *(f"http://f{n}.test/{digest[:6]}" for n in range(FARM) if n != site)]


@contextlib.contextmanager
def farm_web():
    """Serves the web; the server's ``hosts`` are those of the pages that were requested."""
    hosts = []

    def respond(path, _):
        head = server.current.head
        host = next(
            line.split(":", 1)[1].strip()
            for line in head.split("\r\n")
            if line[:5].lower() == "host:"
        )
        if path == "/robots.txt":
            return reply(b"", "404 Not Found")
        hosts.append(host)
        site = int(host[1 : -len(".test")])
        if host.startswith("f"):
            links = _links_of_farm(site, path)
        else:
            links = _links_of_honest(site, int(path[1:] or 0))
        anchors = "".join(f'<a href="{link}">{link}</a>\n' for link in links)
        body = f"<title>{host}{path}</title>\n<p>{host} {path}</p>\n{anchors}"
        return reply(body.encode(), "200 OK", "Content-Type: text/html")

    with serve(respond) as server:
        server.hosts = hosts
        yield server


def connect_to(server):
    """Returns the options that lead to the server."""
    return ["--connect_to", f"*.test:80:127.0.0.1:{server.port}", "--server_delay", "0"]
