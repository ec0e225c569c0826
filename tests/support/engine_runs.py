"""Runs of the fetch engine against a server of the test."""

from http_clients import Client, HttpOptions
from web_servers import connect_to, reply, serve

from nutbeam.web.engine.engine import Engine, FetchOptions, Task

A = "http://a.example.com"


def run(answer, tasks, known=None, http=None, **options):
    """Returns the results by path, the engine and the server of one run."""

    def robots_first(path, connection):
        given = answer(path, connection)
        if given is None and path == "/robots.txt":
            return reply(b"", "404 Not Found")
        return given

    with serve(robots_first) as server:
        options = {"server_delay": 0.0, "exceptions_delay": 0.0} | options
        client = Client(HttpOptions(**{"connect_to": connect_to(server.port)} | (http or {})))
        engine = Engine(FetchOptions(**options), client, known)
        results = list(engine.run(Task(task) if isinstance(task, str) else task for task in tasks))
        client.close()
    return results, engine, server


def pages(path, _):
    return None if path == "/robots.txt" else reply(path.encode())


def urls(count, host=A):
    return [f"{host}/{number}" for number in range(count)]


def gaps(server):
    """Seconds from the end of each request to the next one, seen from the server."""
    starts = [moment for _, _, moment in server.requests]
    return [start - end for end, start in zip(server.ends, starts[1:], strict=False)]


def pages_or_404(path, connection):
    return pages(path, connection) or reply(b"", "404 Not Found")
