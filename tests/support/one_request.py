"""One request to a server of the test."""

from http_clients import Client, HttpOptions
from web_servers import connect_to, serve

URL = "http://a.example.com/"


def ask(answer, url=URL, headers=(), **options):
    """Returns the response to one request, and the server that gave it."""
    with serve(lambda path, connection: answer(connection)) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port), **options))
        return client.get(url, headers), server
