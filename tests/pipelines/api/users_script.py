"""A user's script with every method, which mypy checks in strict mode; it is not run."""

import datetime
import pathlib
from collections.abc import Mapping

import nutbeam


def crawl_a_site(folder: pathlib.Path) -> nutbeam.Table:
    table = nutbeam.crawl(
        folder, "https://www.your-site.org/", "seeds.txt",
        rounds=3, agent_name="mybot", agent_email="you@your-site.org", server_delay="2s",
        include=["/docs/"], content_limit="1Mi", scope="host", progress=True,
        beam_args=["--runner=FlinkRunner"], connect_to=(), fetch_interval=datetime.timedelta(days=1),
        allowed_ports=[80, "8000-8999"], extract=pathlib.Path("shop.toml"), ca_file=pathlib.Path("ca.pem"),
    )  # fmt: skip
    result: nutbeam.CrawlResult | None = table.last_crawl
    if result is not None and result.next_due is not None:
        due: datetime.datetime = result.next_due.fetch_time
        print(due, result.ending, result.fetched + result.requests, result.status["db_fetched"])
    return table


def read_it(table: nutbeam.Table) -> None:
    for page in table.pages(columns=["url", "title", "links"], text_of="main", snapshot=3):
        record: nutbeam.TablePage = page
        print(record.url.upper(), (record.title or "").upper(), record.score or 0.0 + 1.0)
        for link in record.links or ():
            print(link.url.upper(), link.anchor)
    print(table.frame("state").shape, table.frame("pages", columns=["url"]).height)
    for changed in table.pages(since=datetime.date(2026, 11, 1)):
        print((changed.change or "").upper(), (changed.snapshot or 0) + 1)
    print(
        table.frame("pages", since=3, columns=("url",)).height,
        table.arrow("pages", since="2026-11-01").num_rows,
    )
    print(table.arrow("hosts").num_rows, table.chunks(256, tokenizer="words").height)
    print(table.sql("SELECT 1 AS one").get_column("one").to_list())
    stats = table.stats()
    print(stats.urls + 1, sum(stats.status.values()), stats.snapshot)
    why = table.explain("https://www.your-site.org/x", ask_robots=False, scope="any")
    reason: str | None = why.reason
    print(reason, why.verdict.upper())
    for entry in table.history(5):
        when: datetime.datetime | None = entry.time
        print(when, entry.job, entry.snapshot + 1)
    for hit in table.search("water", index="main", top=3, sort="date").hits:
        print(hit.url.upper(), hit.score + 1.0)
    print(table.address.upper())


def run_jobs(table: nutbeam.Table) -> None:
    crawled: nutbeam.CrawlResult = table.crawl("https://www.your-site.org/", rounds=-1)
    results: list[nutbeam.JobResult] = [
        table.inject("https://www.your-site.org/"), table.sitemap("https://www.your-site.org/sitemap.xml"),
        table.generate(top_n=100), table.freegen("urls.txt"), table.import_warc("archive"),
        table.import_nutch("nutch_crawl"), table.fetch(batch="1", threads=4), table.parse(reparse=True),
        table.update(depth=3), table.invertlinks(), table.dedup(dedup_group="host"), table.next(),
        table.webgraph(level="host"), table.linkrank(), table.scoreupdater(), table.index(index="main"),
        table.clean(), table.updatehostdb(), table.hostinject("hosts.txt"), table.filterdb(dry_run=True),
        table.compact(snapshot_retention="7d"), table.copy("backup"), table.mergelinkdb("other"),
        table.mergedb("other"), table.rollback(to=3), table.purge(url=["https://www.your-site.org/"]),
    ]  # fmt: skip
    for result in results:
        counts: Mapping[str, int] = result.counts
        print(result.job, counts.get("pages", 0) + 1, result.nothing_to_do, result.batch)
    written = table.write_pages(output=pathlib.Path("p.parquet"), since=3)
    print(
        written.rows
        + table.extract("shop.toml", output="p.duckdb", since=datetime.date.today()).rows
    )
    print(crawled.rounds + table.round(top_n=10).rounds)
    print(table.fsck(quick=True).clean, table.warc("archive", wacz=True).files)


def read_single_pages() -> str:
    answer: nutbeam.FetchedDocument = nutbeam.fetch(
        "https://www.your-site.org/", agent_name="mybot", agent_email="you@your-site.org"
    )
    content: nutbeam.DocumentContent = answer.parse()
    other = nutbeam.parse("<p>x</p>", "https://www.your-site.org/", max_outlinks=10)
    for record in other.records:
        print(record.rule.upper(), record.position + 1, record.fields.get("price"))
    print(sum(other.faults.values()) + sum(other.dropped.values()))
    return content.title + other.markdown + str(answer.http_code + 1)


def main() -> None:
    try:
        table = crawl_a_site(pathlib.Path("mine"))
    except nutbeam.NothingFetched as error:
        print(error, error.result)
    except (
        nutbeam.UsageError,
        nutbeam.NothingToDo,
        nutbeam.Unavailable,
        nutbeam.JobFailed,
    ) as error:
        print(error)
    except nutbeam.UserError as error:
        print(error)
    else:
        read_it(nutbeam.open(table.address))
        run_jobs(nutbeam.Table("mine"))
        print(read_single_pages(), nutbeam.read(table, "hosts").height)
        print(nutbeam.read(table, "pages", since=3).height, nutbeam.read_chunks(table, 100).height)
        print(nutbeam.read_extracted(table, pathlib.Path("shop.toml"), since=3).read_all().num_rows)
