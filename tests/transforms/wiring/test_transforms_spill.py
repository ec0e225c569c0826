import json
import os
import resource
import tempfile
from pathlib import Path

import apache_beam as beam
import polars as pl
import pytest

from nutbeam.pipelines.running.runner import make_pipeline, run_pipeline
from nutbeam.transforms.elements.chunks import Chunk
from nutbeam.transforms.wiring import in_process
from nutbeam.transforms.wiring.chunk_coder import ChunkCoder

LARGE = pl.DataFrame({"key": [f"com.example:http/{n:06d}" for n in range(20_000)]}).to_arrow()
SMALL = LARGE.slice(0, 10)
CODER = ChunkCoder()


def test_only_the_place_of_a_large_chunk_is_encoded():
    with in_process.spilling():
        large, small = CODER.encode(LARGE), CODER.encode(SMALL)
        assert len(large) < 64
        assert len(small) > 64
        assert CODER.decode(large).equals(LARGE)
        assert CODER.decode(large).equals(LARGE)  # several steps may read it
        assert CODER.decode(small).equals(SMALL)


def test_elsewhere_chunks_go_along_whole():
    assert not in_process.is_open()
    encoded = CODER.encode(LARGE)
    assert len(encoded) > LARGE.nbytes
    with in_process.spilling():
        assert CODER.decode(encoded).equals(LARGE)


def test_a_decoded_chunk_outlasts_the_file():
    with in_process.spilling():
        chunk = CODER.decode(CODER.encode(LARGE))
    assert not in_process.is_open()
    assert chunk.equals(LARGE)


def test_pipelines_that_run_at_once_share_the_file():
    with in_process.spilling():
        encoded = CODER.encode(LARGE)
        with in_process.spilling():
            other = CODER.encode(LARGE)
        assert CODER.decode(encoded).equals(LARGE)
        assert CODER.decode(other).equals(LARGE)


def test_a_place_in_a_file_that_is_gone_is_an_error_and_no_other_data():
    with in_process.spilling():
        encoded = CODER.encode(LARGE)
    with pytest.raises(RuntimeError, match="has ended"):
        CODER.decode(encoded)
    with in_process.spilling():
        CODER.encode(LARGE)
        with pytest.raises(RuntimeError, match="has ended"):
            CODER.decode(encoded)


def test_many_chunks_take_no_more_open_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with in_process.spilling():
        encoded = [CODER.encode(LARGE) for _ in range(60)]
        opened = len(list(Path("/proc/self/fd").iterdir()))
        resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 20, before[1]))
        try:
            chunks = [CODER.decode(one) for one in encoded]
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert all(chunk.equals(LARGE) for chunk in chunks)


def test_a_fork_does_not_write_into_its_parents_file():
    with in_process.spilling():
        first = CODER.encode(LARGE)
        child = os.fork()
        if not child:
            os._exit(len(CODER.encode(LARGE)) < 64)
        assert os.waitpid(child, 0)[1] == 0
        assert CODER.decode(first).equals(LARGE)


def test_without_a_folder_for_the_file_chunks_stay_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with in_process.spilling():
        assert in_process.is_open()
        assert CODER.decode(CODER.encode(LARGE)).equals(LARGE)


def test_no_file_is_left_however_the_process_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with in_process.spilling():
        CODER.encode(LARGE)
        assert list(tmp_path.iterdir()) == []


def test_chunks_stay_in_memory_if_the_disk_is_full():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with in_process.spilling():
        first = CODER.encode(LARGE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGE.nbytes, before[1]))
        try:
            second = CODER.encode(LARGE)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        third = CODER.encode(LARGE)
        assert [len(encoded) < 64 for encoded in (first, second, third)] == [True, False, True]
        assert all(CODER.decode(encoded).equals(LARGE) for encoded in (first, second, third))


MODES = {
    "in memory": [],
    "threads": ["--direct_running_mode=multi_threading", "--direct_num_workers=2"],
    "processes": ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
}


def looking_at(chunks):
    """Returns a function that is pickled by value: workers have no tests to import."""

    def look(grouped):
        number, values = grouped
        same = [chunk.equals(chunks) for chunk in values]
        from nutbeam.transforms.wiring import in_process

        yield number, len(same), all(same), in_process.is_open()

    return look


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_chunks_pass_between_steps_unchanged(mode, tmp_path):
    pipeline = make_pipeline(MODES[mode])
    found = tmp_path / "found"
    large = LARGE

    def copies(number):
        return [(number % 3, large)] * 4

    def keep(row):
        with found.open("a") as file:
            file.write(f"{json.dumps(row)}\n")

    (
        pipeline
        | beam.Create(range(9))
        | beam.Reshuffle()
        | "Copies" >> beam.FlatMap(copies).with_output_types(tuple[int, Chunk])
        | beam.GroupByKey()
        | "Look" >> beam.FlatMap(looking_at(large))
        | "Keep" >> beam.Map(keep)
    )
    run_pipeline(pipeline)
    rows = [json.loads(line) for line in found.read_text().splitlines()]
    assert sorted(rows) == [[n, 12, True, mode != "processes"] for n in range(3)]
    assert not in_process.is_open()
