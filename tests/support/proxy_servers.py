"""Proxies of HTTP, as servers of their own."""

import contextlib
import socket
import threading

from http_clients import Client, HttpOptions
from web_servers import reply, serve

WHO = {"agent_name": "bot", "agent_email": "a@b"}


@contextlib.contextmanager
def proxied(answer=lambda path, connection: reply(b"through"), **options):
    """Yields (client, the proxy as a server); what is behind the proxy is the proxy's answer."""
    with serve(answer) as server:
        proxy = f"http://127.0.0.1:{server.port}"
        client = Client(HttpOptions(http_proxy=proxy, **WHO | options))
        yield client, server
        client.close()


def tunnel(port, status="200 Connected"):
    """Returns an answer that passes bytes between a CONNECT and a port."""

    def answer(path, connection):
        connection.sendall(f"HTTP/1.1 {status}\r\n\r\n".encode())
        if not status.startswith("200"):
            return
        with socket.create_connection(("127.0.0.1", port)) as there:
            back = threading.Thread(target=_pass, args=(there, connection), daemon=True)
            back.start()
            _pass(connection, there)
            back.join(5)

    return answer


def _pass(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
