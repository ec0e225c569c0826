"""Whether a table is well, from what it says of itself: what runs, what failed, what is stale."""

import dataclasses

import pytest

from nutbeam.policy.components.heartbeat import CommandEnd, Heartbeat, PhaseUnderWay
from nutbeam.policy.components.watched_facts import (
    WatchedBatch,
    WatchedCommand,
    WatchedFacts,
    WatchedOperation,
)
from nutbeam.policy.watching.table_health import judge_table, waiting_line

MINUTE = 60_000
NOW = 1_800_000_000_000
WELL = WatchedFacts("mine", NOW, 7, NOW - 5 * MINUTE, "dedup", "1.2.dedup")
BEATING = Heartbeat("9", "crawl", {"pid": 5, "host": "box"}, NOW - 9 * MINUTE, 2.0)


def command(heartbeat=BEATING, written=NOW, *, dead=False, silent=False):
    return WatchedCommand(heartbeat, written, dead, silent)


def operation(ago, *, alive, name="8.update", requested=0):
    job = name.rpartition(".")[2]
    return WatchedOperation(name, job, "b", NOW - ago, "box", 3, alive, requested)


def judge(**facts):
    health = judge_table(dataclasses.replace(WELL, **facts), 3600)
    return health.state, health.exit_code


def test_a_table_is_well_until_its_snapshot_is_too_old():
    assert judge() == ("well", 0)
    assert judge(committed=NOW - 61 * MINUTE) == ("stale", 1)
    assert judge(committed=NOW - 61 * MINUTE, commands=(command(),)) == ("running", 0)
    assert judge(snapshot=0, committed=0) == ("well", 0)


@pytest.mark.parametrize(
    "seen",
    [
        command(dead=True),
        command(silent=True),
        command(dataclasses.replace(BEATING, ended=CommandEnd(NOW, 3, "disk full"))),
        command(dataclasses.replace(BEATING, ended=CommandEnd(NOW, 4, ""))),
    ],
    ids=["killed", "silent", "failed", "nothing fetched"],
)
def test_a_failure_counts_until_later_work_has_committed_and_goes_on(seen):
    assert judge(commands=(seen,)) == ("failed", 2)
    later = dataclasses.replace(BEATING, operation="10", began=NOW + 1)
    assert judge(commands=(command(later), seen)) == ("failed", 2)
    assert judge(commands=(command(later), seen), committed=NOW + 2) == ("running", 0)
    assert judge(commands=(seen,), committed=NOW + 2) == ("failed", 2)  # such as of a generate
    earlier = dataclasses.replace(BEATING, operation="10", began=NOW - 1)
    assert judge(commands=(command(earlier), seen), committed=NOW + 2) == ("failed", 2)


def test_an_interrupted_command_is_no_failure():
    ended = dataclasses.replace(BEATING, ended=CommandEnd(NOW, 130, ""))
    health = judge_table(dataclasses.replace(WELL, commands=(command(ended),)), 3600)
    assert (health.state, health.last.outcome) == ("well", "interrupted")


def test_an_interruption_does_not_hide_the_failure_before():
    failed = dataclasses.replace(BEATING, ended=CommandEnd(NOW - 2, 3, "disk full"))
    interrupted = dataclasses.replace(BEATING, operation="10", ended=CommandEnd(NOW, 130, ""))
    commands = (command(interrupted), command(failed))
    health = judge_table(dataclasses.replace(WELL, commands=commands), 3600)
    assert (health.state, health.last.outcome) == ("failed", "interrupted")
    assert health.problems == ("crawl failed: disk full",)


def test_of_each_command_the_newest_failure_is_named():
    ends = [("crawl", 3), ("crawl", 2), ("compact", 1)]
    commands = [
        command(
            dataclasses.replace(
                BEATING,
                command=name,
                operation=str(ago),
                ended=CommandEnd(NOW - ago, 3, f"{ago} ago"),
            )
        )
        for name, ago in ends
    ]
    health = judge_table(dataclasses.replace(WELL, commands=tuple(commands)), 3600)
    assert health.problems == ("crawl failed: 2 ago", "compact failed: 1 ago")


def test_an_operation_without_a_heartbeat_shows_by_its_process_and_its_leases():
    assert judge(operations=(operation(MINUTE, alive=True),)) == ("running", 0)
    dead = operation(MINUTE, alive=False)
    assert judge(operations=(dead,), begun=dead.began) == ("failed", 2)
    assert judge(operations=(dead,), begun=NOW) == ("well", 0)  # another command has begun since
    # A repair has committed since; or its snapshot may be the damaged one.
    assert judge(operations=(dead,), begun=dead.began, committed=NOW) == ("well", 0)
    facts = dataclasses.replace(
        WELL, operations=(dead,), begun=dead.began, job="", damages=("manifest is damaged",)
    )
    assert judge_table(facts, 3600).problems == facts.damages
    # On another machine: as long as nothing was committed since, or a fetch renews its lease.
    assert judge(operations=(operation(MINUTE, alive=None),)) == ("running", 0)
    assert judge(operations=(operation(9 * MINUTE, alive=None),)) == ("well", 0)
    fetch = operation(9 * MINUTE, alive=None, name="8.fetch", requested=NOW - 1)
    assert judge(operations=(fetch,)) == ("running", 0)
    # How far it is, too.
    fetch = fetch._replace(fetched=30, received=900)
    batches = (WatchedBatch("b", "generated", 0, urls=120),)
    facts = dataclasses.replace(WELL, operations=(fetch,), batches=batches)
    phase = judge_table(facts, 3600).running[0].phase
    assert (phase.done, phase.total, phase.seconds_left) == (30, 120, pytest.approx(27 * 60))


def test_a_heartbeat_knows_its_job_by_the_operations_of_its_launch():
    phase = PhaseUnderWay("fetch", "pages", 9, 3, 1.0, 3.0, 2.0)
    seen = command(dataclasses.replace(BEATING, phase=phase), written=NOW - 2 * MINUTE)
    own = operation(3 * MINUTE, alive=True, name="9.1.fetch")
    others = operation(MINUTE, alive=True, name="99.1.fetch")
    facts = dataclasses.replace(WELL, commands=(seen,), operations=(own, others))
    first, second = judge_table(facts, 3600).running
    assert (first.command, first.job, first.batch, first.phase) == ("crawl", "fetch", "b", phase)
    assert (second.command, second.phase) == ("fetch", None)
    newer = own._replace(job="parse", began=NOW - MINUTE)
    facts = dataclasses.replace(facts, operations=(newer,))
    (work,) = judge_table(facts, 3600).running
    assert (work.job, work.phase) == ("parse", None)  # the heartbeat is of the job before


def test_damage_is_a_failure_and_a_stop_file_is_named():
    facts = dataclasses.replace(WELL, damages=("manifest is damaged",), stop_file="mine/.STOP")
    health = judge_table(facts, 3600)
    assert health.exit_code == 2
    assert health.problems == ("manifest is damaged", "a stop file ends each crawl: mine/.STOP")


def test_a_batch_under_way_does_not_wait():
    batches = (WatchedBatch("b", "generated", NOW - MINUTE, 5), WatchedBatch("c", "parsed", NOW, 5))
    facts = dataclasses.replace(WELL, batches=batches)
    assert waiting_line(facts, ()) == "b waits for fetch, generated 0:01:00 ago, and 1 other"
    running = judge_table(
        dataclasses.replace(facts, operations=(operation(MINUTE, alive=True),)), 3600
    ).running
    assert waiting_line(facts, running) == "c waits for updatedb, generated 0:00:00 ago"
