"""Damaged files and manifests, and batches in the wrong phase: one line each."""

import re

import pytest
from bad_input import COMMANDS, batch_in, words_for
from crawling import (
    files_of,
    latest_snapshot,
    manifest_of,
    nutbeam,
    reach,
    tree,
)
from damaging import cut, remove

# What is stored is damaged, or newer.


def damage_manifest(table, change):
    path = table / "manifest" / f"{latest_snapshot(table):08d}.json"
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.few(2)
@pytest.mark.files
@pytest.mark.parametrize("command", ["inject", *COMMANDS])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[: len(data) // 2], "manifest is damaged"),
        (lambda data: b"", "manifest is damaged"),
        (lambda data: b"[]", "manifest is damaged"),
        (lambda data: re.sub(rb'"format": \d+', b'"format": 99', data, count=1), "upgrade nutbeam"),
    ],
    ids=["half", "empty", "other", "newer"],
)
def test_a_manifest_that_cannot_be_read(table, refuse, command, change, message):
    path = damage_manifest(table, change)
    files = tree(table)
    seeds = ["http://a.example.com/"] if command == "inject" else []
    error = refuse(command, table, *seeds, *words_for(command), code=3)
    assert message in error
    assert str(path) in error
    assert tree(table) == files  # a failed command may leave its reason in operations/


def scramble(path):
    path.write_bytes(b"\xa5" * path.stat().st_size)


def file_of(table, kind):
    """Returns a file of a kind; of a batch's files that of the batch whose turn it is."""
    if kind in ("state", "hosts"):
        return files_of(table, kind)[0]
    if kind == "list":
        return table / manifest_of(table).components["state"].list
    phase = {"fetchlist": "generated", "pages": "fetched", "documents": "parsed"}[kind]
    return files_of(table, f"batches/{batch_in(table, phase)}/{kind}")[0]


@pytest.mark.few(2)
@pytest.mark.files
@pytest.mark.parametrize("damage", [remove, cut, scramble])
@pytest.mark.parametrize(
    ("kind", "commands"),
    [
        ("list", ["inject", "generate", "dedup", "updatedb", "readdb", "pages"]),
        ("state", ["inject", "generate", "dedup", "updatedb", "readdb", "pages"]),
        ("hosts", ["inject", "fetch", "updatedb"]),
        ("fetchlist", ["fetch", "generate"]),
        ("pages", ["parse"]),
        ("documents", ["updatedb"]),
    ],
)
def test_a_file_that_is_missing_or_damaged(table, refuse, web, damage, kind, commands):
    path = file_of(table, kind)
    damage(path)
    files, snapshot = tree(table), latest_snapshot(table)
    for command in commands:
        seeds = ["http://h0.example.com/new"] if command == "inject" else []
        connect_to = reach(web) if command == "fetch" else []
        error = refuse(command, table, *seeds, *connect_to, code=3)
        assert path.name in error, error
        assert (" is missing: " in error) == (damage is remove)
        assert latest_snapshot(table) == snapshot
        after = tree(table)
        assert {name: after.get(name) for name in files} == files  # what was there is as it was


@pytest.mark.files
@pytest.mark.parametrize("damage", [remove, cut])
def test_a_documents_file_that_pages_needs(table, refuse, tmp_path, damage):
    updated = batch_in(table, "updated")
    path = files_of(table, f"batches/{updated}/documents")[0]
    damage(path)
    out = tmp_path / "pages.jsonl"
    out.write_text("as it was\n")
    assert path.name in refuse("pages", table, "-o", out, code=3)
    assert out.read_text() == "as it was\n"


@pytest.mark.files
def test_a_table_works_again_after_its_damaged_file_is_restored(table, refuse):
    path = file_of(table, "state")
    data = path.read_bytes()
    path.unlink()
    refuse("generate", table, code=3)
    path.write_bytes(data)
    assert nutbeam("generate", table) == 0
    assert batch_in(table, "generated")


# Batches.


@pytest.mark.parametrize("job", ["fetch", "parse", "updatedb", "dedup"])
def test_a_batch_that_does_not_exist(table, refuse, job):
    files = tree(table)
    error = refuse(job, table, "--batch", "1-none", *words_for(job), code=3)
    assert error.startswith("no batch '1-none' in this table; newest batches: ")
    assert tree(table) == files


@pytest.mark.parametrize(
    ("job", "phase", "needs"),
    [
        ("parse", "generated", "fetched"),
        ("updatedb", "generated", "fetched"),
        ("dedup", "parsed", "updated"),
    ],
)
def test_a_batch_that_has_not_come_so_far(table, refuse, job, phase, needs):
    files, batch = tree(table), batch_in(table, phase)
    error = refuse(job, table, "--batch", batch, code=3)
    assert error == f"batch {batch!r} is {phase}, {job} needs one that is {needs}"
    assert tree(table) == files


@pytest.mark.parametrize("job", ["fetch", "parse", "updatedb"])
def test_a_batch_that_is_past_the_job_is_done(table, capsys, job):
    files, batch = tree(table), batch_in(table, "updated")
    assert nutbeam(job, table, "--batch", batch, *words_for(job)) == 0
    assert "done before" in capsys.readouterr().out
    assert tree(table) == files
