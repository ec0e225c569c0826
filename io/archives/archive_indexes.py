"""The indexes of a part of an archive: its own list of captures, CDXJ, Common Crawl's columnar index."""

from collections.abc import Iterable

import pyarrow as pa

from ...policy.components.archive_rows import CAPTURES, URL_INDEX, UrlIndexRows
from ...web.archives.cdxj import IndexedRecord, cdxj_line
from ..storage.files import creating, remove_file
from ..storage.parquet_files import ParquetWriter, row_groups
from ..storage.places import Place


def write_capture_list(path: Place, captures: Iterable[pa.Table]) -> None:
    """Writes the list of the captures of a part."""
    with ParquetWriter(path, CAPTURES) as writer:
        for rows in captures:
            writer.write(rows)


def cdxj_lines(captures: Place) -> list[str]:
    """Returns the lines of a CDXJ index of a list of captures, sorted as bytes are."""
    lines = (
        cdxj_line(IndexedRecord(**row))
        for rows in row_groups(captures, CAPTURES, IndexedRecord._fields)
        for row in rows.to_pylist()
    )
    return sorted(lines, key=str.encode)


def write_cdxj(path: Place, captures: Place) -> None:
    """Writes a CDXJ index of a list of captures."""
    with creating(path, durable=True) as file:
        file.write("".join(cdxj_lines(captures)).encode())


def write_url_index(path: Place, rows: UrlIndexRows) -> None:
    """Writes rows of the columnar index; without rows there is no file."""
    if rows.is_empty():
        remove_file(path)
        return
    with ParquetWriter(path, URL_INDEX, plain=("warc_record_id", "content_digest")) as writer:
        writer.write(rows)
