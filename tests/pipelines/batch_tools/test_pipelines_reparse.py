"""parse --reparse parses stored bodies with today's options: nothing is fetched, rows lead to the new texts."""

import pytest
from command_output import printed
from crawling import files_of, manifest_of, nutbeam, reach, rows_of, state_of
from simulated_web import served_web
from web_tables import Snapshot, copied_table

from nutbeam.io.batches.batches import named_documents

web = served_web(hosts=2, pages=6, scope="module")
SIMHASH = ("--signature", "simhash")


@pytest.fixture(scope="module")
def original(web, backend):
    """A table with two updated batches, a parsed one and a fetched one."""
    made = str(backend.fresh())
    assert nutbeam("crawl", made, *web.seeds, "--rounds", "2", *reach(web)) == 0
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


def test_all_batches_are_parsed_again_without_a_request_and_rows_follow(table, web, capsys):
    before, phases = state_of(table), {n: b.phase for n, b in manifest_of(table).batches.items()}
    requests = len(web.requests())
    printed(capsys, "parse", table, "-reparse", *SIMHASH)
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


def test_two_batches_at_once_are_refused(tmp_path, refuse):
    error = refuse("parse", "mine/batches/1-a", "-reparse", "--batch", "1-b")
    assert error == "--batch 1-b and 'mine/batches/1-a' are two batches: give one"


def test_a_table_without_bodies_has_nothing_to_do(backend, refuse):
    made = str(backend.fresh())
    assert nutbeam("inject", made, "http://a.example.com/") == 0
    error = refuse("parse", made, "-reparse", code=1)
    assert error == f"nothing to do: no batch of table {made!r} has bodies"
