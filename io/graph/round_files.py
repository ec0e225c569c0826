"""The files of a ranking that is under way: the values of each block after each round.

Their folder has the name of what the ranks depend on: the graph, the method and its rounds. So a
job that is started again continues after the last complete round, whatever its operation id is.
"""

import contextlib
import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...policy.components.graph_schema import Values
from ...web.base.safe_json import json_object
from ..storage.file_errors import unreadable
from ..storage.files import LARGEST_BYTES, creating, names, read_if_there, remove_file
from ..storage.places import Folder, Place

# Start of the names of the folders.
_FOLDER = "rounds-"
_LONGEST_HEAD = 1 << 20


@contextlib.contextmanager
def _damage(path: Place) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise unreadable(path, error) from error


@dataclasses.dataclass(frozen=True)
class Receipt:
    """What a block reports after a round.

    Attributes:
        block: Number of the block.
        round: Number of the round; 0 is before the first one.
        totals: Sums over the block.
        changes: The changes of all rounds before.
        ended: Whether no further round is needed.
    """

    block: int
    round: int
    totals: dict[str, float]
    changes: tuple[float, ...] = ()
    ended: bool = False


@dataclasses.dataclass(frozen=True)
class RoundFiles:
    """The folder of a ranking.

    Attributes:
        root: The folder of the table's files.
        name: Its name below the table.
    """

    root: Folder
    name: str

    def _path(self, number: int, block: int) -> Place:
        return self.root / f"{self.name}/{number:04d}-{block:06d}.values"

    def write(self, receipt: Receipt, values: Values) -> None:
        """Writes the values of a block after a round: a line of JSON, and the arrays."""
        arrays = [(name, array.dtype.str, array.shape) for name, array in values.items()]
        head = {"receipt": dataclasses.asdict(receipt), "arrays": arrays}
        with creating(self._path(receipt.round, receipt.block)) as file:
            file.write(json.dumps(head).encode() + b"\n")
            for array in values.values():
                file.write(np.ascontiguousarray(array).data)

    def receipt(self, number: int, block: int) -> Receipt | None:
        """Returns what a block reported after a round, or None if its file is not there."""
        path = self._path(number, block)
        data = read_if_there(path, LARGEST_BYTES)
        if data is None:
            return None
        with _damage(path):
            record: dict[str, Any] = json_object(data.partition(b"\n")[0])["receipt"]
            return Receipt(**record | {"changes": tuple(record["changes"])})

    def values(self, number: int, block: int, wanted: tuple[str, ...] | None = None) -> Values:
        """Returns values of a block after a round; ``wanted`` names those to read."""
        values: Values = {}
        path = self._path(number, block)
        with _damage(path), path.open_for_reading() as file:
            for name, kind, shape in json_object(file.readline(_LONGEST_HEAD))["arrays"]:
                if np.dtype(kind).hasobject:
                    raise ValueError(f"{name} is no array of numbers")
                data = file.read(np.dtype(kind).itemsize * math.prod(shape))
                if wanted is None or name in wanted:
                    values[name] = np.frombuffer(data, kind).reshape(shape)
        return values

    def last_round(self, blocks: int) -> int | None:
        """Returns the number of the last round of which all blocks are there, or None."""
        parts = Counter(name.split("-")[0] for name in names(self.root / self.name))
        return max((int(n) for n, number in parts.items() if number == blocks and n.isdigit()),
                   default=None)  # fmt: skip

    def forget(self, number: int, block: int) -> None:
        """Deletes the values of a block after a round that is not needed any more."""
        if number >= 0:
            remove_file(self._path(number, block))


def round_files(root: Folder, level: str, *parts: object) -> RoundFiles:
    """Returns the folder of a ranking; ``parts`` are all that its values depend on."""
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    return RoundFiles(root, f"{level}_ranks/{_FOLDER}{digest}")


def remove_rounds(root: Folder, level: str) -> None:
    """Deletes the files of all rankings of a level, also of those that were killed."""
    for name in names(root / f"{level}_ranks"):
        if name.startswith(_FOLDER):
            (root / f"{level}_ranks/{name}").remove_tree()
