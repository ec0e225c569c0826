"""A data file in which a bit has flipped is read with other rows, or with one line that names it."""

import dataclasses
import functools
import itertools

import polars as pl
import pyarrow as pa
import pytest
from frames import frame_of

from nutbeam.io.storage.parquet_files import (
    ParquetWriter,
    collect,
    columns_with_values,
    row_count,
    row_groups,
    scan,
    schema_of,
)
from nutbeam.io.tablets.file_lists import DataFile, load_files, store_files
from nutbeam.policy.components.schema import STATE
from nutbeam.web.base.errors import UserError

STEP = 11  # one bit of each eleventh byte
MASKS = (1, 16, 128)


def test_polars_panics_are_errors_of_a_data_file(tmp_path):
    """Some damage polars finds in its assertions, and a panic is no Exception."""
    path = tmp_path / "state.parquet"
    rows = frame_of(STATE, *({"key": f"k{n:02d}", "score": n / 2, "status": 1} for n in range(50)))
    with ParquetWriter(path, STATE) as writer:
        writer.write(rows.to_arrow().cast(STATE))
        writer.close()

    def read():
        collect(scan([path], STATE).filter(pl.col("score") > 3).select("key", "score"))

    errors = [error for error in errors_of(read, path) if error]
    assert all(str(path) in str(error) and "\n" not in str(error) for error in errors)
    causes = {type(error.__cause__) for error in errors}
    assert pl.exceptions.PanicException in causes, "polars panics no more: delete what catches it"
    assert len(causes) > 1


READERS = {
    "values": lambda path: columns_with_values(path, ["metadata", "repr_url", "score"]),
    "schema": schema_of,
    "count": row_count,
    "rows": lambda path: list(row_groups(path, STATE)),
    "columns": lambda path: list(row_groups(path, STATE, ["key", "metadata"])),
    "frame": lambda path: collect(scan([path], STATE)),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_damaged_end_is_an_error_of_a_data_file(tmp_path, read):
    """Among the damage: names that are no UTF-8, other types, statistics that pyarrow dies of."""
    path = tmp_path / "state.parquet"
    with ParquetWriter(path, STATE) as writer:
        writer.write(pa.table({"key": [f"k{n:02d}" for n in range(50)]}))
    length = int.from_bytes(path.read_bytes()[-8:-4], "little")
    found = errors_of(functools.partial(read, path), path, start=-8 - length, masks=MASKS)
    errors = [error for error in found if error]
    assert len(errors) > 100
    assert all(str(path) in str(error) and "\n" not in str(error) for error in errors)


@pytest.mark.parametrize("known", [True, False])
def test_a_damaged_file_list_is_an_error_of_the_list(tmp_path, known):
    """Lists that old versions have written are known without a checksum."""
    files = [DataFile(f"state/{n}.parquet", 10, 1000, f"a{n}", f"b{n}") for n in range(40)]
    component = store_files(tmp_path, "state", files)
    component = component if known else dataclasses.replace(component, crc32=None)
    path = tmp_path / component.list
    errors = errors_of(lambda: load_files(tmp_path, component), path)
    refused = [str(error) for error in errors if error]
    assert all(error.startswith(f"file list is damaged: {path}: ") for error in refused)
    assert len(refused) == len(errors) if known else refused


def errors_of(read, path, start=4, masks=(1,)):
    """Returns what reading a file has raised, or None, for each bit that flips."""
    whole, errors = path.read_bytes(), []
    for mask, at in itertools.product(masks, range(start % len(whole), len(whole), STEP)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        errors.append(None)
        try:
            read()
        except UserError as error:
            errors[-1] = error
    return errors
