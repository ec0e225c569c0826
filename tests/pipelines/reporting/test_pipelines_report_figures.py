"""report: all figures of a crawl of the simulated web and of one with walls are those of queries and the history."""

import json
from collections import Counter
from datetime import datetime

import pytest
from crawling import json_lines, nutbeam, reach
from simulated_web import SimWeb

import nutbeam as nutbeam_package
from nutbeam.pipelines.reporting.read_figures import read_crawl_figures
from nutbeam.policy.reporting.state_counts import SAMPLES, TOP
from nutbeam.web.base.clock import now_ms, replaced_clock

DAY = 86_400_000
HOSTILE = ("too-many", "reset", "garbage", "loop", "mislabelled", "robots-401", "robots-429",
           "robots-503", "robots-loop", "odd-titles", "etag")  # fmt: skip
LATER = 20  # days: some pages are due, others are due soon

_HOSTS = """SELECT split_part(key, ':', 1) AS host_key, host_of(any_value(key)) AS host, count(*) AS urls,
    count(*) FILTER (status IN ('db_fetched', 'db_notmodified')) AS fetched,
    count(*) FILTER (status = 'db_gone') AS gone, count(*) FILTER (status = 'db_duplicate') AS duplicates,
    count(*) FILTER (protocol_status IN ('exception', 'failed')) AS failing,
    count(*) FILTER (protocol_status = 'robots_denied' AND NOT wall) AS robots,
    count(*) FILTER (waits AND NOT wall) AS robots_failing,
    count(*) FILTER (http_code IN (401, 403) AND NOT wall) AS denied,
    count(*) FILTER (http_code = 429 AND NOT wall) AS busy, count(*) FILTER (wall) AS walls,
    coalesce(list(DISTINCT protocol_message[10:]) FILTER (wall), []) AS guards, avg(response_ms) AS mean_ms
    FROM (SELECT *, coalesce(protocol_message LIKE 'bot_wall_%', false) AS wall,
        epoch_ms(fetch_time) <= {now} AND coalesce(protocol_status, '') <> 'robots_denied'
        AND coalesce(http_code, 0) NOT IN (401, 403, 429) AND split_part(key, ':', 1) IN (
            SELECT key FROM hosts WHERE robots_status IN (425, 429)
            OR epoch_ms(robots_time) - epoch_ms(robots_failing_since) < 2592000000) AS waits FROM state)
    GROUP BY 1"""
_BY_NAME = "GROUP BY 1 ORDER BY 2 DESC, 1"
# The queries that a figure of the state equals, row by row; ``{now}`` is the time of the report, ms.
QUERIES = {
    "urls": "SELECT count(*) FROM state",
    "hosts": "SELECT count(DISTINCT host_of(key)) FROM state",
    "statuses": f"SELECT status, count(*) FROM state {_BY_NAME}",
    "codes": f"""SELECT coalesce(http_code::VARCHAR, CASE WHEN last_fetch_time IS NULL THEN 'UNFETCHED'
        ELSE protocol_status END), count(*) FROM state
        WHERE http_code IS NOT NULL OR last_fetch_time IS NOT NULL {_BY_NAME}""",
    "types": f"""SELECT lower(trim(split_part(content_type, ';', 1))), count(*) FROM state
        WHERE content_type IS NOT NULL {_BY_NAME}""",
    "languages": f"SELECT coalesce(language, '(none)'), count(*) FROM pages {_BY_NAME}",
    "depths": "SELECT coalesce(distance::VARCHAR, '(none)'), count(*) FROM state GROUP BY distance ORDER BY distance",
    "ages": """SELECT CASE WHEN days < 1 THEN 'under a day' WHEN days < 7 THEN '1 to 7 days'
        WHEN days < 30 THEN '7 to 30 days' ELSE 'older' END, count(*)
        FROM (SELECT ({now} - epoch_ms(last_fetch_time)) // 86400000 AS days FROM pages) GROUP BY 1 ORDER BY min(days)""",
    "due": """SELECT CASE WHEN ms <= 0 THEN 0 WHEN ms > 7776000000 THEN 91 ELSE ceil(ms / 86400000)::INT END AS day,
        count(*) FROM (SELECT epoch_ms(fetch_time) - {now} AS ms FROM state) GROUP BY 1 ORDER BY 1""",
    "duplicates": """SELECT duplicate_of, count(*) FROM state WHERE status = 'db_duplicate' GROUP BY 1
        ORDER BY 2 DESC, 1 LIMIT 20""",
    **{
        name: f"""SELECT * EXCLUDE (host_key) FROM ({_HOSTS}) WHERE {rank} > 0
            ORDER BY {rank} DESC, host_key LIMIT 20"""
        for name, rank in {
            "biggest": "urls", "slowest": "mean_ms", "failing": "failing",
            "blocking": "(robots + robots_failing + denied + busy + walls)",
        }.items()
    },
    "blocks": f"""SELECT unnest(['robots', 'robots_failing', 'denied', 'busy', 'walls']) AS kind,
        unnest([sum(robots), sum(robots_failing), sum(denied), sum(busy), sum(walls)])::INT AS n FROM ({_HOSTS})""",
    "guards": f"SELECT protocol_message[10:], count(*) FROM state WHERE protocol_message LIKE 'bot_wall_%' {_BY_NAME}",
    "links": """WITH top AS (SELECT split_part(key, ':', 1) AS host, count(*) FROM state GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 12)
        SELECT host_of(key) AS source, host_of(target_key) AS target, count(*) FROM outlinks JOIN (SELECT key FROM pages) USING (key)
        WHERE split_part(key, ':', 1) IN (SELECT host FROM top) AND host_of(key) <> host_of(target_key)
        AND split_part(target_key, ':', 1) IN (SELECT host FROM top) GROUP BY ALL ORDER BY ALL""",
    "top_pages": "SELECT url, score, status FROM state ORDER BY state.score DESC, key LIMIT 20",
    "fetches": """WITH answers AS (
            SELECT *, fetch_time AS answered, fetch_time - to_milliseconds(response_ms) AS began FROM batch_pages
            WHERE response_ms IS NOT NULL AND coalesce(protocol_message, '') NOT IN ('dns', 'refused', 'unreachable')),
        placed AS (
            SELECT *, row_number() OVER (PARTITION BY batch_id ORDER BY answered, key)
                > ceil(0.95 * count(*) OVER (PARTITION BY batch_id)) AS late FROM answers),
        hosts AS (
            SELECT batch_id, split_part(key, ':', 1) AS host_key, host_of(any_value(key)) AS host, count(*) AS n
            FROM placed WHERE late GROUP BY 1, 2),
        slow AS (
            SELECT batch_id, list([host, n::VARCHAR] ORDER BY n DESC, host_key)[:3] AS slowest FROM hosts GROUP BY 1)
        SELECT batch_id, count(*) AS n, date_diff('ms', min(began), max(answered)) AS ms,
            date_diff('ms', max(answered) FILTER (NOT late), max(answered)) AS tail_ms, coalesce(any_value(slowest), []) AS slowest
        FROM placed LEFT JOIN slow USING (batch_id) GROUP BY 1 ORDER BY 1""",
    "rounds": """SELECT batch_id, (SELECT count(*) FROM batch_fetchlist f WHERE f.batch_id = p.batch_id) AS chosen,
        count(*) FILTER (protocol_status IN ('success', 'notmodified')) AS fetched,
        count(*) FILTER (protocol_status NOT IN ('success', 'notmodified', 'moved', 'temp_moved')) AS failed,
        count(*) FILTER (protocol_status IN ('moved', 'temp_moved')) AS redirected, count(*) AS pages
        FROM batch_pages p GROUP BY 1 ORDER BY 1""",
}  # fmt: skip


def as_rows(figures):
    """Returns the figures of a report as rows, by the name of their query."""
    named = {
        name: [list(pair) for pair in getattr(figures, name).items()]
        for name in ("statuses", "codes", "types", "languages", "depths", "ages", "guards")
    }
    due = enumerate((figures.due.now, *figures.due.days, figures.due.later))
    links = figures.links
    return named | {
        "urls": [[figures.urls]],
        "hosts": [[figures.hosts]],
        "due": [list(pair) for pair in due if pair[1]],
        "duplicates": [list(pair) for pair in figures.duplicates],
        **{
            name: [[*one._replace(guards=list(one.guards))] for one in getattr(figures, name)]
            for name in ("biggest", "slowest", "failing", "blocking")
        },
        "blocks": [
            [name, figures.blocks.get(name, 0)] 
            for name in ("robots", "robots_failing", "denied", "busy", "walls")
        ],
        "links": sorted([links.hosts[a], links.hosts[b], n] for a, b, n in links.links),
        "top_pages": [list(page) for page in figures.top_pages],
        "fetches": [
            [one.batch, one.requests, round(one.seconds * 1000), round(one.tail_seconds * 1000),
             [[host, str(number)] for host, number in one.tail_hosts]]
            for one in figures.fetches
        ],
        "rounds": [
            [one.batch, one.chosen, one.fetched, one.failed, one.redirected, one.done["fetch"]]
            for one in figures.rounds
        ],
    }  # fmt: skip


def rounded(rows):
    """Returns rows with five digits of each fraction: the scores of the state have few more."""
    return {
        name: [[float(f"{v:.5g}") if isinstance(v, float) else v for v in row] for row in of_name]
        for name, of_name in rows.items()
    }


@pytest.fixture(scope="module")
def simulated_table(tmp_path_factory):
    """A crawl of three rounds over more hosts than a ranking shows."""
    table = tmp_path_factory.mktemp("figures") / "table"
    with SimWeb(hosts=24, pages=6, seed=7, crawl_delay=0) as web:
        seeds = [*web.seeds, *(f"http://{name}.hostile.example.com/" for name in HOSTILE)]
        words = ("--rounds", "3", "--scope", "any", "--max_backoff", "1")
        assert nutbeam("crawl", table, *seeds, *reach(web), *words) == 0
    return table


@pytest.fixture(params=["simulated_table", "reported_table"])
def table(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def figures(table):
    """The figures, some weeks after the crawl: pages have an age then, and some are due."""
    now = now_ms() + LATER * DAY
    with replaced_clock(lambda: now):
        return read_crawl_figures(str(table))


def test_all_figures_are_those_of_queries(table, figures, capsys):
    rows = as_rows(figures)
    assert rows.keys() == QUERIES.keys()
    assert len(rows["fetches"]) == 2 + (len(rows["biggest"]) == TOP)
    lists = (
        f"coalesce((SELECT list(t) FROM ({query}) t), []) AS {name}"
        for name, query in QUERIES.items()
    )
    query = f"SELECT {', '.join(lists)}".replace("{now}", str(figures.now))
    capsys.readouterr()
    assert nutbeam("sql", table, query, "--format", "json") == 0
    (answer,) = json_lines(capsys.readouterr().out)
    answers = {name: [list(row.values()) for row in of_name] for name, of_name in answer.items()}
    assert rounded(rows) == rounded(answers)


def test_samples_are_pages(table, figures):
    pages = {row["url"]: row for row in nutbeam_package.read(table, "pages").to_dicts()}
    assert len(figures.samples) == min(SAMPLES, len(pages))
    for sample in figures.samples:
        page = pages[sample.url]
        assert (sample.title, sample.text) == (page["title"] or "", (page["text"] or "")[:400])


def test_jobs_are_those_of_the_history(table, figures, capsys):
    assert nutbeam("history", table, "--counts", "--last", "0", "--format", "json") == 0
    history = json.loads(capsys.readouterr().out)["snapshots"]
    sizes = {
        one["snapshot"]: len(nutbeam_package.read(table, "state", snapshot=one["snapshot"]))
        for one in history
    }
    for job, one in zip(figures.jobs, history, strict=True):
        begun, committed = (datetime.fromisoformat(one[name]) for name in ("time", "committed"))
        assert job.seconds == pytest.approx((committed - begun).total_seconds(), abs=1e-5)
        assert (job.job, job.batch, job.urls) == (one["job"], one["batch"], sizes[job.snapshot])
    requests = {one["batch"]: one["counts"]["requests"] for one in history if one["job"] == "fetch"}
    assert {one.batch: one.requests for one in figures.fetches} == requests


def test_reasons_are_all_those_of_the_history(table, figures, capsys):
    assert nutbeam("history", table, "--counts", "--last", "0", "--format", "json") == 0
    counts = Counter()
    for one in json.loads(capsys.readouterr().out)["snapshots"]:
        counts.update({(one["job"], name): number for name, number in one["counts"].items()})
    reasons = {(one.job, f"{one.family}/{one.reason}"): one.number for one in figures.dropped}
    assert reasons == {
        (job, name): number
        for (job, name), number in counts.items()
        if "/" in name and not name.startswith(("status/", "protocol/"))
    }
