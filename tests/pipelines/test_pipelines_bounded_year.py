"""A site is crawled again for a year: with compact its table stays within a bound."""

import random

import pytest
from crawling import nutbeam, state_of
from web_servers import reply, serve

from nutbeam.io.table.opening import open_table
from nutbeam.io.upkeep.table_weight import weigh_files
from nutbeam.pipelines.views.reader import read
from nutbeam.policy.estimating.disk_weights import weigh_components
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.web.base.clock import now_ms, replaced_clock

SECTIONS, STEP = 20, 10  # pages that change between two crawls; days between these
MONTH = 30
PAGE_BYTES = 10_000  # of a body, and of a text, as they are stored
LONG = 400 * 86_400
# All sections, the home page, the articles of 60 days, two whole batches, and files that are half live.
MOST_BODIES = 2 * (SECTIONS + 1 + 60 // STEP) + 2 * (SECTIONS + 2)


class News:
    """A site with pages that always change, and one more article a crawl that never does."""

    def __init__(self):
        self.day = 0

    def answer(self, path, _):
        if path == "/robots.txt":
            return reply(b"", "404 Not Found")
        article = path.startswith("/article")
        text = random.Random(path if article else f"{path} {self.day}").randbytes(PAGE_BYTES).hex()
        links = [f"/section{number}" for number in range(SECTIONS)] + [f"/article{self.day}"]
        page = "".join(f'<a href="{link}">x</a>' for link in links if path == "/")
        body = f"<title>{path}</title>{page}<p>{text}</p>".encode()
        return reply(body, "200 OK", "Content-Type: text/html")


def compacted(table):
    """Compacts a table; returns its size in bytes, and its number of bodies."""
    keep = ["--snapshot_retention", "0", "--keep_batches", "2", "--keep_bodies", "60d"]
    assert nutbeam("compact", table, *keep) == 0
    weights = weigh_components(weigh_files(open_table(str(table))))
    bodies = read(str(table), "batch_pages")["body"].drop_nulls()
    return sum(one.current + one.waiting for one in weights), len(bodies)


@pytest.mark.long
def test_a_year_of_crawls_stays_within_a_bound(tmp_path, capsys):
    table, site, time, months = tmp_path / "table", News(), [now_ms()], []
    days = range(0, 365, STEP)
    with serve(site.answer) as server, replaced_clock(lambda: time[0]):
        words = ["--connect_to", f"a.example.com:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        words += [
            "--fetch_interval",
            f"{STEP}d",
            "--max_fetch_interval",
            f"{LONG}",
            "--rounds",
            "2",
        ]
        seeds = tmp_path / "articles.txt"
        for site.day in days:
            seeds.write_text(
                f"http://a.example.com/article{site.day}\tnutch.fetchInterval={LONG}\n"
            )
            assert nutbeam("crawl", table, "http://a.example.com/", seeds, *words) == 0
            if site.day % MONTH == 0:
                months.append(compacted(table))
            time[0] += STEP * DAY_MS
    with capsys.disabled():
        print(f"\nbytes and bodies by month: {months}")
    assert all(bodies <= MOST_BODIES for _, bodies in months)
    # Of what a crawl brings, less than a fifth stays: the text of its article, and small files.
    crawls = (len(months) - 5) * MONTH // STEP
    assert months[-1][0] - months[4][0] < 0.2 * crawls * 2 * PAGE_BYTES * (SECTIONS + 1)
    assert [server.paths.count(f"/article{day}") for day in days] == [1] * len(days)
    pages = read(str(table), "pages")
    assert len(pages) == len(state_of(table)) == SECTIONS + len(days) + 1
    assert pages["text"].str.len_chars().min() >= PAGE_BYTES  # the texts of all are there
