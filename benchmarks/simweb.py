"""Pages/s of the simulated web, asked over raw sockets by a few threads.

``python benchmarks/simweb.py [PROCESSES]`` prints the first pass, when each page must be rendered
(what a crawl sees: it asks for each page once), and a second one over the same pages. With several
processes the second renders again what another process had: each keeps its own, and the kernel
deals connections, of which there are few here, unevenly. The client takes its share of the time.
"""

import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from nutbeam.web.simweb.server import SimWeb

CONNECTIONS = 4


def fetch(port: int, urls: list[str]) -> int:
    """Asks for URLs one after another on one connection; returns the bytes received."""
    size = 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for url in urls:
            _, _, host, target = url.split("/", 3)
            connection.sendall(f"GET /{target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            data = connection.recv(1 << 20)
            head, _, body = data.partition(b"\r\n\r\n")
            length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
            while len(body) < length:
                body += connection.recv(1 << 20)
            size += length
    return size


def measure(server: SimWeb, urls: list[str], passes: str) -> None:
    """Fetches all URLs and prints how fast that went."""
    start = time.perf_counter()
    shares = [urls[share::CONNECTIONS] for share in range(CONNECTIONS)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        size = sum(pool.map(fetch, [server.port] * CONNECTIONS, shares))
    seconds = time.perf_counter() - start
    print(f"{passes}: {len(urls) / seconds:,.0f} pages/s of {size // len(urls):,} bytes")


def main() -> None:
    """Measures 4,000 pages twice."""
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with SimWeb(hosts=20, pages=200, crawl_delay=0, processes=processes) as server:
        urls = sorted(map(server.site.plan.url, server.site.plan.all_pages()))
        measure(server, urls, "first pass ")
        measure(server, urls, "second pass")


if __name__ == "__main__":
    main()
