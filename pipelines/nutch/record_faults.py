"""Damaged records of an import: all are counted, and the first ones of a part are shown."""

import logging
from collections import Counter

from ...web.hadoop.hadoop_faults import HadoopFault

_LOG = logging.getLogger("nutbeam.import_nutch")
_SHOWN = 3


class RecordFaults:
    """Counts damaged records of a part of a file.

    Args:
        address: Address of the file.

    Attributes:
        counts: By counter name.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self.counts = Counter[str]()

    def add(self, reason: str, place: str, detail: str = "") -> None:
        """Notes a fault; ``place`` is such as ``line 7``."""
        self.counts[f"damaged/{reason}"] += 1
        if self.counts.total() <= _SHOWN:
            after = f": {detail}" if detail else ""
            _LOG.warning("%s, %s: %s%s", self._address, place, reason.replace("_", " "), after)

    def note(self, fault: HadoopFault) -> None:
        """Notes a damaged part of a SequenceFile."""
        self.add(fault.reason, f"byte {fault.position}", fault.detail)
