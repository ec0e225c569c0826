"""One request to a server of the test."""

from http_clients import Client, HttpOptions
from web_servers import doors, serve

URL = "http://a.example.com/"


def ask(answer, url=URL, headers=(), **options):
    """Returns the response to one request, and the server that gave it."""
    with serve(lambda path, connection: answer(connection)) as server:
        client = Client(HttpOptions(connect_to=doors(server.port), **options))
        return client.get(url, headers), server
