"""Views of sets of rules that extract has applied, and whose rows are in no document."""

import pytest

import nutbeam

RULES = """
[[rule]]
name = "item"
each = "b"
[rule.fields]
group = "css:b"
amount = {css = "b", type = "decimal"}
days = {css = "b", type = "list of date"}
"""
QUERY = 'SELECT url[-6:] AS page, "group", amount FROM "order" ORDER BY 2'


def test_sql_has_a_view_after_extract_alone_also_in_a_copy_and_without_purged_pages(tmp_path):
    (tmp_path / "0.html").write_text("<p>x <b>1.50 EUR</b> <b>free</b> <a href=1.html>next</a>")
    (tmp_path / "1.html").write_text("<b>2024-02-29</b>")
    rules = tmp_path / "order.toml"  # a word of SQL, as is one of its columns
    rules.write_text(RULES)
    seed = f"file://{tmp_path}/0.html"
    table = nutbeam.crawl(tmp_path / "table", seed, schemes=["file"], file_roots=tmp_path, rounds=2)
    with pytest.raises(nutbeam.UsageError, match="there is no view 'order'"):
        table.sql(QUERY)
    table.extract(rules, output=tmp_path / "rows.csv")
    rows = table.sql(QUERY)
    assert rows.select("page", "group").rows() == [
        ("0.html", "1.50 EUR"), ("1.html", "2024-02-29"), ("0.html", "free"),
    ]  # fmt: skip
    (types,) = table.sql(
        'SELECT typeof(amount), typeof(days), typeof(last_fetch_time) FROM "order" LIMIT 1'
    ).rows()
    assert types == ("DECIMAL(28,8)", "TIMESTAMP_MS[]", "TIMESTAMP_MS")
    table.copy(tmp_path / "copy")
    copied = nutbeam.open(tmp_path / "copy")
    assert copied.sql(QUERY).equals(rows)
    copied.purge(url=[seed])
    assert copied.sql(QUERY)["page"].to_list() == ["1.html"]
