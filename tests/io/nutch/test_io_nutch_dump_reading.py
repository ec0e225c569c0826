"""Dumps are read in pieces, each of whole records."""

import gzip

import pytest

from nutbeam.io.nutch import dump_reading
from nutbeam.io.nutch.dump_reading import read_dump
from nutbeam.io.nutch.nutch_sources import find_nutch_files
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.web.nutch_text.datum_text import NORMAL_DUMP
from nutbeam.web.nutch_text.link_text import LINK_DUMP

RECORD = (
    "http://a.com/{}\tVersion: 7\nStatus: 1 (db_unfetched)\nFetch time: 5\nModified time: 0\n"
    "Retries since fetch: 0\nRetry interval: 60 seconds (0 days)\nScore: 1.0\nSignature: null\n"
    "Metadata: \n \ta={}\n\n"
)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
@pytest.mark.parametrize("packed", [False, True])
def test_the_size_of_pieces_changes_no_record(tmp_path, monkeypatch, size, packed):
    monkeypatch.setattr(dump_reading, "_PIECE_BYTES", size)
    data = "".join(RECORD.format(number, number) for number in range(12)).encode()
    file = tmp_path / "part-00000"
    file.write_bytes(gzip.compress(data) if packed else data)
    (found,) = find_nutch_files(place_of(str(file))).files
    assert (found.kind, found.form) == ("crawldb", NORMAL_DUMP.name)
    pieces = list(read_dump(str(file), NORMAL_DUMP, ""))
    rows = [row for _, records in pieces for row in records.rows.select("url", "metadata").rows()]
    assert rows == [(f"http://a.com/{n}", {"a": str(n)}) for n in range(12)]
    assert [first for first, _ in pieces] == sorted({first for first, _ in pieces})


def test_a_dump_in_latin_1_is_read(tmp_path):
    file = tmp_path / "dump"
    file.write_bytes(
        "http://a.com/\tInlinks:\n fromUrl: http://b.com/ anchor: Bär\n\n".encode("latin-1")
    )
    ((_, records),) = read_dump(str(file), LINK_DUMP, "")
    assert records.rows["anchor"].to_list() == ["Bär"]
