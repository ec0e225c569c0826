"""extract, crawl --extract and extractchecker on twenty sites, of which three change their layout."""

import json

import extract_sites
import polars as pl
import pytest
from crawling import json_lines, nutbeam
from web_servers import reply, serve

import nutbeam as nutbeam_package

pytest.importorskip("duckdb")


class Sites:
    """Serves the sites.

    Attributes:
        layout: See ``extract_sites.pages``.
        options: How a crawl reaches them.
    """

    layout = 0

    def __init__(self, server):
        self.options = ["--connect_to", f"*.test:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        self._server = server

    def answer(self, path):
        lines = self._server.current.head.split("\r\n")
        host = next(line.split(":", 1)[1].strip() for line in lines if line[:5].lower() == "host:")
        page = extract_sites.pages(self.layout).get(f"http://{host}{path}")
        if page is None:
            return reply(b"", "404 Not Found")
        return reply(page[0].encode(), "200 OK", "Content-Type: text/html; charset=utf-8")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """A table of the sites, crawled with the rules, crawled again after the change of layouts; the sites."""
    folder = tmp_path_factory.mktemp("extract")
    with serve(lambda path, _: sites.answer(path)) as server:
        sites = Sites(server)
        (folder / "sites.toml").write_text(extract_sites.RULES)
        table, rules = folder / "table", ["--extract", folder / "sites.toml"]
        (folder / "seeds.txt").write_text("\n".join(extract_sites.pages()))
        words = ["crawl", table, folder / "seeds.txt", "--rounds", "1", *rules, *sites.options]
        assert nutbeam(*words) == 0
        yield table, sites


def right_rows(layout, *names):
    """Returns the right values of some fields, by URL."""
    return {
        (url, at, *(str(row.get(name)) for name in names))
        for url, (_, rows) in extract_sites.pages(layout).items()
        for at, row in enumerate(rows)
        if url != "http://shop6.test/"
    }


def shown(frame, *names):
    """Returns some columns of rows as text, but for the site with adverts."""
    columns = frame.filter(pl.col("url") != "http://shop6.test/").select("url", "position", *names)
    return {
        (url, at, *("None" if each is None else str(each) for each in values))
        for url, at, *values in columns.iter_rows()
    }


def queried(table, capsys, query):
    capsys.readouterr()
    assert nutbeam("sql", table, query, "--format", "json") == 0
    return json_lines(capsys.readouterr().out)


@pytest.mark.long
def test_rules_give_typed_rows_while_crawling_and_of_stored_bodies(crawled, capsys, tmp_path):
    table, _ = crawled
    rules = table.parent / "sites.toml"
    (types,) = queried(table, capsys, "SELECT typeof(price) AS p, typeof(published) AS d, typeof(tags) AS t, "
                       "typeof(remote) AS b, typeof(rating) AS n FROM sites LIMIT 1")  # fmt: skip
    assert list(types.values()) == ["DECIMAL(28,8)", "TIMESTAMP", "VARCHAR[]", "BOOLEAN", "DOUBLE"]
    rows = queried(
        table, capsys, "SELECT url, position, title, name, company, sku, author FROM sites"
    )
    names = ("title", "name", "company", "sku", "author")
    assert shown(pl.DataFrame(rows, infer_schema_length=None), *names) == right_rows(0, *names)
    (sums,) = queried(
        table, capsys, "SELECT sum(price) AS p, max(published) AS d, count(*) AS n FROM sites"
    )
    output = tmp_path / "sites.parquet"
    assert nutbeam("extract", table, rules, "-o", output, "--strict") == 0
    printed = capsys.readouterr()
    assert "  price    100% (before: 100%)" in printed.out
    assert "84 rows in" in printed.out
    assert printed.err == ""
    frame = pl.read_parquet(output)
    assert shown(frame, *names) == right_rows(0, *names)
    assert (float(frame["price"].sum()), len(frame)) == (sums["p"], sums["n"])
    assert f"{frame['published'].max():%Y-%m-%dT%H:%M}" == sums["d"][:16]
    batches = nutbeam_package.read_extracted(table, rules).read_all()
    assert pl.from_arrow(batches).sort("url", "position").equals(frame.sort("url", "position"))
    assert nutbeam("extract", table, rules) == 0
    lines = json_lines(capsys.readouterr().out)
    assert len(lines) == 84
    assert {line["rules_version"] for line in lines} == set(frame["rules_version"])


@pytest.mark.long
def test_a_changed_layout_is_a_warning_and_new_rules_are_applied_to_old_pages(
    crawled, capsys, tmp_path
):
    """One test, because each step changes what the next one is compared with."""
    table, sites = crawled
    old, new = table.parent / "sites.toml", table.parent / "repaired.toml"
    sites.layout = 1
    words = ["crawl", table, "--rounds", "1", "--add_days", "40", "--extract", old, *sites.options]
    assert nutbeam(*words, "--format", "json") == 0
    record = json.loads(capsys.readouterr().out)
    lines = [one["message"] for one in record["warnings"] if one["reason"] == "rules"]
    names = ["shop3.price", "news3.title", "jobs3.salary"]
    assert lines == [
        f"sites: {name} finds nothing on 4 pages; before, it had a value on 100 % of them"
        for name in names
    ]
    figures = record["extracted"][0]["figures"]
    assert figures["shop3"]["fields"]["price"] == {
        "searched": 4,
        "pages": 0,
        "values": 0,
        "failed": 0,
    }
    new.write_text(extract_sites.repaired_rules())
    capsys.readouterr()
    assert nutbeam("parse", table, "--reparse", "--extract", new) == 0
    assert "warning" not in capsys.readouterr().err
    rows = queried(
        table,
        capsys,
        "SELECT price, title, salary FROM sites WHERE rule IN ('shop3', 'news3', 'jobs3')",
    )
    assert sum(value is not None for row in rows for value in row.values()) == 16
    assert nutbeam("extract", table, old, "--strict", "-o", tmp_path / "a.csv") == 5
    error = capsys.readouterr().err
    assert [name for name in names if f"sites: {name} finds nothing on 4 pages" not in error] == []


def test_bad_rules_end_each_command_before_any_work(capsys, tmp_path):
    rules, table = tmp_path / "shop.toml", tmp_path / "table"
    rules.write_text('[[rule]]\n[rule.fields]\nprice = {css = ".price", type = "decimall"}\n')
    commands = (
        ["extract", table, rules], ["crawl", table, "http://shop1.test/", "--extract", rules],
        ["extractchecker", "http://shop1.test/", rules, "--agent_name", "a", "--agent_email", "a@b.org"],
    )  # fmt: skip
    for words in commands:
        assert nutbeam(*words) == 2, words
        line = capsys.readouterr().err
        assert f"{rules}:3: field 'price': type must be text" in line, words
        assert line.endswith("did you mean 'decimal'?\n"), words
    assert not table.exists()


@pytest.mark.long
def test_the_checker_shows_a_page(crawled, capsys, tmp_path):
    _, sites = crawled
    sites.layout, rules = 0, tmp_path / "shop.toml"
    rules.write_text(
        '[[rule]]\nname = "p"\n[rule.fields]\nname = "css:h1"\nprice = {css = "h1", type = "date"}\nno = "css:u"\n'
    )
    capsys.readouterr()
    assert nutbeam("extractchecker", "http://shop1.test/item/1", rules, *sites.options) == 0
    assert capsys.readouterr().out.splitlines() == [
        "rule p (line 1): 1 record",
        '  name: "Kettle & pot no. 1"  (text, css:h1)',
        "  price: nothing",
        '    css:h1: "Kettle & pot no. 1" is no date: no_date',
        "  no: nothing",
    ]
    assert nutbeam("extractchecker", "http://shop1.test/none", rules, *sites.options) == 1
    assert "http_404" in capsys.readouterr().out
