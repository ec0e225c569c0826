"""Writes temporary Arrow files, and maps them into memory without a copy."""

from pathlib import Path

import pyarrow as pa

from .files import new_name
from .processes import writing_scratch


def write_arrow(folder: Path, table: pa.Table) -> str:
    """Writes a table for processes on this machine; returns the path.

    Raises:
        ScratchFull: There is no space.
    """
    path = folder / new_name(".arrow")
    with (
        writing_scratch(path),
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    return str(path)


def read_arrow(path: str) -> pa.Table:
    """Maps a table that ``write_arrow`` wrote into memory, without a copy."""
    return pa.ipc.open_file(pa.memory_map(path)).read_all()
