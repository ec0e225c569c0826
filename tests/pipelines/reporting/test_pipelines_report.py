"""report: each figure is that of a query, texts of strangers stay texts, and odd tables have a page."""

import json
import re
import shutil
import sys
import tarfile

import pytest
from bs4 import BeautifulSoup
from crawling import files_of, json_lines, latest_snapshot, nutbeam, state_of
from here import TESTS
from reported_site import EVIL, SEEDS
from small_disk import mounted

from nutbeam.pipelines.reporting.charts import Chart, draw_chart
from nutbeam.pipelines.reporting.fragments import table
from nutbeam.pipelines.reporting.read_figures import read_crawl_figures

# Of each table with numbers by name: its caption, and the query with the same rows.
QUERIES = {
    "URLs by status": "SELECT status, count(*) AS n FROM state GROUP BY 1",
    "URLs by distance from a seed": "SELECT distance::VARCHAR, count(*) FROM state GROUP BY 1",
    "Answers by code": """SELECT coalesce(http_code::VARCHAR, CASE WHEN last_fetch_time IS NULL
        THEN 'UNFETCHED' ELSE protocol_status END), count(*) FROM state
        WHERE http_code IS NOT NULL OR last_fetch_time IS NOT NULL GROUP BY 1""",
    "Types, as servers declare them": """SELECT lower(trim(split_part(content_type, ';', 1))), count(*)
        FROM state WHERE content_type IS NOT NULL GROUP BY 1""",
    "Languages of living pages": "SELECT coalesce(language, '(none)'), count(*) FROM pages GROUP BY 1",
    "Living pages by the time since their last request": "SELECT 'under a day', count(*) FROM pages",
    "URLs by the bot wall that answered": """SELECT protocol_message[10:], count(*) FROM state
        WHERE protocol_message LIKE 'bot_wall_%' GROUP BY 1""",
    "Hosts with most URLs": """SELECT host_of(key), count(*),
        count(*) FILTER (status IN ('db_fetched', 'db_notmodified')),
        count(*) FILTER (status = 'db_gone'),
        count(*) FILTER (protocol_status IN ('exception', 'failed')),
        printf('%.1f', avg(response_ms)) FROM state GROUP BY 1""",
    "Hosts that keep most URLs from the crawler": """SELECT host_of(key),
        count(*) FILTER (protocol_status = 'robots_denied'), count(*) FILTER (robots_fails),
        count(*) FILTER (http_code IN (401, 403) AND NOT wall), count(*) FILTER (http_code = 429),
        count(*) FILTER (wall), max(CASE WHEN wall THEN protocol_message[10:] ELSE '-' END)
        FROM (SELECT *, coalesce(protocol_message LIKE 'bot_wall_%', false) AS wall,
            host_of(key) = 'failing.example.com' AS robots_fails FROM state)
        GROUP BY 1 HAVING count(*) FILTER (robots_fails OR protocol_status = 'robots_denied' OR http_code IN (401, 403, 429)) > 0""",
    "Pages with most duplicates": """SELECT duplicate_of, count(*) FROM state
        WHERE status = 'db_duplicate' GROUP BY 1""",
    "Links between hosts": """SELECT host_of(key), host_of(target_key), count(*) FROM outlinks
        JOIN (SELECT key FROM state WHERE status IN ('db_fetched', 'db_notmodified', 'db_unfetched')) USING (key)
        WHERE host_of(key) <> host_of(target_key) GROUP BY ALL""",
}


def report(table, folder, *words):
    """Writes a report; returns it as HTML."""
    file = folder / "report.html"
    assert nutbeam("report", table, "-o", file, *words) == 0
    return file.read_text("utf-8")


def tables_of(page):
    """Returns the rows of each table of a page, by caption, as texts."""
    return {
        table.caption.get_text(): [
            tuple(cell.get_text() for cell in row.find_all(("th", "td")))
            for row in table.tbody.find_all("tr")
        ]
        for table in BeautifulSoup(page, "html.parser").find_all("table")
    }


@pytest.fixture(scope="module")
def page(reported_table, tmp_path_factory):
    return report(reported_table, tmp_path_factory.mktemp("page"))


@pytest.fixture
def ask(capsys):
    def run(table, query):
        capsys.readouterr()
        assert nutbeam("sql", table, query, "--format", "json") == 0
        rows = json_lines(capsys.readouterr().out)
        return sorted(tuple("-" if v is None else str(v) for v in row.values()) for row in rows)

    return run


@pytest.mark.parametrize("caption", QUERIES)
def test_each_figure_is_that_of_a_query(page, reported_table, ask, caption):
    rows = ask(reported_table, QUERIES[caption])
    assert rows
    assert sorted(tables_of(page)[caption]) == rows


def test_due_urls_are_those_of_a_query(page, reported_table, ask):
    figures = read_crawl_figures(str(reported_table))
    query = f"""SELECT count(*) FILTER (ms <= 0), count(*) FILTER (ms > 0 AND ms <= 7776000000),
        count(*) FILTER (ms > 7776000000)
        FROM (SELECT epoch_ms(fetch_time) - {figures.now} AS ms FROM state)"""
    numbers = (figures.due.now, sum(figures.due.days), figures.due.later)
    assert ask(reported_table, query) == [tuple(map(str, numbers))]
    assert sum(numbers) == figures.urls
    due = tables_of(page)["Due URLs over the next 90 days"]
    assert sum(int(number) for _, number in due) == figures.urls


def test_reasons_are_those_of_the_history(page, reported_table, capsys):
    capsys.readouterr()
    assert nutbeam("history", reported_table, "--counts", "--last", "0", "--format", "json") == 0
    snapshots = json.loads(capsys.readouterr().out)["snapshots"]
    counts = {}
    for one in snapshots:
        for name, number in one["counts"].items():
            counts[one["job"], name] = counts.get((one["job"], name), 0) + number
    rows = tables_of(page)["Reasons, over all jobs that are known"]
    assert ("bot_wall_cloudflare", "fetch", "not_fetched") in [row[:3] for row in rows]
    for reason, job, family, number, meaning, _ in rows:
        assert counts[job, f"{family}/{reason}"] == int(number)
        assert meaning  # it is in the catalogue
    rounds = tables_of(page)["The rounds"]
    assert sum(int(row[2]) for row in rounds) == counts["generate", "chosen"]


def test_texts_of_strangers_stay_texts(page):
    soup = BeautifulSoup(page, "html.parser")
    assert soup.find_all(("script", "img", "iframe", "link", "object", "form")) == []
    assert "\u202e" not in page
    titles = [one.get_text() for one in soup.select(".sample h3")]
    assert EVIL.replace("\u202e", "\\u202e") in titles
    assert not re.search(r"""\s(?:style|on\w+|src)=""", page.replace("content=", ""))


def test_links_lead_to_the_web_alone(page):
    soup = BeautifulSoup(page, "html.parser")
    assert {a["href"].partition(":")[0] for a in soup.find_all("a") if a["href"][0] != "#"} == {
        "http"
    }
    anchors = {a["href"][1:] for a in soup.select("nav a")}
    assert anchors == {section["id"] for section in soup.find_all("section")}


def test_two_snapshots_stand_side_by_side(reported_table, tmp_path, ask):
    newest = latest_snapshot(reported_table)
    tables = tables_of(report(reported_table, tmp_path, "--compare", "1"))
    rows = {name: numbers for name, *numbers in tables["URLs by status"]}
    assert rows["db_unfetched"][1] == str(len(SEEDS))
    for now, then, change in rows.values():
        assert int(change) == int(now) - int(then)
    assert f"Pages with the highest scores, snapshot {newest}" in tables


def test_two_tables_stand_side_by_side(reported_table, tmp_path):
    assert nutbeam("inject", tmp_path / "other", "http://a.example/") == 0
    page = report(reported_table, tmp_path, "--compare", tmp_path / "other")
    rows = {name: numbers for name, *numbers in tables_of(page)["URLs by status"]}
    assert rows["db_unfetched"][1] == "1"


def test_an_older_snapshot_has_its_own_figures(reported_table):
    figures = read_crawl_figures(str(reported_table), 1)
    assert (figures.urls, figures.due.now, figures.rounds) == (len(SEEDS), len(SEEDS), ())
    assert [job.job for job in figures.jobs] == ["inject"]


def test_a_wall_changes_no_content(reported_site, reported_table, tmp_path):
    site, words = reported_site
    table = shutil.copytree(reported_table, tmp_path / "table")
    before = {row["key"]: row for row in state_of(table).to_dicts()}
    site.walled = True
    try:
        assert nutbeam("generate", table, "--add_days", "60") == 0
        assert nutbeam("fetch", table, *words) == 0
    finally:
        site.walled = False
    for job in ("parse", "updatedb"):
        nutbeam(job, table)
    kept = ("signature", "document", "modified_time", "etag")
    walled = [
        row
        for row in state_of(table).to_dicts()
        if (row["protocol_message"] or "").startswith("bot_wall_")
    ]
    pages = [row for row in walled if before[row["key"]]["signature"]]
    assert pages
    for row in pages:
        assert [row[name] for name in kept] == [before[row["key"]][name] for name in kept]


def test_an_empty_table_has_a_page(tmp_path):
    (tmp_path / "seeds.txt").write_text("http://a.example/\n")
    assert nutbeam("inject", tmp_path / "table", tmp_path / "seeds.txt") == 0
    assert nutbeam("purge", tmp_path / "table", "--url", "http://a.example/") == 0
    page = report(tmp_path / "table", tmp_path)
    assert "Hosts with most URLs: none." in page


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", ["format1.tar.gz", "format2.tar.xz", "format3.tar.xz", "complete.tar.xz"]
)
def test_older_tables_have_a_page(name, tmp_path):
    with tarfile.open(TESTS / "tables" / name) as archive:
        archive.extractall(tmp_path / "old", filter="data")
    (table,) = {path.parent for path in (tmp_path / "old").rglob("manifest")}
    rows = tables_of(report(table, tmp_path))["URLs by status"]
    assert sum(int(number) for _, number in rows) == len(state_of(table))


def test_a_table_with_an_open_batch_has_a_page(reported_site, reported_table, tmp_path):
    table = shutil.copytree(reported_table, tmp_path / "table")
    assert nutbeam("generate", table, "--add_days", "60") == 0
    open_batch = tables_of(report(table, tmp_path))["The rounds"][0]
    assert nutbeam("fetch", table, *reported_site[1]) == 0
    fetched = tables_of(report(table, tmp_path))["The rounds"][0]
    assert (open_batch[2], open_batch[3]) == (fetched[2], "0")
    assert int(fetched[3]) > 0


def test_damaged_batches_are_noted(reported_table, tmp_path, capsys):
    table = shutil.copytree(reported_table, tmp_path / "table")
    for path in (table / "batches").rglob("documents/*.parquet"):
        path.write_bytes(b"damaged")
    page = report(table, tmp_path)
    assert "cannot be read" in BeautifulSoup(page, "html.parser").select_one(".note").get_text()
    assert "cannot be read" in capsys.readouterr().err
    assert tables_of(page)["URLs by status"]


def test_a_damaged_state_is_an_error(reported_table, tmp_path, refuse):
    table = shutil.copytree(reported_table, tmp_path / "table")
    for path in files_of(table, "state"):
        (table / path).write_bytes(b"damaged")
    assert "damaged" in refuse("report", table, "-o", tmp_path / "r.html", code=3)
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "r.pdf"], "--output must end in .html, got 'r.pdf'"),
        (["--compare", "999"], "no snapshot 999"),
        (["--snapshot", "999"], "no snapshot 999"),
        (["--compare", "nowhere"], "no web table at"),
    ],
)
def test_a_wrong_word_is_quoted(reported_table, refuse, words, message):
    assert message in refuse("report", reported_table, *words)


def test_failed_pages_are_red_and_fetched_ones_green(page):
    chart = BeautifulSoup(page, "html.parser").select_one("#rounds svg")
    colors = {
        legend.get_text(strip=True): next(
            c for c in legend.select_one("rect")["class"] if "color" in c
        )
        for legend in chart.select(".legend")
    }
    assert colors == {"fetched": "color-2", "redirected": "color-0", "failed": "color-1"}


def test_a_dash_stands_where_numbers_stand():
    cells = BeautifulSoup(
        table("t", ("a", "n", "x"), [("r", "-", "-"), ("s", 1, "y")]), "html.parser"
    )
    assert ["n" in cell.get("class", ()) for cell in cells.select("td")] == [True, False] * 2


def test_a_report_for_a_full_disk_advises_to_make_room(reported_table, tmp_path, refuse):
    with mounted(tmp_path / "disk", "64k") as disk:
        (disk / "other").write_bytes(bytes(40_000))
        line = refuse("report", reported_table, "-o", disk / "report.html", code=3)
        path = str(disk / "report.html")
        assert (
            line
            == f"cannot write {path!r}: No space left on device: make room, then run the same again"
        )
        assert [file.name for file in disk.iterdir()] == ["other"]


def test_charts_have_neither_scripts_nor_styles_and_keep_hostile_labels():
    chart = draw_chart(Chart("lying", EVIL, [EVIL, "b"], {EVIL: [1, 2], "c": [3, None]}))
    assert "<script" not in chart
    assert "style" not in chart
    assert "\u202e" not in chart
    assert chart.count('class="bar"') == 3


def test_a_report_without_its_library_is_refused_at_once(
    reported_table, monkeypatch, tmp_path, refuse
):
    monkeypatch.setitem(sys.modules, "pygal", None)
    error = refuse("report", reported_table, "-o", tmp_path / "report.html", code=2)
    assert error == "report needs pygal: install nutbeam[report]"
    assert not (tmp_path / "report.html").exists()
