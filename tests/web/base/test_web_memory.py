"""Free memory goes back to the system."""

import pathlib

import pytest

from nutbeam.web.base.memory import _glibc, give_back, keep_free_blocks

STATM = pathlib.Path("/proc/self/statm")


pytestmark = pytest.mark.skipif(
    not STATM.exists() or _glibc() is None, reason="needs glibc, and /proc to look at"
)


def test_free_memory_between_used_pieces_goes_back_to_the_system():
    # Pieces that come from the heap, and stay there: used ones come after free ones.
    pieces = [bytes(100_000) for _ in range(1_500)]
    kept, used = pieces[::10], resident()
    del pieces
    give_back()
    assert resident() < used - 75_000_000
    assert len(kept) == 150


def test_free_blocks_are_kept_only_within():
    with keep_free_blocks():
        before = resident()
        block = b"x" * (20 << 20)
        del block
        assert resident() > before + 15_000_000
    assert resident() < before + 5_000_000


def resident():
    return int(STATM.read_text().split()[1]) * 4096
