import contextlib
import dataclasses
import itertools
import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from cell_kinds import HOST_CELL, STATE_CELL
from frames import table_of
from hypothesis import given, settings
from hypothesis import strategies as st

from nutbeam.io.bigtable.cell_layout import Layout, cell_kind, derive_cells
from nutbeam.io.bigtable.cells import decode, due_bytes, encode
from nutbeam.policy.components.columns import Column, Columns
from nutbeam.policy.components.declaration import Kind, Owner, RowLayout
from nutbeam.policy.components.schema import HOSTS, STATE, TEXT
from nutbeam.web.base.errors import UserError

# A component with each type that a row may have.
ANY = pa.schema(
    [
        ("key", TEXT),
        ("due", pa.int64()),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("wide", pa.float64()),
        ("bytes", pa.binary()),
        ("numbers", pa.list_(pa.int16())),
        ("flags", pa.large_list(pa.bool_())),
        ("pair", pa.struct([("count", pa.uint32()), ("name", TEXT)])),
        ("links", pa.large_list(pa.struct([("key", TEXT), ("tags", pa.list_(pa.string()))]))),
        ("counts", pa.map_(TEXT, pa.int64())),
    ]
)


def columns_of(schema):
    return Columns(Column(field.name, field.type, "A value.") for field in schema)


ANY_KIND = Kind("any", columns_of(ANY), layout=RowLayout.ROWS, due="due", later_versions=("pair",))
ANY_CELL = derive_cells(ANY_KIND)
ALL = (STATE_CELL, HOST_CELL, ANY_CELL)
KINDS = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.component)


def values_of(kind):
    """Values of an Arrow type: the usual ones, and those at the edges."""
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_integer(kind):
        low, high = (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
        if pa.types.is_unsigned_integer(kind):
            low, high = 0, 2**kind.bit_width - 1
        return st.one_of(st.integers(low, high), st.sampled_from([low, high, 0]))
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width)
    if pa.types.is_map(kind):
        item = st.none() | values_of(kind.item_type)
        return st.lists(st.tuples(st.text(max_size=6), item), max_size=4)
    if pa.types.is_struct(kind):
        fields = {field.name: st.none() | values_of(field.type) for field in kind}
        return st.fixed_dictionaries(fields)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return st.lists(st.none() | values_of(kind.value_type), max_size=4)
    if kind in (pa.large_binary(), pa.binary()):
        return st.binary(max_size=40)
    return st.text(max_size=20)


def rows_of(schema):
    """Rows, of which any column but the key may be null."""
    columns = {field.name: st.none() | values_of(field.type) for field in schema}
    columns["key"] = st.text(min_size=1, max_size=20)
    return st.lists(st.fixed_dictionaries(columns), max_size=8)


def same(table, other):
    """Compares tables, NaN as a value like others; equal numbers of other bits are not equal."""
    assert table.schema == other.schema

    def plain(value):
        return struct.pack("d", value) if isinstance(value, float) and math.isnan(value) else value

    for name in table.column_names:
        found, wanted = ([plain(v) for v in t.column(name).to_pylist()] for t in (table, other))
        assert found == wanted, name


@pytest.mark.few(1)
@KINDS
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_rows_survive(kind, data):
    table = table_of(kind.schema, *data.draw(rows_of(kind.schema)))
    same(decode(encode(table, kind), kind), table)


@pytest.mark.long
@KINDS
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_rows_survive_in_slices_chunks_and_parts(kind, data):
    table = table_of(kind.schema, *data.draw(rows_of(kind.schema)))
    cut = data.draw(st.integers(0, len(table)))
    cells = encode(pa.concat_tables([table.slice(0, cut), table.slice(cut)]), kind)
    same(decode(encode(table.slice(cut), kind), kind), table.slice(cut))
    same(decode(cells.slice(cut), kind), table.slice(cut))
    chunked = pa.concat_tables([cells.slice(0, cut), cells.slice(cut)])
    same(decode(chunked, kind), table)
    # As they come from elsewhere: with 32-bit offsets.
    short = cells.cast(pa.schema([("key", pa.binary()), ("cell", pa.binary())]))
    same(decode(short, kind), table)
    columns = data.draw(st.lists(st.sampled_from(kind.schema.names), unique=True, min_size=1))
    same(decode(cells, kind, columns), table.select(columns))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=10))
def test_cells_compare_as_due_times_do(times):
    table = table_of(STATE, *({"key": "k", "fetch_time": time} for time in times))
    cells = encode(table, STATE_CELL).column("cell").to_pylist()
    for (time, cell), (other, another) in itertools.combinations(zip(times, cells, strict=True), 2):
        assert (time < other) == (cell[:8] < another[:8])
        assert (time <= other) == (cell < due_bytes(other) + b"\xff" * 300)
        assert cell.startswith(due_bytes(time))


def test_a_row_without_a_time_is_due_last():
    table = table_of(STATE, {"key": "a"}, {"key": "b", "fetch_time": 2**63 - 2})
    never, late = encode(table, STATE_CELL).column("cell").to_pylist()
    assert never[:8] > late[:8]
    assert decode(encode(table, STATE_CELL), STATE_CELL).column("fetch_time").to_pylist() == [
        None, 2**63 - 2,
    ]  # fmt: skip


def test_big_values_and_many_entries():
    rows = [
        {"key": "a", "protocol_message": "é" * 3_000_000, "metadata": [("k", "v" * 1_000_000)]},
        {"key": "b", "metadata": [(f"k{n}", str(n)) for n in range(10_000)]},
        {"key": "c", "signature": bytes(range(256)), "simhash": 2**64 - 1, "fetch_time": -1},
        {"key": "d", "score": math.nan, "cash": -0.0},
    ]
    table = table_of(STATE, *rows)
    found = decode(encode(table, STATE_CELL), STATE_CELL)
    same(found, table)
    assert math.copysign(1, found.column("cash")[3].as_py()) == -1


def test_the_format_does_not_change():
    # Bytes that tables hold: another layout needs another version.
    row = {
        "key": "com.a:http/", "status": 2, "fetch_time": 1, "score": 1.0, "http_code": 200,
        "etag": "é", "metadata": [("k", None)],
    }  # fmt: skip
    (cell,) = encode(table_of(STATE, row), STATE_CELL).column("cell").to_pylist()
    present = sum(1 << STATE_CELL.layouts[0].columns.index(n) for n in row if n != "key")
    fixed = (2, 0, 0, 0, 0, 1.0, 0.0, 0, 0, 200, 0, 0, 0, 0, 0)
    lengths = (2, 0, 0, 0, 0, 0, 0, 0, 0, 13)
    assert cell == (
        bytes.fromhex("8000000000000001")
        + struct.pack("<BQ", 1, present)
        + struct.pack("<BiiqqffQBHBiiii", *fixed)
        + struct.pack("<10I", *lengths)
        + "é".encode()
        + struct.pack("<iii", 1, 1, -1)
        + b"k"
    )
    host = {"key": "com.a", "seed": True, "robots_status": 404, "robots_text": "x", "sitemaps": ""}
    (cell,) = encode(table_of(HOSTS, host), HOST_CELL).column("cell").to_pylist()
    present = sum(1 << HOST_CELL.layouts[1].columns.index(n) for n in host if n != "key")
    assert cell == (
        struct.pack("<BQ", 2, present)
        + struct.pack("<BHqdiqqqqi", 1, 404, 0, 0.0, 0, 0, 0, 0, 0, 0)
        + struct.pack("<3I", 0, 1, 0)
        + b"x"
    )
    row = {"key": "a", "flag": True, "links": [{"key": "é", "tags": ["x", None]}, None]}
    (cell,) = encode(table_of(ANY, row), ANY_CELL).column("cell").to_pylist()
    present = sum(1 << ANY_CELL.newest.columns.index(n) for n in row if n != "key")
    tags = struct.pack("<3i", 2, 1, -1) + b"x"
    link = struct.pack("<2i", 2, len(tags)) + "é".encode() + tags
    links = struct.pack("<3i", 2, len(link), -1) + link
    assert cell == (
        b"\xff" * 8
        + struct.pack("<BQ", 2, present)
        + struct.pack("<Bd", 1, 0.0)
        + struct.pack("<7I", 0, 0, 0, 0, 0, len(links), 0)
        + links
    )


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        (HOST_CELL, {"key": "com.a", "seed": True, "robots_text": "x", "requests": 3}),
        (ANY_CELL, {"key": "com.a", "due": 5, "flag": True, "numbers": [1, None]}),
    ],
)
def test_cells_of_the_first_version_are_read(kind, row):
    first = of_versions(kind, kind.layouts[0])
    table = table_of(kind.schema, row)
    cells = encode(table, first)
    assert cells.column("cell")[0].as_py()[8 if kind.newest.due else 0] == 1
    same(decode(cells, kind), table)


def test_a_row_is_written_in_the_oldest_layout_that_has_its_columns():
    rows = [
        {"key": "a", "etag": "x"},
        {"key": "b", "usage": "train-ai=n", "etag": "y"},
        {"key": "c", "change_shape": 0.5},
        {"key": "d"},
        {"key": "e", "gone_since": 5},
    ]
    table = table_of(STATE, *rows)
    cells = encode(table, STATE_CELL)
    assert [cell[8] for cell in cells.column("cell").to_pylist()] == [1, 2, 2, 1, 3]
    assert cells.column("key").to_pylist() == [b"a", b"b", b"c", b"d", b"e"]
    assert decode(cells, STATE_CELL).equals(table)
    (empty_row,) = encode(table_of(STATE, rows[3]), STATE_CELL).column("cell").to_pylist()
    assert len(empty_row) == 8 + 1 + 8 + 61 + 10 * 4  # as many bytes as before these columns


@KINDS
def test_every_column_is_in_the_newest_layout(kind):
    # A new column of the schema: append a layout with the next version number.
    assert {"key", *kind.newest.columns} == set(kind.schema.names)
    assert [layout.version for layout in kind.layouts] == list(range(1, len(kind.layouts) + 1))
    assert len(kind.newest.columns) <= 64


def test_the_layouts_of_the_state_and_the_hosts_follow_from_their_declarations():
    # As tables have them, written out.
    assert (STATE_CELL.family, STATE_CELL.qualifier) == ("s", b"state")
    fixed = ("status", "fetch_interval", "retries", "last_fetch_time", "modified_time", "score",
             "cash", "simhash", "protocol_status", "http_code", "parse_status", "distance",
             "fixed_interval", "last_inlink_day", "response_ms")  # fmt: skip
    variable = ("etag", "last_modified", "signature", "protocol_message", "content_type",
                "batch_id", "document", "page", "repr_url", "metadata")  # fmt: skip
    later = ("change_shape", "change_days", "max_depth"), ("duplicate_of", "usage")
    assert STATE_CELL.layouts == (
        Layout(1, fixed, variable, due="fetch_time"),
        Layout(2, (*fixed, *later[0]), (*variable, *later[1]), due="fetch_time"),
        Layout(3, (*fixed, *later[0], "gone_since"), (*variable, *later[1]), due="fetch_time"),
    )
    fixed = ("seed", "robots_status", "robots_time", "crawl_delay", "exceptions", "backoff_until",
             "requests", "last_request_time")  # fmt: skip
    variable = ("robots_origin", "robots_text")
    assert (HOST_CELL.family, HOST_CELL.qualifier) == ("h", b"host")
    second = (*fixed, "robots_failing_since", "backoff_level"), (*variable, "sitemaps")
    counts = ("unfetched", "fetched", "gone", "redir_temp", "redir_perm", "notmodified",
              "duplicate", "orphan", "parse_failed", "connection_failures")  # fmt: skip
    third = ("dns_failures", "dns_time", "score")
    assert HOST_CELL.layouts == (
        Layout(1, fixed, variable),
        Layout(2, *second),
        Layout(
            3,
            (*second[0], *counts, *third),
            (*second[1], "homepage", "response_times", "linking_domains", "settings"),
        ),
        Layout(
            4,
            (*second[0], *counts, *third, "purged_since", "domain_urls"),
            (*second[1], "homepage", "response_times", "linking_domains", "settings"),
        ),
        Layout(
            5,
            (*second[0], *counts, *third, "purged_since", "domain_urls"),
            (*second[1], "homepage", "response_times", "linking_domains", "settings", "cookies"),
        ),
    )
    assert (ANY_CELL.family, ANY_CELL.qualifier) == ("any", b"row")


TOO_MANY = pa.schema([("key", TEXT), *((f"n{n}", pa.int8()) for n in range(65))])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"owner": Owner.BATCH}, "a component in rows must be one of the table, 'any' is not"),
        ({"cell": "s:any"}, "component 'any' needs a column family of its own, got 's'"),
        ({"cell": "m:any"}, "component 'any' needs a column family of its own, got 'm'"),
        ({"due": "wide"}, "column 'wide' of component 'any' must be an int64 to be due"),
        ({"name": "a/b"}, "component 'a/b' needs a column family of its own, got 'a/b'"),
        (
            {"columns": columns_of(TOO_MANY), "later_versions": ()},
            "up to 64 columns, got 66 with 'key' first",
        ),
        (
            {"columns": columns_of(ANY.append(pa.field("day", pa.date32())))},
            "column 'day' of component 'any' has a type that rows in Bigtable cannot have: date32",
        ),
    ],
)
def test_a_declaration_that_is_not_possible_in_rows_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        derive_cells(dataclasses.replace(ANY_KIND, **changed))


def test_a_component_that_is_not_declared_is_refused():
    for name in ("outcome", "other"):
        with pytest.raises(UserError, match=f"component '{name}' is of a newer nutbeam: upgrade"):
            cell_kind(name)


def of_versions(kind, *layouts):
    return dataclasses.replace(kind, layouts=layouts)


def test_columns_that_an_older_version_lacks_are_null_and_versions_may_mix():
    old = of_versions(STATE_CELL, Layout(1, ("status",), ("etag",), due="fetch_time"))
    new = of_versions(
        STATE_CELL, *old.layouts, Layout(2, ("score", "status"), ("etag", "metadata"), "fetch_time")
    )
    rows = [
        {"key": f"k{n}", "status": n, "etag": "e" * n, "fetch_time": n, "score": n / 2,
         "metadata": [("a", "b")]}
        for n in range(6)
    ]  # fmt: skip
    table = table_of(STATE, *rows)
    of_old, of_new = (encode(table, kind) for kind in (old, new))
    cells = [(of_old if n % 2 else of_new).column("cell")[n].as_py() for n in range(6)]
    mixed = pa.table({"key": of_new.column("key"), "cell": pa.array(cells, pa.large_binary())})
    found = decode(mixed, new, ("key", "status", "etag", "fetch_time", "score", "metadata"))
    assert found.to_pylist() == [
        row | ({"score": None, "metadata": None} if n % 2 else {}) for n, row in enumerate(rows)
    ]


def test_a_newer_version_is_refused():
    cells = encode(table_of(STATE, {"key": "com.a:http/"}), STATE_CELL)
    cell = bytearray(cells.column("cell")[0].as_py())
    cell[8] = 7
    newer = cells.set_column(1, "cell", pa.array([bytes(cell)], pa.large_binary()))
    with pytest.raises(
        UserError,
        match=r"cell s:state of row 'com.a:http/' has version 7, this nutbeam reads up to 3: upgrade "
        "nutbeam; if no newer nutbeam has written to the table, this is damage$",
    ):
        decode(newer, STATE_CELL)


@pytest.mark.few(1)
@KINDS
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_damaged_cells_are_a_clear_error_or_other_values(kind, data):
    rows = data.draw(rows_of(kind.schema).filter(bool))
    cells = encode(table_of(kind.schema, *rows), kind)
    damaged = [bytearray(cell) for cell in cells.column("cell").to_pylist()]
    row = data.draw(st.integers(0, len(damaged) - 1))
    if data.draw(st.booleans()):
        del damaged[row][data.draw(st.integers(0, len(damaged[row]) - 1)) :]
    else:
        damaged[row][data.draw(st.integers(0, len(damaged[row]) - 1))] ^= data.draw(
            st.integers(1, 255)
        )
    broken = cells.set_column(1, "cell", pa.array(map(bytes, damaged), pa.large_binary()))
    # Any other error would be a traceback for the user.
    with contextlib.suppress(UserError):
        decode(broken, kind)


def test_no_rows():
    for kind in ALL:
        none = decode(encode(kind.schema.empty_table(), kind), kind)
        assert none.schema == kind.schema
        assert len(none) == 0


def test_about_200_bytes_a_row():
    row = {
        "key": "com.example.www:http/some/page", "status": 2, "fetch_time": 1, "score": 1.0,
        "etag": '"5f3c-5d2a"', "signature": bytes(16), "content_type": "text/html",
        "batch_id": "1700000000-abcdef01", "document": "0123456789abcdef.parquet",
        "page": "0123456789abcdef.parquet",
    }  # fmt: skip
    sizes = [
        len(cell) for cell in encode(table_of(STATE, row), STATE_CELL).column("cell").to_pylist()
    ]
    assert np.mean(sizes) < 240
