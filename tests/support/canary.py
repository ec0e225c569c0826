"""A server on private addresses that nobody may reach, and the spellings that may lead there."""
# ruff: noqa: RUF001 - that characters look like others is the point

import contextlib
import socket
import threading

import private_spellings

ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.255.255.254", "::1")

# No network has routed 3ffe::/16 since 2006 (RFC 3701): public by its number, and nobody is there.
NOBODY = "3ffe::1"

# Names, and what a lookup says each time it is asked; the last answer is repeated.
NAMES = {
    "inside.test": [["127.0.0.1"]],
    "inside-six.test": [["::1"]],
    "mapped.test": [["::ffff:127.0.0.1"]],
    "nat64.test": [["64:ff9b::7f00:1"]],
    "six-to-four.test": [["2002:7f00:1::"]],
    "zone.test": [["fe80::1%1"]],
    "metadata.test": [["169.254.169.254"]],
    "none.test": [["0.0.0.0"]],
    "mixed.test": [[NOBODY, "127.0.0.1"]],
    "mixed-too.test": [["127.0.0.1", "::1", NOBODY]],
    "rebinds.test": [[NOBODY], ["127.0.0.1"]],
    "rebinds-later.test": [[NOBODY], [NOBODY], [NOBODY], ["127.0.0.1"]],
    "rebinds-mixed.test": [[NOBODY], [NOBODY, "127.0.0.1"]],
    "rebinds-six.test": [[NOBODY], ["::1"]],
    "localhost": [["127.0.0.1", "::1"]],
    "app.localhost": [["127.0.0.1"]],
    "ip6-localhost": [["::1"]],
}

# Hosts as a URL may spell them. The first ones do lead to loopback where that is allowed.
LEADING = (
    *("127.0.0.1", "127.0.0.2", "127.255.255.254", "127.1", "127.0.1", "2130706433"),
    *("0x7f000001", "0X7F000001", "0x7f.1", "0x7f.0x0.0x0.0x1", "0x7F.0X0.0X0.0X1"),
    *("0177.0.0.1", "0177.0x0.0.1", "017700000001", "00000177.0.0.1", "127.0.0.1."),
    *("2130706433.", "127.1.", "１２７.0.0.1", "１２７．０．０．１", "127。0。0。1"),
    *("①②⑦.⓪.⓪.①", "0ｘ7f.1", "%31%32%37.0.0.1", "127%2e0%2E0%2e1", "%30%78%37%66.1"),
    *("localhost", "LOCALHOST", "localhost.", "ｌｏｃａｌｈｏｓｔ", "%6cocalhost", "loc\u00adalhost"),
    *("app.localhost", "user@127.0.0.1", "user:pass@127.1", "www.example.com@127.0.0.1"),
    *("www.example.com:80@127.0.0.1", "www.example.com%2f@127.0.0.1", "a@b@127.0.0.1"),
    *("[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "user@[::1]"),
    *("[::ffff:127.0.0.1]", "[::FFFF:7F00:1]", "[0:0:0:0:0:ffff:7f00:0001]"),
    *("inside.test", "INSIDE.TEST", "inside.test.", "inside-six.test", "mapped.test"),
)  # fmt: skip
OTHERS = (
    *("0", "00", "0x0", "0.0.0.0", "[::]", "[::127.0.0.1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]"),
    *("[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]"),
    *("[2002:7f00:0001::1]", "[2001:0:0:0:0:0:80ff:fffe]", "[2001:0:7f00:1::]", "[fe80::1]"),
    *("[::1%25lo]", "[fe80::1%25lo]", "[::1%lo]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]"),
    *("10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "192.0.0.8", "198.18.0.1"),
    *("169.254.169.254", "0xA9FEA9FE", "2852039166", "224.0.0.1", "255.255.255.255"),
    *("127.0.0.1%00.example.com", "127.0.0.1%20", "256.0.0.1", "127.0.0.0.1", "0x7f.1.test"),
    *(name for name in NAMES if not name.startswith(("inside", "mapped", "localhost", "app"))),
)
HOSTS = (*LEADING, *OTHERS)
# More ways to write more than a host stand in ``private_spellings``.
# Ways to write more than a host.
WHOLE = (
    *("http:{at}", "http:/{at}", "http:///{at}", "http:\\\\{at}", "HtTp://{at}", "http://{at}\\@a.test"),
    *("https://{at}", "file://{at}", "gopher://{at}", "ftp://{at}", "dict://{at}", "ws://{at}"),
    *("http://127.0.0.1:22", "http://127.0.0.1:6379", "http://127.0.0.1:0"),
)  # fmt: skip


PRIVATE = {name.lower().rstrip(".") for name in private_spellings.NAMES}
INSIDE = [["127.0.0.1", "::1"]]


def spellings(port):
    """Returns the URLs, each without a path, that may lead to a port on loopback."""
    urls = [f"http://{host}:{port}" for host in HOSTS]
    return urls + [url.format(at=f"127.0.0.1:{port}") for url in WHOLE]


def lookup():
    """Returns what stands for ``getaddrinfo``: it knows ``NAMES``, and asks nobody else."""
    asked = {}

    def find(host, port, **wanted):
        name = host.lower().rstrip(".")
        answers = NAMES.get(name, INSIDE if name in PRIVATE else None)
        if answers is None:
            return socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST, **wanted)
        asked[name] = asked.get(name, -1) + 1
        return [
            (family, socket.SOCK_STREAM, 6, "", address)
            for text in answers[min(asked[name], len(answers) - 1)]
            for family, address in [_socket_address(text)]
        ]

    return find


def _socket_address(text):
    if ":" in text:
        return socket.AF_INET6, (text.partition("%")[0], 0, 0, 1 if "%" in text else 0)
    return socket.AF_INET, (text, 0)


class Canary:
    """Listens on loopback addresses, all at one port; used as a context.

    Attributes:
        port: The port.
        connections: How many were made.
        paths: What was asked for.
    """

    def __enter__(self):
        self.connections, self.paths, self._sockets = 0, [], []
        self.port = 0
        for address in ADDRESSES:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            try:
                listening = socket.create_server((address, self.port), family=family, backlog=200)
            except OSError:  # a machine without IPv6, or with one loopback address
                continue
            self.port = listening.getsockname()[1]
            self._sockets.append(listening)
            threading.Thread(target=self._accept, args=(listening,), daemon=True).start()
        return self

    def __exit__(self, *_):
        for listening in self._sockets:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()

    def _accept(self, listening):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                self.connections += 1
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with contextlib.suppress(OSError, IndexError), connection:
            head = connection.recv(65_536).decode("latin-1")
            self.paths.append(head.split(" ")[1])
            status = "404 Not Found" if "/robots.txt " in head else "200 OK"
            connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 6\r\n\r\nsecret".encode())
