import datetime
import json
from decimal import Decimal

import extract_sites
import pyarrow as pa

from nutbeam.policy.extracting.described_records import describe_page
from nutbeam.policy.extracting.extracted_rows import (
    extract_rows,
    extracted_schema,
    records_of_page,
    stored_records,
)
from nutbeam.policy.extracting.page_records import EXTRACTED_FROM
from nutbeam.policy.extracting.rule_figures import (
    figures_of_rules,
    last_good_figures,
    rule_warnings,
)
from nutbeam.web.extracting.rule_reader import read_extraction_rules
from nutbeam.web.pages.page import Source
from nutbeam.web.rule_files.rule_files import RuleFile


def rules_of(text):
    return read_extraction_rules(RuleFile("sites.toml", text), "sites")


def rows_of_sites(rules, layout=0):
    """Returns the rows of all sites by URL, and the counts."""
    sites = extract_sites.pages(layout)
    page_rows = [
        {"url": url, "body": html.encode(), "content_type": "text/html; charset=utf-8"}
        for url, (html, _) in sites.items()
    ]
    missing = dict.fromkeys(EXTRACTED_FROM)
    table, counts = extract_rows(pa.Table.from_pylist([missing | row for row in page_rows]), rules)
    assert table.schema == extracted_schema(rules)
    by_url = {url: [] for url in sites}
    for row in table.to_pylist():
        by_url[row["url"]].append(row)
    return by_url, counts


def wrong_fields(by_url, layout=0):
    """Returns (number of fields, those that are wrong) of the rows of all sites."""
    number, wrong = 0, []
    for url, (_, right_rows) in extract_sites.pages(layout).items():
        assert len(by_url[url]) == len(right_rows), url
        for row, right in zip(by_url[url], right_rows, strict=True):
            number += len(right)
            wrong += [(url, name) for name, value in right.items() if row[name] != value]
    return number, wrong


def test_all_fields_of_twenty_sites_are_right():
    rules = rules_of(extract_sites.RULES)
    by_url, counts = rows_of_sites(rules)
    hosts = {url.split("/")[2] for url in by_url}
    assert len(hosts) == 20
    assert hosts >= {*extract_sites.BROKEN, *extract_sites.CHANGING}
    assert wrong_fields(by_url) == (396, [])
    assert {row["rules_version"] for rows in by_url.values() for row in rows} == {rules.version}
    # Adverts have no price.
    assert (counts["extract/sites/shop6/records"], counts["extract/sites/shop6/incomplete"]) == (
        8,
        8,
    )


def test_a_new_layout_is_a_warning_for_just_the_rules_that_find_nothing_and_is_repaired_by_them():
    rules = rules_of(extract_sites.RULES)
    fields = {rule.name: [field.name for field in rule.fields] for rule in rules.rules}
    before, now = (
        figures_of_rules(rows_of_sites(rules, layout)[1], "sites", fields) for layout in (0, 1)
    )
    assert list(rule_warnings(before, {})) == []
    good = last_good_figures(now, last_good_figures(before, {}))
    assert list(rule_warnings(now, good)) == list(
        rule_warnings(now, before)
    )  # until it is repaired
    assert list(rule_warnings(before, good)) == []
    assert dict(rule_warnings(now, before)) == dict.fromkeys(
        ("shop3.price", "news3.title", "jobs3.salary"),
        "finds nothing on 4 pages; before, it had a value on 100 % of them",
    )
    repaired = rules_of(extract_sites.repaired_rules())
    for layout in (0, 1):
        assert wrong_fields(rows_of_sites(repaired, layout)[0], layout) == (396, [])
    assert repaired.version != rules.version


def test_a_rule_that_finds_much_less_or_another_type_is_a_warning():
    def figures(pages, with_value, values, failed, records=20, ended=0):
        counts = {"pages": pages, "records": records, "timeout": ended}
        counts = {f"extract/s/p/{name}": number for name, number in counts.items()}
        own = {"pages": with_value, "values": values, "failed": failed}
        counts |= {f"extract/s/p.x/{name}": number for name, number in own.items()}
        return figures_of_rules(counts, "s", {"p": ["x"]})

    good = figures(20, 20, 20, 0)
    cases = (
        (figures(20, 9, 9, 0), good, "p.x has a value on 45 % of 20 pages; before, it had a value on 100 %"),
        (figures(20, 11, 11, 0), good, ""),
        (figures(9, 1, 1, 0), good, ""),  # too few to say
        (figures(20, 8, 8, 12), good, "p.x finds values of another type: 12 of 20 did not convert"),
        (figures(20, 0, 0, 0), {}, "p.x finds nothing on 20 pages"),
        (figures(20, 0, 0, 0), figures(20, 0, 0, 0), ""),  # as before
        (figures(0, 0, 0, 0), good, "p is for no page; before, it was for 20 pages"),
        (figures(20, 20, 20, 0, records=0), good, "p makes no record of 20 pages; before, it made 20 records"),
        (figures(20, 20, 20, 0, ended=2), good, "p failed or took too long on 2 of 20 pages"),
    )  # fmt: skip
    for now, before, line in cases:
        said = "; ".join(f"{name} {text}" for name, text in rule_warnings(now, before))
        assert said.startswith(line), said
        assert bool(said) == bool(line)


def test_documents_store_all_values_of_a_record():
    rules = rules_of(extract_sites.RULES)
    html, (right,) = extract_sites.pages()["http://jobs1.test/item/2"]
    (stored,), counts = stored_records(
        Source("http://jobs1.test/item/2", html.encode(), "text/html"), [rules]
    )
    assert (stored["rules"], stored["rules_version"], stored["rule"], stored["position"]) == (
        "sites", rules.version, "jobs1", 0,
    )  # fmt: skip
    assert json.loads(stored["fields"]) == right | {
        "salary": "53000", "posted": int(right["posted"].timestamp() * 1000),
    }  # fmt: skip
    assert counts["extract/sites/jobs1.salary/pages"] == 1


def test_pages_that_say_noindex_or_are_no_html_or_ended_a_process_have_no_records():
    rules = rules_of('name = "s"\n[[rule]]\nname = "p"\n[rule.fields]\nx = "css:b"')
    html = b"<b>1</b>"
    header = [{"name": "X-Robots-Tag", "value": "noindex"}]
    cases = (
        (html, "text/html", None, {}, 1, "p/records"),
        (b"<html xmlns='http://www.w3.org/1999/xhtml'><b>1</b></html>", "application/xhtml+xml", None, {}, 1, "p/pages"),
        (b"<meta name=robots content=noindex>" + html, "text/html", None, {}, 0, "noindex"),
        (html, "text/html", header, {}, 0, "noindex"),
        (b"%PDF-1.4", "application/pdf", None, {}, 0, "not_html"),
        (html, "text/html", None, {0: "timeout"}, 0, "p/timeout"),
        (html, "text/html", None, {0: "crashed SIGSEGV"}, 0, "p/crashed"),
    )  # fmt: skip
    for body, kind, headers, skip, rows, count in cases:
        row = {
            "url": "http://a/",
            "body": body,
            "content_type": kind,
            "headers": headers,
            "last_fetch_time": None,
        }
        table, counts = extract_rows(pa.Table.from_pylist([row]), rules, skip)
        assert (len(table), counts[f"extract/s/{count}"]) == (rows, 1), (body, kind, counts)


def test_values_that_no_column_holds_are_failures():
    fields = """
    price = {css = "b", type = "list of decimal"}
    when = {css = "i", type = "list of date"}
    rating = {css = "u", type = "list of number"}
    """
    rules = rules_of(f'name = "s"\n[[rule]]\nname = "p"\n[rule.fields]\n{fields}')
    texts = {
        "b": ("1.234,56 €", "$1,234", "from 9.99", "", "NaN", "9" * 40, "\u0661\u0662\u066b\u0665", "1.2.3"),
        "i": ("40000-01-01", "2024-02-31", "2024-02-29"), "u": ("NaN", "Infinity", "1e400", "4,5"),
    }  # fmt: skip
    html = "".join(f"<{tag}>{text}</{tag}>" for tag, values in texts.items() for text in values)
    row = {"url": "http://a/", "body": html.encode(), "content_type": "text/html; charset=utf-8"}
    table, counts = extract_rows(pa.Table.from_pylist([dict.fromkeys(EXTRACTED_FROM) | row]), rules)
    (found,) = table.to_pylist()
    assert found["price"] == [Decimal("1234.56"), Decimal(1234), Decimal("9.99"), Decimal("12.5")]
    assert found["when"] == [datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)]
    assert found["rating"] == [4.5]
    assert counts["extract/s/p.price/failed"] == 3


def test_the_checker_shows_the_source_of_each_field_and_its_failures():
    rules = rules_of(
        '[[rule]]\nname = "p"\n[rule.fields]\nx = {css = "b", first_of = ["css:i"], type = "number"}'
    )
    (rule,) = describe_page(Source("http://a/", b"<b>old</b><i>2</i>"), rules)["rules"]
    (field,) = rule["records"][0]["fields"]
    assert field == {
        "field": "x", "type": "number", "value": 2.0, "source": "css:i",
        "failed": [{"source": "css:b", "reason": "no_number", "text": "old"}],
    }  # fmt: skip


def test_a_page_of_no_rule_costs_nothing():
    rules = rules_of('[[rule]]\nhost = "b.test"\n[rule.fields]\nx = "css:b"')
    assert records_of_page(Source("http://a.test/", b"<b>1"), rules) == ([], {})


def test_a_rule_that_fails_on_a_page_costs_it_no_text():
    text = (
        'name = "s"\n[[rule]]\nname = "p"\n[rule.fields]\nx = "xpath://p[re:test(., string(//b))]"'
    )
    done = records_of_page(Source("http://a.test/", b"<b>(</b><p>1"), rules_of(text))
    assert done == ([], {"extract/s/p/pages": 1, "extract/s/p/crashed": 1})


def test_records_that_are_left_out_of_a_page_are_counted_and_a_warning():
    rules = rules_of(
        'name = "s"\n[[rule]]\nname = "p"\neach = "li"\n[rule.fields]\nx = "css:b"\n'
        '[[rule]]\nname = "q"\neach = "h1 ~ li"\n[rule.fields]\nx = "css:b"'
    )
    body = b"<h1>many</h1>" + b"<li><b>1</b>" * 10_001
    records, counts = records_of_page(Source("http://a.test/", body), rules)
    assert len(records) == 10_000
    assert counts["extract/s/p/too_many_records"] == counts["extract/s/q/too_many_elements"] == 1
    figures = figures_of_rules(counts, "s", {"p": ["x"], "q": ["x"]})
    warned = [name for name, text in rule_warnings(figures, {}) if "not all records of 1" in text]
    assert warned == ["p", "q"]
    assert "cut" not in describe_page(Source("http://a.test/", body[:40]), rules)["rules"][0]
    assert describe_page(Source("http://a.test/", body), rules)["rules"][0]["cut"]
