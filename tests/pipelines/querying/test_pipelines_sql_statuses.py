"""sql takes short names of statuses, and refuses text that is no status."""

import pytest
from crawling import nutbeam
from sql_rows import rows_of

pytest.importorskip("duckdb")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("condition", "same"),
    [
        ("s.status = 'gone'", "status = 'db_gone'"),
        ("s.\"STATUS\" <> 'fetched'", "status not in ('db_fetched', 'db_notmodified')"),
        ("status in ('gone', 'redir_temp')", "status in ('db_gone', 'db_redir_temp')"),
        ("status not in ('fetched', 'gone')",
         "status not in ('db_fetched', 'db_notmodified', 'db_gone')"),
        ("/* é 'gone' */ not (status = 'gone') -- 'gone'", "status != 'db_gone'"),
        ("url <> 'gone' and concat('gone', status) = 'gonedb_gone'", "status = 'db_gone'"),
        ("exists (select 1 from state t where t.key = s.key and t.status = 'gone')",
         "status = 'db_gone'"),
        ("status = any(['gone', 'fetched'])",
         "status in ('db_gone', 'db_fetched', 'db_notmodified')"),
        ("not status <> all(['gone'])", "status = 'db_gone'"),
        ("status in ['gone']", "status = 'db_gone'"),
        ("status::varchar = 'gone'", "status = 'db_gone'"),
        ("E'\\'' != '' and status = -- 'gone'\n 'gone' -- 'gone'", "status = 'db_gone'"),
        ("\"status\" != /* 'x' */ 'gone' and url != 'a status = ''x'' b'", "status != 'db_gone'"),
        ("status like 'db_g%' and status ilike 'DB_GONE' and status glob 'db_g*'",
         "status = 'db_gone'"),
        ("status in (select 'db_gone') and lower(status) = 'db_gone'", "status = 'db_gone'"),
    ],
)  # fmt: skip
def test_short_names_of_statuses(ask, condition, same):
    query = "select count(*) as n from state s where {}"
    (found,), (right,) = (rows_of(ask, query.format(c)) for c in (condition, same))
    assert found == right
    assert found["n"] > 0


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("status = 'fetchd'", "there is no status 'fetchd': the statuses are db_unfetched, "),
        ("\"state\".status!='FETCHED'", "there is no status 'FETCHED'"),
        ("status in ('gone', 'db_fetch')", "there is no status 'db_fetch'"),
        ("status = any(['db_fetch'])", "there is no status 'db_fetch'"),
    ],
)  # fmt: skip
def test_conditions_on_unknown_statuses_are_errors(ask, condition, message):
    assert message in ask(f"select count(*) from state where {condition}", code=2)


def test_text_that_is_no_status_keeps_its_meaning(ask):
    (row,) = rows_of(ask, "select 'gone' as a, x.status as b from (select 'gone' as status) x "
                          "where x.status = 'gone' and x.status in ('gone')")  # fmt: skip
    assert row == {"a": "gone", "b": "gone"}
    (row,) = rows_of(ask, "select x.status as b from (select 'well' as status) x "
                          "where x.status = 'well' and status like 'we%'")  # fmt: skip
    assert row == {"b": "well"}
    label = "case when status = 'gone' then 'gone' else 'there' end"
    (row,) = rows_of(ask, f"select count(*) as n from state where {label} = 'gone'")
    assert row["n"] > 0
    assert rows_of(ask, "select 1 as n where 'none' in (select coalesce(status, 'none') "
                        "from state) or coalesce(null, 'x') = 'x'")  # fmt: skip


@pytest.mark.parametrize(
    "condition",
    [
        "'gone' = status",
        "status like 'gone'",
        "lower(status) = 'gone'",
        "status in (select 'gone')",
        "url in (select url from (select url, status as st from state) where st = 'gone')",
    ],
)
def test_an_empty_result_has_a_hint_where_a_short_name_has_no_effect(table, capsys, condition):
    for what in ("url", "count(*)"):
        assert nutbeam("sql", table, f"select {what} from state where {condition}") == 0
        hint = "write 'db_gone' for 'gone': short names work in status = 'gone' and in status IN ("
        assert hint in capsys.readouterr().err


def test_a_result_with_rows_has_no_hint(table, capsys):
    assert nutbeam("sql", table, "select 'gone' as word, status from state limit 1") == 0
    assert capsys.readouterr().err == ""
