"""Of several attempts at a partition one sends at a time: real processes, stopped and killed."""

import contextlib
import itertools
import json
import logging
import math
import signal
import time

import pytest
from lease_threads import NEVER, begin
from leasing import TIMES, Holder
from waiting import wait_until

from nutbeam.io.batches import attempts
from nutbeam.io.batches.attempts import FetchedSoFar, Note, fetched_so_far
from nutbeam.io.batches.leases import LeaseLost, acquire
from nutbeam.io.storage.processes import this_process


def names(root, batch="1-x"):
    return sorted(path.name for path in (root / "batches" / batch / "leases").iterdir())


def foreign(root, number=1, **beat):
    """Writes the claim of an attempt on another machine, and perhaps a beat."""
    folder = root / "batches" / "1-x" / "leases"
    folder.mkdir(parents=True, exist_ok=True)
    claim = {**this_process(), "boot": "another", "token": "t", "process": "p", "host": "far"}
    (folder / f"p00000-{number:06d}.claim").write_text(json.dumps(claim))
    path = folder / f"p00000-{number:06d}.beat"
    if beat:
        path.write_text(json.dumps(beat))
    return path


def test_the_first_attempt_does_not_wait(tmp_path):
    with acquire(tmp_path, "1-x", 0, times=TIMES) as lease:
        assert lease.may_send()
        assert (lease.requested_until, lease.hosts) == (-math.inf, {})
        assert names(tmp_path) == ["p00000-000001.claim"]
        lease.check()
    assert not lease.may_send()
    lease.release()  # once more does nothing
    assert names(tmp_path) == ["p00000-000001.beat", "p00000-000001.claim"]


def test_a_released_lease_is_taken_over_at_once(tmp_path):
    acquire(tmp_path, "1-x", 0, times=NEVER).release()
    before = time.monotonic()
    with acquire(tmp_path, "1-x", 0, times=NEVER) as lease:
        assert before - 5 < lease.requested_until <= before
    assert "p00000-000002.claim" in names(tmp_path)


def test_notes_of_a_holder_that_ends_during_a_look_are_not_lost(tmp_path, monkeypatch):
    one = acquire(tmp_path, "1-x", 0, times=NEVER)
    one.note(lambda: {"h.example.com": (7.0, 0)})
    read = attempts._read

    def read_and_end(path):
        data = read(path)
        if path.name.endswith(".beat"):
            one.release()
        return data

    monkeypatch.setattr(attempts, "_read", read_and_end)
    with acquire(tmp_path, "1-x", 0, times=NEVER) as lease:
        assert lease.hosts == {"h.example.com": Note(7.0, 0)}


def test_another_partition_is_free(tmp_path):
    with acquire(tmp_path, "1-x", 0, times=NEVER), acquire(tmp_path, "1-x", 1, times=NEVER) as two:
        assert two.may_send()
        assert two.requested_until == -math.inf


def test_a_second_attempt_in_the_same_process_waits(tmp_path, caplog):
    waited = []
    one = acquire(tmp_path, "1-x", 0, times=NEVER)
    second = begin(acquire, tmp_path, "1-x", 0, on_wait=waited.append, times=NEVER)
    wait_until(lambda: len(waited) > 3)
    assert not second
    assert one.may_send()
    released = time.monotonic()
    one.release()
    wait_until(lambda: second)
    assert second[0].requested_until >= released
    second[0].release()
    (line,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert line.startswith("fetch of batch '1-x' waits for process ")
    assert ", at partition 0 of batch '1-x' since 20" in line


@pytest.mark.long
def test_beats_keep_it_for_long(tmp_path):
    with Holder(tmp_path) as holder:
        holder.wait_for("held")
        second = begin(acquire, tmp_path, "1-x", 0, times=TIMES)
        began = time.monotonic()
        wait_until(lambda: time.monotonic() > began + 2 * TIMES.stale)
        assert not second
        assert not holder.said("lost")
        holder.process.kill()
        wait_until(lambda: second)
        second[0].release()


@pytest.mark.parametrize("reaped", [True, False])
def test_a_dead_process_is_not_waited_for(tmp_path, reaped):
    with Holder(tmp_path) as holder:
        holder.wait_for("sent")
        wait_until(lambda: "p00000-000001.beat" in names(tmp_path))
        holder.process.kill()
        killed = time.monotonic()
        if reaped:
            holder.process.wait()
        # It would wait for ever if it relied on the beats.
        with acquire(tmp_path, "1-x", 0, times=NEVER) as lease:
            assert lease.requested_until >= killed  # it may have sent until just now
            assert lease.hosts == {"h.example.com": Note(7.0, 0)}


@pytest.mark.few(1)
@pytest.mark.parametrize("clock", [0, 7200, -7200])
def test_a_paused_holder_sends_nothing_after_it_is_superseded(tmp_path, clock):
    with Holder(tmp_path, clock=clock) as first, Holder(tmp_path, clock=-clock) as second:
        wait_until(lambda: first.said("held") or second.said("held"))
        if not first.said("held"):
            first, second = second, first
        wait_until(lambda: second.said("started"))
        first.just_sent()
        first.process.send_signal(signal.SIGSTOP)
        held = second.wait_for("held")
        second.wait_for("sent", 20)
        first.process.send_signal(signal.SIGCONT)
        lost = first.wait_for("lost")
        assert [moment for moment in first.said("sent") if moment >= held] == []
        ((_, _, reason),) = [line for line in first.lines() if line[1] == "lost"]
        assert reason.startswith("partition 0 of batch '1-x' was taken over by another fetch")
        # Nor was it quick: between the last of the one and the first of the other lies the rest.
        assert held - max(first.said("sent")) > TIMES.stale - TIMES.fresh
        ((_, _, requested_until),) = [line for line in second.lines() if line[1] == "held"]
        assert max(first.said("sent")) < requested_until < held
        wait_until(lambda: max(second.said("sent")) > lost + 2 * TIMES.beat)
        assert not second.said("lost")


@pytest.mark.long
def test_a_paused_holder_that_was_not_superseded_beats_and_goes_on(tmp_path):
    path = tmp_path / "batches" / "1-x" / "leases" / "p00000-000001.beat"
    with Holder(tmp_path) as holder:
        wait_until(path.exists)
        holder.just_sent()
        holder.process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        before = path.read_bytes()
        wait_until(lambda: time.monotonic() > stopped + 2 * TIMES.fresh)
        assert path.read_bytes() == before
        sent = len(holder.said("sent"))
        holder.process.send_signal(signal.SIGCONT)
        holder.wait_for("sent", sent + 1)
        assert path.read_bytes() != before
        assert not holder.said("lost")


def test_a_holder_that_cannot_beat_sends_nothing_until_it_can(tmp_path, caplog):
    with acquire(tmp_path, "1-x", 0, times=TIMES) as lease:
        path = tmp_path / "batches" / "1-x" / "leases" / "p00000-000001.beat"
        path.mkdir()  # no file can take its place
        wait_until(lambda: lease._fresh_until < time.clock_gettime(time.CLOCK_BOOTTIME))
        sent = begin(lease.may_send)
        began = time.monotonic()
        wait_until(lambda: time.monotonic() > began + TIMES.fresh)
        assert not sent
        path.rmdir()
        wait_until(lambda: sent)
        assert sent == [True]
        lease.check()
    assert len([r for r in caplog.records if "cannot renew a lease" in r.getMessage()]) == 1


def test_a_holder_that_cannot_beat_for_very_long_gives_up(tmp_path):
    with acquire(tmp_path, "1-x", 0, times=TIMES._replace(give_up=2.0)) as lease:
        (tmp_path / "batches" / "1-x" / "leases" / "p00000-000001.beat").mkdir()
        wait_until(lambda: not lease.may_send())
        with pytest.raises(LeaseLost, match="the lease could not be renewed: cannot write"):
            lease.check()


@pytest.mark.long
def test_another_machine_is_waited_for_until_it_is_silent(tmp_path):
    path = foreign(tmp_path, beat=1)
    second = begin(acquire, tmp_path, "1-x", 0, times=TIMES)
    began = time.monotonic()
    for number in itertools.count(2):
        last = time.monotonic()
        path.write_text(json.dumps({"beat": number, "hosts": {"a.b": [3.0, 0]}}))
        time.sleep(TIMES.beat)
        if last > began + 1.5 * TIMES.stale:
            break
        assert not second
    wait_until(lambda: second)
    with second[0] as lease:
        assert time.monotonic() >= last + TIMES.stale
        # It has sent nothing for as long as its last beat is not fresh.
        assert last < lease.requested_until <= time.monotonic() - (TIMES.stale - TIMES.fresh)
        assert lease.hosts == {"a.b": Note(3.0, 0)}


def test_a_release_by_another_machine_counts_as_a_request_just_now(tmp_path):
    foreign(tmp_path, released=time.monotonic() - 1e5)  # of its own clock, which says nothing
    before = time.monotonic()
    with acquire(tmp_path, "1-x", 0, times=NEVER) as lease:
        assert lease.requested_until >= before


def test_beats_say_how_much_of_a_batch_is_fetched(tmp_path):
    for number, pages in enumerate((70, 4)):
        with acquire(tmp_path, "1-x", number, times=TIMES) as lease:
            lease.show(lambda pages=pages: FetchedSoFar(pages, 100 * pages))
    assert fetched_so_far(tmp_path, "1-x") == (74, 7400)
    foreign(tmp_path, 2)  # the next attempt at the first partition has no beat yet
    assert fetched_so_far(tmp_path, "1-x") == (74, 7400)
    foreign(tmp_path, 2, pages=71, bytes=9)
    assert fetched_so_far(tmp_path, "1-x") == (75, 409)
    foreign(tmp_path, 2, pages=-1, bytes=[])  # damaged: the one before counts
    assert fetched_so_far(tmp_path, "1-x") == (74, 7400)


def test_a_damaged_beat_is_none(tmp_path):
    foreign(tmp_path).write_bytes(b'{"beat": 1, "rel')
    second = begin(acquire, tmp_path, "1-x", 0, times=TIMES)
    wait_until(lambda: second)
    second[0].release()


def overlaps(holders):
    """Returns those times of sending that lie within another one's."""
    spans = []
    for holder in holders:
        for held, over in zip(holder.said("held"), holder.said("over"), strict=True):
            spans.append((held, over))
    spans.sort()
    return [(a, b) for a, b in itertools.pairwise(spans) if b[0] < a[1]]


def test_only_one_of_many_holders_has_a_partition_at_a_time(tmp_path):
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(Holder(tmp_path, turns=4, sends=2)) for _ in range(3)]
        for holder in holders:
            holder.wait_for("over", 4)
    assert overlaps(holders) == []
    assert all(not holder.said("lost") for holder in holders)


@pytest.mark.long
def test_only_one_of_many_batches_sends_at_a_time(tmp_path):
    batches = ["1-x", "2-y", "3-z"]
    with contextlib.ExitStack() as stack:
        holders = [
            stack.enter_context(
                Holder(tmp_path, mine, [b for b in batches if b != mine], turns=3, sends=2)
            )
            for mine in batches
        ]
        for holder in holders:
            holder.wait_for("over", 3)
    assert overlaps(holders) == []
    assert all(not holder.said("lost") for holder in holders)


@pytest.mark.parametrize("rival", ["1-x", "2-y"])
def test_a_rival_that_comes_between_look_and_claim_is_seen(tmp_path, rival):
    rivals, waited = [], []

    def others():
        yield "2-y"
        if not rivals:  # the first look is over: it saw nobody
            rivals.append(acquire(tmp_path, rival, 0, times=NEVER))

    mine = begin(acquire, tmp_path, "1-x", 0, others, waited.append, NEVER)
    wait_until(lambda: len(waited) > 2)
    assert not mine
    assert rivals[0].may_send()
    rivals[0].check()
    rivals[0].release()
    wait_until(lambda: mine)
    mine[0].release()


@pytest.mark.long
def test_a_batch_whose_fetch_is_paused_is_superseded_too(tmp_path):
    with Holder(tmp_path, "1-x") as first:
        first.just_sent()
        first.process.send_signal(signal.SIGSTOP)
        with acquire(tmp_path, "2-y", 0, lambda: ["1-x"], times=TIMES) as lease:
            held = time.monotonic()
            first.process.send_signal(signal.SIGCONT)
            first.wait_for("lost")
            assert [moment for moment in first.said("sent") if moment >= held] == []
            assert lease.may_send()
        # What is left of the first batch can be fetched again.
        with acquire(tmp_path, "1-x", 0, lambda: ["2-y"], times=NEVER) as again:
            assert again.may_send()


def test_a_second_batch_gets_the_host_notes_of_the_first(tmp_path):
    with acquire(tmp_path, "1-x", 3, times=NEVER) as first:
        first.note(lambda: {"h.example.com": (4.0, 123)})
    before = time.monotonic()
    with acquire(tmp_path, "2-y", 0, lambda: ["1-x"], times=NEVER) as second:
        assert second.hosts == {"h.example.com": Note(4.0, 123)}
        assert before - 5 < second.requested_until <= before


def test_a_wait_for_another_batch_is_logged_once(tmp_path, caplog):
    waited = []
    first = acquire(tmp_path, "1-x", 0, times=NEVER)
    second = begin(acquire, tmp_path, "2-y", 0, lambda: ["1-x"], waited.append, NEVER)
    wait_until(lambda: len(waited) > 3)
    assert not second
    assert not (tmp_path / "batches" / "2-y").exists()  # who waits claims nothing
    first.release()
    wait_until(lambda: second)
    second[0].release()
    (line,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert line.startswith("fetch of batch '2-y' waits for process ")
    assert "partition 0 of batch '1-x' since 20" in line


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "batches").write_text("")
    with pytest.raises(Exception, match="Not a directory"):
        acquire(tmp_path, "1-x", 0, times=TIMES)
