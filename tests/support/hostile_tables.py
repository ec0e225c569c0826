"""Tables as strangers make them: names that lead elsewhere, numbers that cannot be, files that fill memory."""

import functools
import io
import json
import os
import zlib

import pyarrow as pa
import pyarrow.parquet as pq


def newest(table):
    """Returns the newest manifest of a table in a folder."""
    return max((table / "manifest").glob("*.json"))


def change_manifest(table, change):
    """Changes the record of the newest snapshot; its digest is right, as a stranger can make it."""
    path = newest(table)
    record = json.loads(path.read_text())
    change(record)
    record.pop("digest", None)
    record["digest"] = f"{zlib.crc32(json.dumps(record).encode()):08x}"
    path.write_text(json.dumps(record))


def with_fields(**fields):
    """Returns a function that sets fields of a table's newest manifest."""
    return lambda table: change_manifest(table, lambda record: record.update(fields))


def with_component(component="state", **fields):
    """Returns a function that sets fields of a component in the newest manifest."""
    return lambda table: change_manifest(
        table, lambda record: record["components"][component].update(fields)
    )


def store_list(table, data, component="state"):
    """Replaces the list of a component; its checksum is right."""
    list_of(table, component).write_bytes(data)
    with_component(component, crc32=zlib.crc32(data))(table)


def list_of(table, component="state"):
    """Returns the place of the list of a component."""
    return table / json.loads(newest(table).read_text())["components"][component]["list"]


def with_rows(component="state", **fields):
    """Returns a function that sets fields of all files in the list of a component."""

    def change(table):
        rows = pq.read_table(list_of(table, component))
        records = [row | fields for row in rows.to_pylist()]
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(records, schema=rows.schema), sink)
        store_list(table, sink.getvalue(), component)

    return change


ROWS_OF_GROWN = 4_096


@functools.cache  # to compress it takes seconds
def grown_file(schema, column, start):
    """Returns a file of some hundred kilobytes whose texts in one column are four gigabytes."""
    sink, rows = io.BytesIO(), ROWS_OF_GROWN // 16
    texts = pa.array([start + "x" * (1 << 20)] * rows, schema.field(column).type)
    columns = [texts if field.name == column else pa.nulls(rows, field.type) for field in schema]
    with pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(16):
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    return sink.getvalue()


def grown_list(table):
    """Makes a list that unpacks to four gigabytes."""
    store_list(table, grown_file(pq.read_schema(list_of(table)), "path", "state/"))


def grown_data(table):
    """Makes a file of the state that unpacks to four gigabytes."""
    row = pq.read_table(list_of(table)).to_pylist()[0]
    path = table / row["path"]
    data = grown_file(pq.read_schema(path), "key", "com.a:http/")
    path.write_bytes(data)
    with_rows(bytes=len(data), rows=ROWS_OF_GROWN, crc32=zlib.crc32(data))(table)


def repeated_text(column):
    """Returns a function that makes a file of the state of some kilobytes, with 180 GB of one text."""

    def change(table):
        row = pq.read_table(list_of(table)).to_pylist()[0]
        path, rows = table / row["path"], 180_000
        schema = pq.read_schema(path)
        text = pa.array(["com.a:http/" + "x" * (1 << 20)])
        texts = {
            "metadata": lambda: pa.MapArray.from_arrays(
                pa.array([*([0] * rows), rows], pa.int32()),
                repeated(pa.array(["k"]), rows),
                repeated(text, rows),
            )
        }
        columns = [
            pa.nulls(rows, field.type) if field.name != column
            else texts.get(column, lambda: repeated(text, rows))()
            for field in schema
        ]  # fmt: skip
        rows_of_file = pa.Table.from_arrays(columns, schema.names)
        pq.write_table(rows_of_file, path, compression="zstd", store_schema=False)
        crc32 = zlib.crc32(path.read_bytes())
        with_rows(bytes=path.stat().st_size, rows=rows, crc32=crc32)(table)

    return change


def repeated_file(table):
    """Names each file of the state two thousand times."""
    rows = pq.read_table(list_of(table))
    sink = io.BytesIO()
    pq.write_table(pa.concat_tables([rows] * 2_000), sink)
    store_list(table, sink.getvalue())


def repeated(text, rows):
    """Returns a column that repeats one text."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), text)


def in_place_of(find, make):
    """Returns a function that puts something else in the place of a file of a table."""

    def put(table):
        path = find(table)
        path.unlink()
        make(path)

    return put


def to(target):
    """Returns a function that makes a link to a place."""
    return lambda path: path.symlink_to(target)


def of_content(data):
    """Returns a function that writes a file."""
    return lambda path: path.write_bytes(data)


NUMBER = int("9" * 200)
HOSTILE = {
    "manifest is a FIFO": in_place_of(newest, os.mkfifo),
    "manifest is endless": in_place_of(newest, to("/dev/zero")),
    "manifest is a link to itself": in_place_of(newest, lambda path: path.symlink_to(path.name)),
    "manifest is deep": in_place_of(newest, of_content(b"[" * 1_000_000)),
    "manifest is large": in_place_of(newest, lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40)),
    "snapshot of 200 digits": with_fields(snapshot=NUMBER),
    "time of 200 digits": with_fields(time=NUMBER),
    "counts of 200 digits": with_fields(counts={"a": NUMBER}),
    "restores itself": with_fields(restores=1),
    "lost of 200 digits": with_fields(lost=[NUMBER]),
    "rules are a list": with_fields(rules=[1]),
    "a rule is an object": with_fields(rules={"scope": {"a": 1}}),
    "options are a list": with_fields(options=[1]),
    "options of a phase are a list": with_fields(options={"parsed": [1]}),
    "options are deep": with_fields(options={"updated": {"exclude": [["x"]]}}),
    "an option of 200 digits": with_fields(options={"top_n": NUMBER}),
    "files of 200 digits": with_component(files=NUMBER),
    "list outside": with_component(list="/etc/passwd"),
    "list by dots": with_component(list="manifest/../../outside/list.parquet"),
    "list in a store": with_component(list="gs://bucket/list.parquet"),
    "list is a FIFO": in_place_of(list_of, os.mkfifo),
    "list is endless": in_place_of(list_of, to("/dev/zero")),
    "list is a link outside": in_place_of(list_of, to("../../../outside/list.parquet")),
    "list unpacks to gigabytes": grown_list,
    "list repeats a file": repeated_file,
    "data outside": with_rows(path="/etc/passwd"),
    "data by dots": with_rows(path="state/../../outside/0123456789abcdef.parquet"),
    "base outside": with_rows(base="../outside/0123456789abcdef.parquet"),
    "rows that cannot be": with_rows(rows=-1),
    "rows for exabytes": with_rows(rows=2**61, bytes=2**61, crc32=None),
    "bytes beyond the limit": with_rows(bytes=2**53 + 1),
    "time beyond the limit": with_rows(min_fetch_time=-(2**60)),
    "statuses that cannot be": with_rows(statuses=-1),
    "data unpacks to gigabytes": grown_data,
    "keys repeat a long text": repeated_text("key"),
    "metadata repeats a long text": repeated_text("metadata"),
    "component outside": lambda table: change_manifest(
        table, lambda record: record["components"].update({"../x": record["components"]["state"]})
    ),
    "batch outside": with_fields(
        batches={"../../x": {"phase": "fetched", "created": 1, "partitions": 1, "urls": 1, "blocks_until": 9}}
    ),
}  # fmt: skip
