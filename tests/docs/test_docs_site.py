"""A crawl of a real site finds what an independent walk finds.

The walk knows nothing of nutbeam: BeautifulSoup and urllib, one level of links
after the other. What it has in common with the crawl is written out below.
"""

import json
import multiprocessing
import re
import subprocess
import sys
import urllib.error
import urllib.request
from urllib.parse import urldefrag, urljoin, urlsplit

import docs_site
import pytest
from bs4 import BeautifulSoup, SoupStrainer

PROCESSES = 2
# What the default URL filter takes for no text, as far as this site has it.
REFUSED = re.compile(
    r"\.(css|js|map|png|jpe?g|gif|svgz?|ico|woff2?|ttf|eot|gz|bz2|xz|zip|tar|tgz|deb|exe|msi)(\?|$)",
    re.IGNORECASE,
)
LINKS = {"a": "href", "area": "href", "link": "href", "img": "src", "script": "src",
         "iframe": "src", "frame": "src", "source": "src"}  # fmt: skip
READ = SoupStrainer([*LINKS, "base", "meta"])


class _KeepRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


def visit(url, port):
    """Returns a URL's HTTP status and the URLs that it leads to."""
    path = url.removeprefix(f"http://{docs_site.HOST}")
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Host": docs_site.HOST}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _KeepRedirects)
    try:
        with opener.open(request, timeout=30) as answer:
            html = answer.headers.get_content_type() == "text/html"
            return 200, set(links_of(url, answer.read())) if html else set()
    except urllib.error.HTTPError as error:
        location = error.headers.get("Location")
        return error.code, set(followed(url, [location] if location else []))


def links_of(url, body):
    soup = BeautifulSoup(body.decode("utf-8", "replace"), "html.parser", parse_only=READ)
    metas = {(m.get("name") or "").lower(): m.get("content", "") for m in soup.find_all("meta")}
    if "nofollow" in metas.get("robots", "").lower():
        return ()
    base = soup.find("base", href=True)
    found = [
        tag.get(LINKS[tag.name])
        for tag in soup.find_all(list(LINKS))
        if "nofollow" not in (tag.get("rel") or ())
    ]
    return followed(urljoin(url, base["href"]) if base else url, filter(None, found))


def followed(base, hrefs):
    for href in hrefs:
        try:
            target = urldefrag(urljoin(base, href.strip())).url
            parts = urlsplit(target)
        except ValueError:
            continue
        if parts.scheme == "http" and parts.netloc == docs_site.HOST and not REFUSED.search(target):
            yield target


def walk(port):
    """Returns the URLs that answer 200, level by level from the front page."""
    fetched, seen = set(), set()
    level = {f"http://{docs_site.HOST}/"}
    # Spawned: the process of the tests may have threads, which a fork does not survive.
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        while level:
            seen |= level
            urls = sorted(level)
            level = set()
            answers = pool.starmap(visit, [(url, port) for url in urls], chunksize=4)
            for url, (status, targets) in zip(urls, answers, strict=True):
                fetched |= {url} if status == 200 else set()
                level |= targets - seen
    return fetched


def crawl(site, table):
    """Crawls the site until nothing is due; returns the URLs that were fetched."""
    options = ["--rounds=-1", "--scope=host", "--max_outlinks=-1", "--content_limit=-1",
               "--server_delay=0", "--threads_per_host=16",
               f"--connect_to={site.connect_to}"]  # fmt: skip
    nutbeam("crawl", table, f"http://{docs_site.HOST}/", *options)
    rows = [json.loads(line) for line in nutbeam("readdb", table, "--dump=-").splitlines()]
    # A duplicate was fetched before it was found to be one.
    return {row["url"] for row in rows if row["status"] in ("db_fetched", "db_duplicate")}


def nutbeam(*words):
    command = [sys.executable, "-m", "nutbeam", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(bool(docs_site.missing()), reason=docs_site.missing() or "all is there")
@pytest.mark.long
def test_the_crawl_fetches_the_pages_that_an_independent_walk_finds(tmp_path):
    with docs_site.DocsSite() as site:
        found = crawl(site, tmp_path / "table")
        expected = walk(site.port)
    assert len(expected) > 1_000
    assert (sorted(found - expected), sorted(expected - found)) == ([], [])
