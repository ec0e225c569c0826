"""What is fuzzed: a reader, what must hold of it, and what its input looks like."""

import dataclasses
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

DATA = Path(__file__).parent.parent
DOC = Path("/usr/share/doc")
_MAX_SEED_BYTES = 30_000


@dataclasses.dataclass(frozen=True)
class Target:
    """A reader under test.

    Attributes:
        name: What the command line calls it.
        check: Takes any bytes; raises where something does not hold.
        seeds: Inputs that it takes, to begin with.
        words: What such inputs are full of.
        max_bytes: Longest input.
    """

    name: str
    check: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    words: Sequence[bytes]
    max_bytes: int = 4096


class Clock:
    """Fails where what is done within takes more processor time than it may."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._start = time.process_time()

    def __exit__(self, *error: object) -> None:
        took = time.process_time() - self._start
        assert took <= self._seconds, f"took {took:.1f} s"


def files(*patterns: str, most: int = 60) -> list[bytes]:
    """Returns the starts of files of Debian's documentation, where it is installed."""
    found = [path for pattern in patterns for path in sorted(DOC.glob(pattern))]
    step = max(1, len(found) // most)
    return [path.read_bytes()[:_MAX_SEED_BYTES] for path in found[::step] if path.is_file()]


def mutated(target: Target, number: int, seed: int = 0) -> Iterator[bytes]:
    """Yields the seeds of a target, and then what a few random changes make of them.

    For where there is no fuzzer that sees which code runs.
    """
    chance = random.Random(seed)
    seeds = target.seeds()
    yield from seeds[:number]
    for _ in range(number - len(seeds)):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 6)):
            at = chance.randint(0, len(data))
            to = min(len(data), at + chance.choice((0, 0, 1, 3, 20)))
            data[at:to] = chance.choice(
                (
                    chance.choice(target.words),
                    chance.choice(target.words) * chance.randint(1, 40),
                    chance.randbytes(chance.randint(0, 4)),
                    chance.choice(seeds)[: chance.randint(0, 200)],
                    data[at : at + chance.randint(0, 50)],
                )
            )
        yield bytes(data[: target.max_bytes])
