"""fsck looks at the records of operations; damaged ones stop nobody with a traceback, and can be repaired."""

import json
import os
import random
import re
import shutil

import pytest
from crawling import manifest_of, nutbeam, place_in, tree
from short_form import first
from web_tables import copied_table, newest

from nutbeam.io.snapshots.operations import MOST_AHEAD, begin
from nutbeam.io.table.opening import open_table
from nutbeam.web.base.clock import replaced_clock

URLS = ("http://a.example.com/", "http://b.example.com/")
# One that is committed, and one that is not.
DONE, OPEN = "one.inject", "two.inject"


@pytest.fixture(scope="module")
def original(backend):
    table = backend.fresh()
    assert nutbeam("inject", table, *URLS, "--operation", "one") == 0
    assert nutbeam("generate", table, "--operation", "three") == 0
    begin(table, "inject", OPEN)
    begin(table, "crawl", "three.crawl")
    yield table
    backend.remove(table)


table = copied_table()


@pytest.fixture
def fsck(capsys):
    """Runs fsck and returns its record; without --repair it changes nothing."""

    def run(table, *words, code=0):
        before = tree(table, ignore=())
        capsys.readouterr()
        assert nutbeam("fsck", table, *words, "--format", "json") == code
        if "--repair" not in words:
            assert tree(table, ignore=()) == before
        return json.loads(capsys.readouterr().out)

    return run


def record_of(table, name, ending=".json"):
    return place_in(table, "operations") / f"{name}{ending}"


def edited(**changes):
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def without_name(path):
    record = json.loads(path.read_text())
    del record["snapshot"]
    path.write_text(json.dumps(record))


def swapped(path):
    other = path.with_name("three.generate.json")
    one, two = path.read_bytes(), other.read_bytes()
    path.write_bytes(two)
    other.write_bytes(one)


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "no JSON": lambda path: path.write_bytes(b"\xff\x1b[31m"),
    "a list": lambda path: path.write_bytes(b"[1]"),
    "a number": lambda path: path.write_bytes(b"7"),
    "too deep": lambda path: path.write_bytes(b"[" * 100_000),
    "lacks a name": without_name,
    "a text for a number": edited(snapshot="1"),
    "a number for a text": edited(job=1),
    "below zero": edited(snapshot=-1),
    "another id": edited(id="else.inject"),
    "far ahead": edited(snapshot=10**15),
    "another job": edited(job="rm -rf"),
    "a job of another command": edited(job="compact"),
    "endless digits": lambda path: path.write_bytes(b'{"seed": %s}' % (b"9" * 5_000)),
    "an odd format": edited(format="new"),
    "an odd process": edited(process="7"),
    "no such batch": edited(job="fetch", batch="nowhere"),
    "swapped": swapped,
}


def damaged(found):
    return sorted(p["path"] for p in found["problems"] if p["kind"] == "operation")


@pytest.mark.few(3)
@pytest.mark.folder_first
@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_record_of_a_committed_operation_is_made_again(table, fsck, what):
    assert fsck(table)["clean"]
    DAMAGE[what](record_of(table, DONE))
    paths = [f"operations/{DONE}.json"]
    paths += ["operations/three.generate.json"] if what == "swapped" else []
    assert damaged(fsck(table, code=3)) == paths
    found = fsck(table, "--repair")
    assert found["operations"] == [{"path": path, "done": "restored"} for path in paths]
    assert fsck(table)["clean"]
    snapshot = newest(table)
    assert nutbeam("inject", table, *URLS, "--operation", "one") == 0  # done before
    assert newest(table) == snapshot
    assert nutbeam("compact", table) == 0


# Words of Python's own, which tell a user nothing.
PYTHON = re.compile(
    "unsupported|int_max_str|recursion|codec|Expecting|Extra data|not supported|indices|NoneType"
)


@pytest.mark.few(6)
@pytest.mark.folder_first
@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_record_is_named_in_words_of_ours(table, what, capsys):
    DAMAGE[what](record_of(table, DONE))
    capsys.readouterr()
    assert nutbeam("fsck", table) == 3
    (line,) = [text for text in capsys.readouterr().out.splitlines() if f"{DONE}.json: " in text]
    assert not PYTHON.search(line), line
    assert len(line) < 200
    nutbeam("inject", table, *URLS, "--operation", "one")
    err = capsys.readouterr().err
    assert not PYTHON.search(err), err
    assert err.count("\n") <= 1


def in_a_row(table, first, last):
    names = [open_table(str(table)).record_name(number) for number in (first, last)]
    return f"{names[0]} to {names[1].rpartition('/')[2]}"


def test_a_record_that_names_a_snapshot_that_was_never_made(table, fsck):
    """Where markers say which snapshots were made, a number a little too large is damage."""
    edited(snapshot=newest(table) + 94)(record_of(table, DONE))
    names = [p["path"] for p in fsck(table, code=3)["problems"]]
    if (place_in(table, "manifest") / "made").is_dir():
        assert names == [f"operations/{DONE}.json"]
        found = fsck(table, "--repair")
        assert found["operations"] == [{"path": f"operations/{DONE}.json", "done": "restored"}]
        assert "repaired" not in found
        assert fsck(table)["clean"]
    else:
        assert names == [in_a_row(table, newest(table) + 1, newest(table) + 94)]


@pytest.mark.folder_first
def test_a_record_is_all_that_says_that_newer_snapshots_were_made(table, fsck, capsys):
    """As in a store, which has no markers: of some manifests one line, of too many none."""
    made = place_in(table, "manifest") / "made"
    shutil.rmtree(made, ignore_errors=True)
    first = newest(table) + 1
    edited(snapshot=first + 3)(record_of(table, OPEN))
    (problem,) = fsck(table, code=3)["problems"]
    assert problem["path"] == in_a_row(table, first, first + 3)
    assert problem["message"] == "are missing: an operation has read or made them"
    edited(snapshot=first + MOST_AHEAD)(record_of(table, OPEN))
    (problem,) = fsck(table, code=3)["problems"]
    assert problem["path"] == f"operations/{OPEN}.json"
    edited(snapshot=first + MOST_AHEAD - 1)(record_of(table, OPEN))
    capsys.readouterr()
    assert nutbeam("fsck", table, "--repair") == 0
    lines = capsys.readouterr().out.splitlines()
    if "bigtable" in str(table):  # no number is left free: all of them become repairs
        assert f"repaired: snapshot {first + MOST_AHEAD}, made from snapshot {first - 1}" in lines
    else:
        assert f"  lost: snapshots {first} to {first + MOST_AHEAD - 1}" in lines
    assert len(lines) < 5
    assert fsck(table)["clean"]


@pytest.mark.folder_first
def test_folders_and_dead_links_in_place_of_records_are_named(table, fsck):
    folder = place_in(table, "operations")
    (folder / "dir.json").mkdir()
    (folder / "x.lost").mkdir()
    (folder / "link.json").symlink_to(folder / "nowhere")
    names = [f"operations/{name}" for name in ("dir.json", "link.json", "x.lost")]
    found = fsck(table, code=3)
    assert damaged(found) == names
    assert all("remove it" in problem["message"] for problem in found["problems"])
    assert damaged(fsck(table, "--repair", "--drop", code=3)) == names


@pytest.mark.long
@pytest.mark.folder_first
@pytest.mark.parametrize("what", ["cut", "far ahead", "another id"])
def test_one_of_an_operation_that_never_committed_is_removed_when_that_is_safe(
    table, fsck, backend, what
):
    path = record_of(table, OPEN)
    DAMAGE[what](path)
    named = [f"operations/{OPEN}.json"]
    # It may be under way.
    left = fsck(table, "--repair", code=3)
    assert damaged(left) == named
    assert "operations" not in left
    removed = [{"path": named[0], "done": "removed"}]
    other = backend.copy(table)
    assert fsck(other, "--repair", "--drop")["operations"] == removed
    assert nutbeam("inject", other, "http://c.example.com/", "--operation", "two") == 0
    assert manifest_of(other).operation == OPEN
    backend.remove(other)
    os.utime(path, (0, 0))  # for long
    assert fsck(table, "--repair")["operations"] == removed
    assert not path.exists()
    assert fsck(table)["clean"]


COMMANDS = {
    "inject": ("http://c.example.com/", "--operation", "one"),
    "compact": (),
    "purge": ("--host", "a.example.com", "--operation", "one"),
    "rollback": ("--to", "1"),
    "readdb": (),
    "generate": (),
    "history": (),
}
# These work on what other operations have pinned, or on this one.
STOPPED = ("inject", "compact")


@pytest.mark.folder_first
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_a_damaged_record_stops_report_it_in_one_line(table, command, capsys):
    record_of(table, DONE).write_bytes(b'{"id": "\x1b]0;')
    capsys.readouterr()
    code = nutbeam(command, table, *COMMANDS[command])
    err = capsys.readouterr().err
    assert code in ((3,) if command in STOPPED else (0, 1)), err
    assert "Traceback" not in err
    if command in STOPPED:
        assert err.count("\n") == 1
        assert "operation file is damaged" in err
        assert f"{DONE}.json" in err
        assert f"run nutbeam fsck {table}" in err


@pytest.mark.folder_first
def test_a_record_of_a_newer_format_is_left_alone(table, fsck, capsys):
    edited(format=99, written_by="99.1")(record_of(table, DONE))
    (problem,) = fsck(table, code=3)["problems"]
    assert problem["newer"]
    assert "upgrade nutbeam to 99.1" in problem["message"]
    before = tree(table, ignore=())
    assert damaged(fsck(table, "--repair", "--drop", code=3)) == [f"operations/{DONE}.json"]
    assert tree(table, ignore=()) == before
    assert nutbeam("inject", table, *URLS, "--operation", "one") == 3
    assert "upgrade nutbeam to 99.1" in capsys.readouterr().err


@pytest.mark.folder_first
@pytest.mark.parametrize("content", [b"", b"x", b"-1", b"9" * 5_000])
def test_a_note_of_a_loss(table, fsck, content):
    path = record_of(table, OPEN, ".lost")
    path.write_bytes(content)
    assert damaged(fsck(table, code=3)) == [f"operations/{OPEN}.lost"]
    assert fsck(table, "--repair")["clean"]
    assert not path.exists()
    assert record_of(table, OPEN).exists()


@pytest.mark.folder_first
def test_a_record_of_a_crawl_is_made_again(table, fsck):
    path = record_of(table, "three.crawl")
    path.write_bytes(b"{")
    assert fsck(table, "--repair")["clean"]
    record = json.loads(path.read_text())
    assert (record["job"], record["snapshot"], record["batch"]) == ("crawl", 1, None)


@pytest.mark.folder_first
def test_leftover_files_are_counted_and_are_no_error(table, fsck, capsys):
    before = fsck(table)["left"]
    assert before["unfinished"] == []
    folder = place_in(table, "operations")
    (folder / ".x.inject.json.0123").write_bytes(b"half")
    (folder / "notes.txt").write_bytes(b"somebody's")
    (folder / "sub").mkdir()
    shutil.copy(record_of(table, DONE), folder / "sub")
    assert fsck(table)["left"]["unfinished"] == []
    began = json.loads(record_of(table, OPEN).read_text())["now"]
    for days, unfinished in ((0.9, []), (1.1, [OPEN])):  # by the clock of jobs, not that of files
        with replaced_clock(lambda now=began + int(days * 86_400_000): now):
            left = fsck(table)["left"]
        assert left["unfinished"] == unfinished
    assert left["temporary"] == before["temporary"] + 1
    assert left["orphans"] == before["orphans"] + 2
    capsys.readouterr()
    with replaced_clock(lambda: began + 2 * 86_400_000):
        assert nutbeam("fsck", table) == 0
    assert f"1 operation that began more than a day ago and never committed, such as {OPEN}" in (
        capsys.readouterr().out
    )


@pytest.mark.few(1)
@pytest.mark.folder_first
@pytest.mark.parametrize("seed", first(3, range(40)))
def test_damage_at_random(table, fsck, seed):
    """Bytes are turned around, cut off or added: either nothing is lost, or fsck repairs it."""
    chance = random.Random(seed)
    for name in (DONE, OPEN, "three.generate", "three.crawl"):
        path = record_of(table, name)
        data = bytearray(path.read_bytes())
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        cut = chance.choice([len(data), chance.randrange(len(data))])
        path.write_bytes(bytes(data[:cut]) + chance.randbytes(chance.randrange(3)))
    assert nutbeam("fsck", table) in (0, 3)
    assert fsck(table, "--repair", "--drop")["clean"]
    assert nutbeam("compact", table, "--snapshot_retention", 0) == 0
    for command in ("inject", "generate"):
        words = URLS if command == "inject" else ()
        assert nutbeam(command, table, *words, "--operation", "two") in (0, 1)
    assert fsck(table)["clean"]
