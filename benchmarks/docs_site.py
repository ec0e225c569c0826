"""A whole crawl of a real site against Scrapy extracting the same.

``python benchmarks/docs_site.py [--small]``. The documentation site (about 1,700 pages, nginx on
loopback): all phases, all rounds, no delay, as fresh processes from start to end, against a Scrapy
spider that takes title, text and links with css selectors, 16 requests at a time, and writes JSON
lines. Pages are those that each has fetched and extracted. Budget: 5 times Scrapy's pages/s; aim: 10.

Then: where our time goes by phase, and what a round costs that has one page to fetch (a chain of
pages, crawled 12 rounds deep and 2: a tenth of the difference). Budget: 0.5 s.

``--small`` crawls the Debian Reference only, about 20 pages: too few for the ratio to mean a thing.
"""

import contextlib
import dataclasses
import functools
import http.server
import io
import json
import pathlib
import sys
import tempfile
import threading

import measure

CHAIN_ROUNDS = (2, 12)


def ours(door: str, seed: str, table: str) -> measure.Figures:
    """Crawls until nothing is due; the result is the summary."""
    figures = measure.command(
        "crawl", table, seed, f"--connect_to={door}", "--rounds=-1", "--scope=host",
        "--max_outlinks=-1", "--content_limit=-1", "--server_delay=0",
        "--threads_per_host=16", "--progress=false", "--format=json",
    )  # fmt: skip
    return dataclasses.replace(figures, result=json.loads(figures.result))


def export(table: str, output: str) -> measure.Figures:
    """Writes what the crawl found as JSON lines, as Scrapy does."""
    return measure.command("pages", table, "-o", output)


def scrapy(seed: str, output: str) -> None:
    """Crawls the same with Scrapy."""
    from scrapy.crawler import CrawlerProcess

    settings = {
        "CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16, "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False, "DEPTH_LIMIT": 0, "ROBOTSTXT_OBEY": True,
        "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False,
        "FEEDS": {output: {"format": "jsonlines"}},
    }  # fmt: skip
    process = CrawlerProcess(settings)
    process.crawl(_spider(), start_urls=[seed])
    process.start()


def _spider() -> type:
    from scrapy import Request, Spider
    from scrapy.http import HtmlResponse

    class Documentation(Spider):
        name = "documentation"

        def parse(self, response):  # type: ignore[no-untyped-def]
            if not isinstance(response, HtmlResponse):
                return
            links = []
            for href in response.css("a::attr(href)").getall():
                with contextlib.suppress(ValueError):
                    links.append(response.urljoin(href.strip()))
            texts = (text.strip() for text in response.css("body *::text").getall())
            yield {
                "url": response.url,
                "title": response.css("title::text").get(),
                "text": " ".join(text for text in texts if text),
                "links": links,
            }
            site = response.urljoin("/")
            for link in links:
                # What our default filter refuses is not asked for here either.
                if link.startswith(site) and not link.endswith((".gz", ".png", ".zip")):
                    yield Request(link, callback=self.parse)

    return Documentation


def chain(door: str, table: str, rounds: int) -> None:
    """Crawls a chain of pages; each round finds one."""
    with contextlib.redirect_stdout(io.StringIO()):
        measure.nutbeam(
            "crawl", table, "http://chain.example.com/0", f"--connect_to={door}",
            f"--rounds={rounds}", "--server_delay=0", "--progress=false",
        )  # fmt: skip


class _Chain(http.server.BaseHTTPRequestHandler):
    """Page 7 links to page 8."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.path.strip("/")
        page = name.isdigit()
        following = int(name) + 1 if page else 0
        body = f"<title>{name}</title><a href=/{following}>on</a>".encode() if page else b""
        self.send_response(200 if page else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def crawls(folder: pathlib.Path, path: str, repeats: int) -> None:
    """Compares whole crawls, and shows where our time goes."""
    helper = measure.docs_site_helper()
    found: dict[str, list[measure.Figures]] = {"nutbeam": [], "scrapy": [], "export": []}
    with helper.DocsSite() as site:
        for at in range(repeats):
            table = str(folder / f"table-{at}")
            found["nutbeam"].append(ours(site.connect_to, f"http://{helper.HOST}{path}", table))
            found["export"].append(export(table, str(folder / f"ours-{at}.jsonl")))
            if at % 2 == 0:  # it takes long, and varies little
                seed = f"http://127.0.0.1:{site.port}{path}"
                lines = str(folder / f"scrapy-{at}.jsonl")
                found["scrapy"].append(measure.fresh("docs_site", "scrapy", seed, lines))
    _show(folder, found)


def _show(folder: pathlib.Path, found: dict[str, list[measure.Figures]]) -> None:
    seconds = {name: measure.median(figures, "process") for name, figures in found.items()}
    cpu = {name: measure.median(figures, "cpu") for name, figures in found.items()}
    crawl = sorted(found["nutbeam"], key=lambda figures: figures.process)[
        len(found["nutbeam"]) // 2
    ]
    ours_urls, theirs_urls = _urls(folder / "ours-0.jsonl"), _urls(folder / "scrapy-0.jsonl")
    pages, theirs = len(ours_urls), len(theirs_urls)
    base = theirs / seconds["scrapy"]
    both = seconds["nutbeam"] + seconds["export"]
    rows = [
        ("nutbeam crawl", pages, seconds["nutbeam"], cpu["nutbeam"],
         pages / seconds["nutbeam"], pages / seconds["nutbeam"] / base),
        ("and nutbeam pages -o x.jsonl", pages, both, cpu["nutbeam"] + cpu["export"],
         pages / both, pages / both / base),
        ("Scrapy", theirs, seconds["scrapy"], cpu["scrapy"], base, 1.0),
    ]  # fmt: skip
    heads = ("fresh process", "pages", "seconds", "CPU s", "pages/s", "x Scrapy")
    title = f"whole crawl, median of {len(found['nutbeam'])} (nutbeam) and {len(found['scrapy'])} (Scrapy); "
    measure.table(title + "budget: 5 x, aim: 10 x", heads, rows)
    only = [len(ours_urls - theirs_urls), len(theirs_urls - ours_urls)]
    print(f"  pages that only one of them has: {only[0]} ours, {only[1]} Scrapy's")
    phases = [
        (name, f"{phase['done']:,} {phase['unit']}", phase["seconds"])
        for name, phase in crawl.result["phases"].items()
    ]
    spent = sum(seconds for _, _, seconds in phases)
    phases.append(("start, end, between phases", "", crawl.process - spent))
    title = f"our seconds by phase, {crawl.result['rounds']} rounds, {crawl.process:.2f} s in all"
    measure.table(title, ("phase", "done", "seconds"), phases)


def _urls(lines: pathlib.Path) -> set[str]:
    """Returns the paths of the pages that have a text."""
    with lines.open() as file:
        records = [json.loads(line) for line in file]
    return {"/" + record["url"].split("/", 3)[3] for record in records if record["text"]}


def rounds(folder: pathlib.Path, repeats: int) -> None:
    """Measures what a round costs."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Chain)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    door = f"chain.example.com:80:127.0.0.1:{server.server_port}"
    numbers = iter(range(1000))

    def run(depth: int) -> measure.Figures:
        table = str(folder / f"chain-{next(numbers)}")
        return measure.fresh("docs_site", "chain", door, table, depth)

    runs = {str(depth): functools.partial(run, depth) for depth in CHAIN_ROUNDS}
    found = measure.interleaved(runs, repeats)
    server.shutdown()
    few, many = CHAIN_ROUNDS
    cost = {
        figure: (measure.median(found[str(many)], figure) - measure.median(found[str(few)], figure))
        / (many - few)
        for figure in ("work", "cpu")
    }
    rows = [("a round of one page", cost["work"], cost["cpu"], cost["work"] / 0.5)]
    heads = ("once the process is up", "seconds", "CPU s", "of 0.5 s")
    measure.table(f"fixed cost of a round, median of {repeats}", heads, rows)


def main() -> None:
    """Prints the tables."""
    measure.need("scrapy")
    small = "--small" in sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="docs-site-") as name:
        folder = pathlib.Path(name)
        crawls(folder, "/debian-reference/index.en.html" if small else "/", 1 if small else 3)
        rounds(folder, 1 if small else 3)


if __name__ == "__main__":
    main()
