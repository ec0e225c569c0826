"""HostDatum, a row of Nutch's HostDb."""

from typing import TypeAlias

import polars as pl

from .hadoop_faults import OnFault, raise_fault
from .metadata_columns import METADATA_LIST
from .record_keys import check_value_class, read_record_keys
from .sequence_files import RecordBlock, SequenceFileHeader
from .single_values import read_single_values
from .typed_values import read_map
from .writables import BadWritable, WritableReader

HostDatumRows: TypeAlias = pl.DataFrame
_COUNTS = (
    *("dns_failures", "connection_failures"),
    *("unfetched", "fetched", "not_modified", "redir_temp", "redir_perm", "gone"),
)
HOST_DATUMS = pl.Schema(
    {
        "host": pl.String(),
        "score": pl.Float32(),
        "last_check": pl.Int64(),  # ms since 1970, or 0
        "homepage_url": pl.String(),
        **dict.fromkeys(_COUNTS, pl.Int64()),
        "metadata": METADATA_LIST,
    }
)


def read_host_datums(
    block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault = raise_fault
) -> HostDatumRows:
    """Returns the records of a block as rows of ``HOST_DATUMS``.

    Args:
        on_fault: Called for each record that is left out.

    Raises:
        HadoopFileError: The file has other classes.
    """
    check_value_class(header, "HostDatum")
    hosts, block = read_record_keys(block, header, on_fault)
    indexes, values = read_single_values(block, _read_host, "a HostDatum", on_fault)
    schema = {name: dtype for name, dtype in HOST_DATUMS.items() if name != "host"}
    rows = pl.DataFrame(values, schema=schema, orient="row")
    return rows.with_columns(host=hosts.gather(indexes)).select(HOST_DATUMS.names())


def _read_host(data: bytes) -> tuple:
    """Reads a value whose numbers have eight bytes; until Nutch 1.17 they had four."""
    for read_number in (WritableReader.read_long, WritableReader.read_int):
        reader = WritableReader(data)
        try:
            score, last_check = reader.read_float(), reader.read_long()
            homepage_url = reader.read_text()
            counts = [read_number(reader) for _ in _COUNTS]
            metadata = [entry._asdict() for entry in read_map(reader)]
            reader.check_end()
            return (score, last_check, homepage_url, *counts, metadata)
        except BadWritable as error:
            problem = error
    raise problem
