"""What the files of an index and its views really hold: everything is decompressed and searched."""

import json
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from nutbeam.io.indexing.shard_documents import register_analyzers
from nutbeam.io.indexing.shards import unpack_shard
from nutbeam.io.storage.local_place import LocalPlace


def holders(folder, needles, terms=()):
    """Returns the files below a folder that hold a text, as paths relative to it.

    Args:
        folder: A table, or a cache with views.
        needles: Texts that are searched for in decompressed contents.
        terms: (field, term) that are searched for in the dictionaries of tantivy indexes.
    """
    sought = [needle.encode() for needle in needles]
    found = set()
    for path in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.name == "meta.json":
            data += index_bytes(path.parent, terms)
        elif data[:4] == b"PAR1":
            data += _parquet_bytes(path, terms)
        if any(needle in data for needle in sought) or _TERM_FOUND in data:
            found.add(str(path.relative_to(folder)))
    return sorted(found)


_TERM_FOUND = b"<a term that was searched for>"


def _parquet_bytes(path, terms):
    table = pq.read_table(path)
    made = json.dumps(table.drop_columns(_binary(table)).to_pylist(), default=str).encode()
    if "piece" in table.column_names:
        with tempfile.TemporaryDirectory() as folder:
            assert unpack_shard(LocalPlace(path), Path(folder))
            if (Path(folder) / "meta.json").exists():
                made += index_bytes(Path(folder), terms)
    return made


def _binary(table):
    return [name for name in table.column_names if "binary" in str(table.schema.field(name).type)]


def index_bytes(folder, terms):
    """Returns the stored documents of a tantivy index, and a mark if it has one of some terms.

    Documents that are deleted in it count, too.
    """
    import tantivy

    index = tantivy.Index.open(str(folder))
    register_analyzers(index)
    # Otherwise a thread sees that the files change, and makes a lock beside them.
    index.config_reader(reload_policy="manual")
    searcher = index.searcher()
    made = [b"".join(blocks(path.read_bytes())) for path in Path(folder).glob("*.store")]
    assert all(made)
    made += [_TERM_FOUND for field, term in terms if searcher.doc_freq(field, term)]
    return b"".join([path.read_bytes() for path in Path(folder).iterdir()] + made)


def blocks(store):
    """Yields the decompressed blocks of a store of tantivy: each is a size and an LZ4 block."""
    at = 0
    while at + 4 < len(store):
        size = int.from_bytes(store[at : at + 4], "little")
        try:
            block, at = _lz4(store, at + 4, size)
        except IndexError:
            return
        if block is None:
            return  # the list of blocks follows
        yield block


def _lz4(data, at, size):
    """Returns (a block of a known size, where it ends); (None, at) if it is none."""
    out = bytearray()
    while len(out) < size:
        token, at = data[at], at + 1
        length, at = _length(data, at, token >> 4)
        out += data[at : at + length]
        at += length
        if len(out) >= size:
            break
        back = int.from_bytes(data[at : at + 2], "little")
        length, at = _length(data, at + 2, token & 15)
        if not 0 < back <= len(out):
            return None, at
        for _ in range(length + 4):
            out.append(out[-back])
    return (bytes(out), at) if len(out) == size and size else (None, at)


def _length(data, at, length):
    while length >= 15:
        more, at = data[at], at + 1
        length += more
        if more < 255:
            break
    return length, at
