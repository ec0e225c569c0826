"""Values of several classes in one file: NutchWritable, a number of a class and a value of it.

Nutch's databases have values of one class. Files between its jobs have NutchWritable.
"""

import numpy as np

from .hadoop_faults import OnFault
from .record_keys import check_value_class, choose_records, report_rows
from .sequence_files import RecordBlock, SequenceFileHeader

# Classes by their numbers, since Nutch 1.4, and before (in 0.9 and 1.0 with three more at the end).
_CLASSES = (
    *("NullWritable", "BooleanWritable", "LongWritable", "ByteWritable", "BytesWritable"),
    *("FloatWritable", "IntWritable", "MapWritable", "Text", "MD5Hash", "CrawlDatum", "Inlink"),
    *("Inlinks", "NutchIndexAction", "Metadata", "Outlink", "ParseText", "ParseData", "ParseImpl"),
    *("ParseStatus", "Content", "ProtocolStatus", "LinkDatum", "HostDatum"),
)
_OLD_CLASSES = (
    *("NullWritable", "LongWritable", "BytesWritable", "FloatWritable", "IntWritable", "Text"),
    *("MD5Hash", "CrawlDatum", "Inlink", "Inlinks", "MapWritable", "FetcherOutput", "Metadata"),
    *("Outlink", "ParseText", "ParseData", "ParseImpl", "ParseStatus", "Content", "ProtocolStatus"),
    *("Hit", "HitDetails", "Hits"),
)
_DATUM_VERSIONS = range(5, 8)


def unwrap_values(
    block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault
) -> list[tuple[SequenceFileHeader, RecordBlock]]:
    """Returns the records of NutchWritable by class, each with a header that names it.

    Args:
        on_fault: Called for each record without a class.
    """
    check_value_class(header, "NutchWritable")
    numbers = np.full(block.rows, 255, np.int64)
    long_enough = block.value_lengths > 0
    numbers[long_enough] = block.values[block.value_starts[long_enough]]
    classes = _OLD_CLASSES if _is_old(block, numbers) else _CLASSES
    report_rows(block, numbers >= len(classes), "bad_value", "a NutchWritable", on_fault)
    unwrapped = block._replace(
        value_starts=block.value_starts + 1, value_lengths=block.value_lengths - 1
    )
    return [
        (header._replace(value_class=name), choose_records(unwrapped, numbers == number))
        for number, name in enumerate(classes)
        if (numbers == number).any()
    ]


def _is_old(block: RecordBlock, numbers: np.ndarray) -> bool:
    """Returns whether the values of number 7 begin as CrawlDatum does; today it is MapWritable's."""
    chosen = (numbers == _OLD_CLASSES.index("CrawlDatum")) & (block.value_lengths > 1)
    versions = block.values[block.value_starts[chosen] + 1]
    return bool(np.isin(versions, _DATUM_VERSIONS).any())
