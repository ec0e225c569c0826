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

SECTIONS, STEP = 20, 6  # pages that change between two crawls; days between these
LONG = 400 * 86_400


class News:
    """A site with pages that always change, and one more article a crawl that never does."""

    def __init__(self):
        self.day = 0

    def answer(self, path, _):
        if path == "/robots.txt":
            return reply(b"", "404 Not Found")
        article = path.startswith("/article")
        text = random.Random(path if article else f"{path} {self.day}").randbytes(10_000).hex()
        links = [f"/section{number}" for number in range(SECTIONS)] + [f"/article{self.day}"]
        page = "".join(f'<a href="{link}">x</a>' for link in links if path == "/")
        body = f"<title>{path}</title>{page}<p>{text}</p>".encode()
        return reply(body, "200 OK", "Content-Type: text/html")


def weight_of(table):
    weights = weigh_components(weigh_files(open_table(str(table))))
    return {one.what: one.current + one.waiting for one in weights}


@pytest.mark.long
def test_a_year_of_crawls_stays_within_a_bound(tmp_path, capsys):
    table, site, time = tmp_path / "table", News(), [now_ms()]
    weights = []
    with serve(site.answer) as server, replaced_clock(lambda: time[0]):
        reach = ["--connect_to", f"a.example.com:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        due = ["--fetch_interval", f"{STEP}d", "--rounds", "2", "--dedup_group", "host"]
        seeds = tmp_path / "articles.txt"
        for day in range(0, 365, STEP):
            site.day = day
            seeds.write_text(f"http://a.example.com/article{day}\tnutch.fetchInterval={LONG}\n")
            assert nutbeam("crawl", table, "http://a.example.com/", seeds, *due, *reach) == 0
            if day % 30 == 0:
                keep = ["--snapshot_retention", "0", "--keep_batches", "2", "--keep_bodies", "60d"]
                assert nutbeam("compact", table, *keep) == 0
                weights.append(weight_of(table))
            time[0] += STEP * DAY_MS
    with capsys.disabled():
        print([(sum(one.values()), one["batch_pages"]) for one in weights])
    bodies = [one["batch_pages"] for one in weights]
    assert max(bodies[4:]) < 1.2 * bodies[3]  # from the fourth month on, old bodies go
    assert sum(weights[-1].values()) < 2 * sum(weights[3].values())
    articles = [f"/article{day}" for day in range(0, 365, STEP)]
    assert [server.paths.count(article) for article in articles] == [1] * len(articles)
    pages = read(str(table), "pages")
    assert len(pages) == len(state_of(table)) == SECTIONS + len(articles) + 1
    assert pages["text"].str.len_chars().min() >= 10_000  # the texts of all are there
