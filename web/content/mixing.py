"""Mixes the bits of numbers, over whole columns."""

import numpy as np
from numpy.typing import NDArray


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spreads each number over all bits: the end of SplitMix64. Different numbers stay different.

    >>> mixed(np.array([0, 1], np.uint64)).tolist()
    [0, 6238072747940578789]
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
