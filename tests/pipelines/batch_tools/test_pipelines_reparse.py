"""parse --reparse parses stored bodies with today's options: nothing is fetched, rows lead to the new texts."""

import pytest
from command_output import printed
from crawling import files_of, manifest_of, nutbeam, reach, rows_of, state_of
from simulated_web import served_web
from web_tables import Snapshot, copied_table

from nutbeam.io.batches.batches import named_documents

pytestmark = pytest.mark.folder_first

web = served_web(hosts=3, pages=5, scope="module")
SIMHASH = ("--signature", "simhash")


@pytest.fixture(scope="module")
def original(web, backend, kept_crawls):
    """A table with two updated batches, a parsed one and a fetched one."""
    made = str(backend.fresh())
    kept_crawls.make(web, made, "--rounds", "2")
    for job in ("parse", "stop"):
        assert nutbeam("generate", made, "--top_n", "2") == 0
        assert nutbeam("fetch", made, *reach(web)) == 0
        assert job == "stop" or nutbeam(job, made) == 0
    return made


table = copied_table()


def signatures(table):
    """Returns the signatures in the state, and in the texts that it names, by key."""
    pinned, rows = Snapshot(table), state_of(table).drop_nulls("document")
    texts = named_documents(pinned.table, pinned.manifest(), rows, ("key", "signature"))
    return dict(rows.select("key", "signature").rows()), dict(texts.rows())


@pytest.mark.long
@pytest.mark.few(1)
def test_all_batches_are_parsed_again_without_a_request_and_rows_follow(table, web, capsys):
    before, phases = state_of(table), {n: b.phase for n, b in manifest_of(table).batches.items()}
    requests = len(web.requests())
    printed(capsys, "parse", table, "--reparse", "--all", *SIMHASH)
    assert len(web.requests()) == requests
    after = {n: b.phase for n, b in manifest_of(table).batches.items()}
    assert after == {n: "parsed" if p == "fetched" else p for n, p in phases.items()}
    in_state, in_texts = signatures(table)
    assert in_state == in_texts
    rows = state_of(table)
    changed = before["signature"].ne_missing(rows["signature"])
    # A page without text has the md5 of its body, with any signature.
    assert 3 < changed.sum() <= before["document"].drop_nulls().len()
    assert rows.drop("signature").equals(before.drop("signature"))
    # Each file of documents is there once, in place of the one before.
    for batch in after:
        assert len(files_of(table, f"batches/{batch}/documents")) == len(
            files_of(table, f"batches/{batch}/pages")
        )
    assert nutbeam("fsck", table) == 0
    assert nutbeam("updatedb", table) == 0
    again = printed(capsys, "parse", table, "--reparse", *SIMHASH)
    assert "signatures_changed" not in again


def test_new_options_change_the_texts(table, capsys):
    batch = min(manifest_of(table).batches)
    before = rows_of(table, f"batches/{batch}/documents")
    assert before["outlinks"].list.len().sum() > 0
    printed(capsys, "parse", table, "--reparse", "--batch", batch, "--exclude", ".")
    after = rows_of(table, f"batches/{batch}/documents")
    assert after["outlinks"].list.len().sum() == 0
    assert after["text"].to_list() == before["text"].to_list()


def test_rows_with_a_newer_body_stay(table, web, capsys):
    """A page whose newest body is in another batch keeps what that batch says."""
    batch = min(manifest_of(table).batches)
    key = rows_of(table, f"batches/{batch}/documents")["key"][0]
    assert nutbeam("inject", table, web.seeds[0], "--overwrite_known") == 0
    row = state_of(table).filter(key=key).row(0, named=True)
    assert row["document"] is None
    assert "signatures_changed" not in printed(capsys, "parse", table, "-reparse", "--batch", batch,
                                               *SIMHASH)  # fmt: skip
    assert state_of(table).filter(key=key).row(0, named=True) == row


def test_bad_words_for_reparse_get_one_line(table, refuse, capsys):
    assert nutbeam("generate", table, "--top_n", "1") == 0
    generated = next(n for n, b in manifest_of(table).batches.items() if b.phase == "generated")
    error = refuse("parse", table, "-reparse", "--batch", generated, code=3)
    assert error == f"batch '{generated}' is generated, parse needs one that is fetched"
    assert "no batch '1-a' in this table" in refuse(
        "parse", table, "-reparse", "--batch", "1-a", code=3
    )


def test_a_batch_is_named_as_nutch_names_segments(table, capsys, refuse):
    """Also of the phases before: its folder is there, and is no table."""
    phases = {name: batch.phase for name, batch in manifest_of(table).batches.items()}
    updated, *_, fetched = sorted(phases)
    assert f"batch {updated}:" in printed(capsys, "parse", f"{table}/batches/{updated}", "-reparse")
    assert f"batch {fetched}:" in printed(capsys, "parse", f"{table}/batches/{fetched}/")
    assert {n for n, b in manifest_of(table).batches.items() if phases[n] != b.phase} == {fetched}
    segment = f"{table}/batches/{updated}"
    error = refuse("parse", segment, "-reparse", "--batch", "1-b")
    assert error == f"--batch 1-b and '{segment}' are two batches: give one"


def test_a_table_whose_address_looks_like_that_of_a_batch_is_a_table(tmp_path, capsys):
    table = tmp_path / "batches" / "mine"
    assert nutbeam("inject", table, "http://a.example/") == 0
    assert "chosen 1" in printed(capsys, "generate", table)
    assert nutbeam("parse", table, "--reparse") == 1


def test_a_table_without_bodies_has_nothing_to_do(backend, refuse):
    made = str(backend.fresh())
    assert nutbeam("inject", made, "http://a.example.com/") == 0
    error = refuse("parse", made, "-reparse", code=1)
    assert error == f"nothing to do: no batch of table {made!r} has bodies"
