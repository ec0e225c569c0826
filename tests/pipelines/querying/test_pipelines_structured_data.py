"""Structured data from a page to views: sql and nutbeam.read, purge, older tables, parse --reparse."""

import json
import shutil
from decimal import Decimal

import polars as pl
import pytest
from crawling import files_of, nutbeam

import nutbeam as package
from nutbeam.policy.components.item_views import ITEM_VIEWS

JSON_LD = """<title>Tea</title><a href=list.html>List</a><script type="application/ld+json">[
{"@type": "Product", "name": "Tea", "url": "tea", "offers": {"price": "1,299.50", "priceCurrency": "USD"}},
{"@type": "NewsArticle", "headline": "New", "datePublished": "2024-03-05T10:00+02:00", "author": "A",
 "url": "http://gone.example/new"},
{"@type": "JobPosting", "title": "Cook", "jobLocationType": "TELECOMMUTE"},
{"@type": "Organization", "name": "Leaf", "geo": {"latitude": 52.5}}]</script>"""
MICRODATA = '<p itemscope itemtype="https://schema.org/Product"><b itemprop=name>Milk</b></p>'


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("structured")
    (folder / "site").mkdir()
    (folder / "site" / "a.html").write_text(JSON_LD)
    (folder / "site" / "list.html").write_text(MICRODATA)
    local = ("--schemes=file", f"--file_roots={folder}/site", "--rounds=2")
    assert nutbeam("crawl", folder / "table", f"file://{folder}/site/a.html", *local) == 0
    return folder / "table"


def asked(capsys, table, query):
    capsys.readouterr()
    assert nutbeam("sql", table, query, "--format=json") == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_views_have_typed_columns_in_sql_and_in_frames(table, capsys):
    products = asked(capsys, table, "select * from products order by name")
    site = f"file://{table.parent}/site"
    assert [(row["url"], row["name"], row["price"], row["currency"]) for row in products] == [
        (f"{site}/list.html", "Milk", None, None),
        (f"{site}/a.html", "Tea", 1299.5, "USD"),
    ]
    assert products[1]["item_url"] == f"{site}/tea"
    query = "select typeof(price) as p, typeof(published) as t from products, articles limit 1"
    assert asked(capsys, table, query) == [{"p": "DECIMAL(28,8)", "t": "TIMESTAMP"}]
    frame = package.read(table, "products").sort("name")
    assert frame["price"].to_list() == [None, Decimal("1299.5")]
    articles = package.read(table, "articles", columns=["published", "published_text", "authors"])
    assert articles.dtypes == [pl.Datetime("ms", "UTC"), pl.String, pl.List(pl.String)]
    assert articles["published"].dt.hour().to_list() == [8]


ALL_KEYS = " union all ".join(f"select '{name}' as name, key from {name}" for name in ITEM_VIEWS)


def test_all_views_are_the_same_in_sql_and_in_frames(table, capsys):
    rows = sorted((row["name"], row["key"]) for row in asked(capsys, table, ALL_KEYS))
    frames = {name: package.read(table, name) for name in ITEM_VIEWS}
    assert rows == sorted((name, key) for name, frame in frames.items() for key in frame["key"])
    assert {name for name, _ in rows} == {"products", "articles", "jobs", "organizations"}
    assert frames["jobs"]["remote"].to_list() == [True]


def test_items_are_a_column_of_pages(table, capsys):
    query = "select i.type, i.properties->>'name' as name from (select unnest(structured_data) as i from pages)"
    names = {(row["type"], row["name"]) for row in asked(capsys, table, query)}
    assert {("Product", "Tea"), ("Product", "Milk"), ("Organization", "Leaf")} <= names


def test_purge_removes_items_and_reparse_fills_tables_of_older_versions(table, tmp_path, capsys):
    copy = shutil.copytree(table, tmp_path / "copy")
    assert nutbeam("purge", copy, "--host=gone.example") == 0
    assert package.read(copy, "articles").is_empty()
    assert len(package.read(copy, "products")) == 2
    for batch in package.read(copy, "batches")["batch_id"]:
        for path in files_of(copy, f"batches/{batch}/documents"):
            pl.read_parquet(path).drop("structured_data").write_parquet(path)
    assert package.read(copy, "products").is_empty()
    assert asked(capsys, copy, ALL_KEYS) == []
    assert nutbeam("parse", copy, "--reparse") == 0
    assert len(package.read(copy, "products")) == 2
    assert nutbeam("parse", copy, "--reparse", "--structured_data=false") == 0
    assert package.read(copy, "products").is_empty()
