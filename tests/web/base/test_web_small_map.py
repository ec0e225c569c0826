"""SmallMap: a dict for one entry, which threads may read while another one changes it."""

import random
import sys
import threading

import pytest

from nutbeam.web.base.mappings import SmallMap


@pytest.mark.parametrize("seed", range(20))
def test_a_small_map_behaves_as_a_dict(seed):
    dice = random.Random(seed)
    small, usual = SmallMap(), {}
    for _ in range(200):
        key = dice.choice("abc")
        if dice.random() < 0.5:
            small[key] = usual[key] = dice.random()
        elif key in usual:
            assert small.pop(key) == usual.pop(key)
        else:
            with pytest.raises(KeyError):
                del small[key]
            with pytest.raises(KeyError):
                small[key]
        assert (small.copy(), dict(small), len(small)) == (usual, usual, len(usual))
        assert [small.get(key) for key in "abc"] == [usual.get(key) for key in "abc"]
        assert bool(small) == bool(usual)


def test_an_entry_needs_much_less_than_that_of_a_dict():
    small, usual = SmallMap(), {}
    small["a"] = usual["a"] = None
    assert sys.getsizeof(small) <= sys.getsizeof(usual) / 3


def test_readers_see_the_entries_while_another_thread_changes_others():
    """The key of a value is always its own, and an entry that stays is always found."""
    held = SmallMap()
    held["stays"] = "stays"
    alone = SmallMap()
    end = threading.Event()

    def change():
        while not end.is_set():
            one = SmallMap()
            one["stays"] = "stays"
            shared[0] = one
            for key in ("b", "c"):
                one[key] = alone[key] = key
                del one[key], alone[key]

    shared = [held]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(30_000):
            assert shared[0]["stays"] == "stays"
            assert all(key == value for key, value in shared[0].copy().items())
            assert all(key == value for key, value in alone.copy().items())
            assert alone.get("b") in (None, "b")
    finally:
        end.set()
        thread.join()
        sys.setswitchinterval(interval)
