"""Leases of tables in stores: real processes, stopped and killed, as on disk."""

import itertools
import signal

import pytest
from lease_threads import NEVER, begin
from leasing import TIMES, Holder
from stores_here import in_stores
from waiting import wait_until

from nutbeam.io.batches.attempts import Note
from nutbeam.io.batches.leases import acquire, times_at
from nutbeam.io.storage.files import names
from nutbeam.io.storage.place_addresses import place_of

# A store takes longer to answer than a disk.
SLOWER = TIMES._replace(beat=1.0, fresh=4.0, stale=8.0)


@pytest.mark.long
@pytest.mark.few(2)
@in_stores
def test_one_holds_it_and_the_other_waits(root):
    waited = []
    one = acquire(root, "1-x", 0, times=NEVER)
    assert one.may_send()
    second = begin(acquire, root, "1-x", 0, on_wait=waited.append, times=NEVER)
    wait_until(lambda: len(waited) > 2)
    assert not second
    with acquire(root, "1-x", 1, times=NEVER) as other:
        assert other.may_send()
    one.note(lambda: {"h.example.com": (7.0, 0)})
    one.release()
    assert not one.may_send()
    wait_until(lambda: second)
    assert second[0].may_send()
    assert second[0].hosts == {"h.example.com": Note(7.0, 0)}
    second[0].release()
    found = [name for name in names(root / "batches" / "1-x" / "leases") if name < "p00001"]
    assert [name for name in found if name.endswith(".claim")] == [
        "p00000-000001.claim", "p00000-000002.claim",
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.few(1)
@in_stores
def test_a_killed_holder_is_recognized_as_dead(root, tmp_path):
    with Holder(root, log=tmp_path, times=NEVER) as holder:
        holder.wait_for("sent")
        holder.process.kill()
        holder.process.wait()
        with acquire(root, "1-x", 0, times=NEVER) as lease:
            assert lease.may_send()


@pytest.mark.long
@in_stores
def test_a_stopped_holder_is_superseded_and_sends_no_more(root, tmp_path):
    with Holder(root, log=tmp_path, times=SLOWER) as holder:
        holder.wait_for("sent")
        holder.process.send_signal(signal.SIGSTOP)
        with acquire(root, "1-x", 0, times=SLOWER) as lease:
            sent = len(holder.said("sent"))
            holder.process.send_signal(signal.SIGCONT)
            holder.wait_for("lost")
            assert lease.may_send()
        # One that was between the gate and the log when it was stopped.
        assert len(holder.said("sent")) <= sent + 1


@pytest.mark.long
@pytest.mark.parametrize("address", ["gs"], indirect=True)
def test_two_processes_in_turn(root, tmp_path):
    with (
        Holder(root, log=tmp_path, times=SLOWER, turns=3, sends=3) as one,
        Holder(root, log=tmp_path, times=SLOWER, turns=3, sends=3) as two,
    ):
        for holder in (one, two):
            holder.wait_for("over", 3)
        spans = sorted(
            (begun, ended)
            for holder in (one, two)
            for begun, ended in zip(holder.said("held"), holder.said("over"), strict=True)
        )
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def test_in_stores_a_name_is_written_once_a_second_at_most():
    times = times_at(place_of("gs://bucket/table/batches"))
    assert times.note >= 1.0
    assert times.beat >= 1.0
