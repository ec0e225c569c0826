"""Which batches updatedb takes: several in one call, and such as were not parsed."""

import pytest
from crawling import manifest_of, nutbeam, reach, rows_of, statuses_of
from simulated_web import served_web

from nutbeam.policy.components.schema import Status

SEEDS = [f"http://h{number}.example.com/" for number in range(3)]


web = served_web(hosts=3, pages=4, scope="module")


@pytest.fixture
def batches(web, tmp_path):
    """A table with two batches of one URL each: one is parsed, the other one only fetched."""
    table = tmp_path / "table"
    assert nutbeam("inject", table, *SEEDS) == 0
    for jobs in (("fetch", "parse"), ("fetch",)):
        assert nutbeam("generate", table, "--top_n", 1) == 0
        for job in jobs:
            assert nutbeam(job, table, *(reach(web) if job == "fetch" else [])) == 0
    known = manifest_of(table).batches
    parsed, fetched = sorted(known, key=lambda name: known[name].phase, reverse=True)
    assert (known[parsed].phase, known[fetched].phase) == ("parsed", "fetched")
    return table, parsed, fetched


@pytest.mark.long
def test_several_batches_in_one_call(batches, capsys):
    table, *both = batches
    capsys.readouterr()
    assert nutbeam("updatedb", table, "--batch", ",".join(both), "--operation", "x") == 0
    assert {batch.phase for batch in manifest_of(table).batches.values()} == {"updated"}
    printed = capsys.readouterr().out
    assert all(name in printed for name in both)
    # Again: both are done.
    before = manifest_of(table).snapshot
    assert nutbeam("updatedb", table, "--batch", ",".join(both), "--operation", "x") == 0
    assert manifest_of(table).snapshot == before


@pytest.mark.long
def test_a_batch_that_was_not_parsed_is_fetched_without_text_and_links(batches):
    table, _, fetched = batches
    before = set(statuses_of(table))
    assert nutbeam("updatedb", table, "--batch", fetched) == 0
    assert set(statuses_of(table)) == before
    rows = rows_of(table, "state").to_dicts()
    (row,) = [row for row in rows if row["batch_id"] == fetched]
    assert row["status"] == Status.DB_FETCHED
    assert (row["signature"], row["document"]) == (None, None)
    assert row["page"]


@pytest.mark.long
def test_without_a_name_a_batch_that_was_not_parsed_waits(batches, capsys):
    table, _, fetched = batches
    assert nutbeam("updatedb", table) == 0
    assert nutbeam("updatedb", table) == 1
    hint = f"--batch {fetched} takes a batch that is only fetched"
    assert f"nothing to do: no batch is parsed; {hint}" in capsys.readouterr().err
    assert manifest_of(table).batches[fetched].phase == "fetched"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("a,", "--batch must have an id between commas, got 'a,'"),
        (",", "--batch must have an id between commas, got ','"),
        ("a,b,a", "--batch may name a batch once, got 'a' twice"),
    ],
)
def test_odd_names_are_quoted(batches, names, message, capsys):
    table, *_ = batches
    assert nutbeam("updatedb", table, "--batch", names) == 2
    assert message in capsys.readouterr().err


def test_all_batches_are_checked_before_the_first_is_applied(batches, capsys):
    table, parsed, _ = batches
    assert nutbeam("generate", table, "--top_n", 1) == 0
    known = manifest_of(table).batches
    (generated,) = (name for name in known if known[name].phase == "generated")
    assert nutbeam("updatedb", table, "--batch", f"{parsed},{generated}") == 3
    message = f"batch {generated!r} is generated, updatedb needs one that is fetched"
    assert message in capsys.readouterr().err
    assert manifest_of(table).batches[parsed].phase == "parsed"


@pytest.mark.long
def test_an_updated_batch_without_texts_says_that_it_is_too_late_to_parse_it(batches, capsys):
    table, parsed, fetched = batches
    assert nutbeam("updatedb", table, "--batch", f"{parsed},{fetched}") == 0
    assert nutbeam("parse", table, "--batch", fetched) == 3
    assert f"batch {fetched!r} is updated, and has no texts" in capsys.readouterr().err
    assert nutbeam("parse", table, "--batch", parsed) == 0
    assert "done before" in capsys.readouterr().out
