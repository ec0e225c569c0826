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
    batches,
    collect,
    columns_with_values,
    row_count,
    row_groups,
    scan,
    schema_of,
)
from nutbeam.io.tablets.file_lists import DataFile, load_files, store_files
from nutbeam.policy.components.schema import STATE, to_frame
from nutbeam.web.base.errors import UserError

STEP = 11  # one bit of each eleventh byte
MASKS = (1, 16, 128)


@pytest.mark.long
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
# What the damage must cause for a reader, among others.
CAUSES = dict.fromkeys(READERS, UnicodeDecodeError) | {"frame": pl.exceptions.SchemaError}


@pytest.mark.long
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.few(2)
def test_a_damaged_end_is_an_error_of_a_data_file(tmp_path, reader):
    """Among the damage: names that are no UTF-8, other types, statistics that pyarrow dies of."""
    path = tmp_path / "state.parquet"
    with ParquetWriter(path, STATE) as writer:
        writer.write(pa.table({"key": [f"k{n:02d}" for n in range(50)]}))
    length = int.from_bytes(path.read_bytes()[-8:-4], "little")
    read = functools.partial(READERS[reader], path)
    found = errors_of(read, path, start=-8 - length, masks=MASKS)
    errors = [error for error in found if error]
    assert all(str(path) in str(error) and "\n" not in str(error) for error in errors)
    assert CAUSES[reader] in {type(error.__cause__) for error in errors}


@pytest.mark.few(1)
@pytest.mark.parametrize("read", [row_groups, batches])
def test_a_text_that_is_no_utf8_is_an_error_of_a_data_file(tmp_path, read):
    path = tmp_path / "state.parquet"
    with ParquetWriter(path, STATE) as writer:
        writer.write(pa.table({"key": [f"ключ {n:02d}" for n in range(50)]}))
    end = -8 - int.from_bytes(path.read_bytes()[-8:-4], "little")

    def rows():
        for group in read(path, STATE, ["key"]):
            to_frame(group).to_dicts()

    errors = [error for error in errors_of(rows, path, masks=MASKS, end=end) if error]
    assert all(str(path) in str(error) and "\n" not in str(error) for error in errors)
    assert any("UTF8" in str(error) for error in errors)


def test_columns_of_nulls_empty_lists_and_empty_maps_have_no_values(tmp_path):
    path, kind = tmp_path / "a.parquet", pa.map_(pa.large_string(), pa.large_string())
    schema = pa.schema([(f"{name}_{of}", of_type) for name in ("no", "late", "first")
                        for of, of_type in [("text", pa.large_string()), ("map", kind),
                                            ("list", pa.large_list(pa.int32()))]])  # fmt: skip
    given = {"text": "a", "map": [("a", "b")], "list": [1]}
    absent = {"text": None, "map": [], "list": []}
    with ParquetWriter(path, schema) as writer:
        for has in (("first",), (), ("late",)):  # row groups
            rows = {f.name: [None, (given if f.name.split("_")[0] in has else absent)[f.name.split("_")[1]]]
                    for f in schema}  # fmt: skip
            writer.write(pa.table(rows, schema=schema))
    found = columns_with_values(path, schema.names)
    assert found == {name for name in schema.names if not name.startswith("no_")}
    assert columns_with_values(path, ["no_map", "late_list", "unknown"]) == {"late_list"}
    with ParquetWriter(path, schema):
        pass
    assert columns_with_values(path, schema.names) == set()


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
def test_a_damaged_file_list_is_an_error_of_the_list(tmp_path, known):
    """Lists that old versions have written are known without a checksum."""
    files = [DataFile(f"state/{n}.parquet", 10, 1000, f"a{n}", f"b{n}") for n in range(40)]
    component = store_files(tmp_path, "state", files)
    component = component if known else dataclasses.replace(component, crc32=None)
    path = tmp_path / component.list
    errors = errors_of(lambda: load_files(tmp_path, component), path, masks=MASKS)
    refused = [str(error) for error in errors if error]
    assert all(error.startswith(f"file list is damaged: {path}: ") for error in refused)
    assert len(refused) == len(errors) if known else refused


def errors_of(read, path, start=4, masks=(1,), end=None):
    """Returns what reading a file has raised, or None, for each bit that flips."""
    whole, errors = path.read_bytes(), []
    for mask, at in itertools.product(masks, range(len(whole))[start:end:STEP]):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        errors.append(None)
        try:
            read()
        except UserError as error:
            errors[-1] = error
    return errors
