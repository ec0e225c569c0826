"""What another client sees: curl and ours ask the simulated web for the same URLs."""

import re
import shutil
import subprocess

import pytest
from http_clients import Client, HttpOptions
from simulated_web import served_web

from nutbeam.web.network.body import ACCEPTED

pytestmark = pytest.mark.usefixtures("each_client")
CURL = shutil.which("curl")


web = served_web(hosts=5, pages=20, scope="module")


def urls_of(site):
    """Returns 50 URLs of all kinds: pages, redirects, errors, robots.txt, what is not there."""
    kinds = {}
    for url in sorted(site.urls()):
        kinds.setdefault(site.expected(url), []).append(url)
    more = [
        f"{seed}{path}" for seed in site.seeds for path in ("robots.txt", "no-such-page?a=%20b")
    ]
    chosen = [url for urls in kinds.values() for url in urls[:8]] + more
    rest = [url for url in sorted(site.urls()) if url not in chosen]
    return (chosen + rest)[:50]


def ask_curl(web, url, head, folder):
    """Returns (status line, headers, decoded body) as curl sees them."""
    words = [CURL, "--disable", "--silent", "--verbose", "--noproxy", "*", "--max-time", "20"]
    words += ["--compressed", "--connect-to", f"::127.0.0.1:{web.port}"]
    for name, value in re.findall(r"\r\n([A-Za-z-]+): ([^\r]*)", head):
        words += [] if name == "Host" else ["--header", f"{name}: {value}"]
    body = folder / "body"
    body.write_bytes(b"")
    done = subprocess.run(
        [*words, "--output", str(body), url], stderr=subprocess.PIPE, timeout=30, check=True
    )
    lines = [line[2:] for line in done.stderr.decode("latin-1").splitlines() if line[:2] == "< "]
    lines = [line for line in lines if line.strip()]
    headers = [tuple(re.split(r":[ \t]*", line, maxsplit=1)) for line in lines[1:]]
    return lines[0], headers, body.read_bytes()


@pytest.mark.skipif(CURL is None, reason="there is no curl")
def test_curl_sees_the_same(web, tmp_path):
    client = Client(HttpOptions(connect_to=web.connect_to))
    urls = urls_of(web.site)
    statuses = set()
    for url in urls:
        response = client.get(url)
        status_line, headers, body = ask_curl(web, url, response.request, tmp_path)
        assert response.error is None, url
        # curl shows an empty reason phrase with a space, or without.
        assert response.status_line.rstrip() == status_line.rstrip(), url
        assert [h for h in response.headers if h[0] != "Date"] == [
            h for h in headers if h[0] != "Date"
        ], url
        assert response.body == body, url
        statuses.add(response.status)
    assert len(urls) == 50
    assert {200, 301, 404} <= statuses
    assert ACCEPTED in client.get(urls[0]).request
