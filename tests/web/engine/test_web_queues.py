"""Whose turn it is, on a clock of our own."""

import heapq
import itertools
import math
import random
import zlib
from collections import Counter

import pytest

from nutbeam.web.base.clock import EARLIEST_MS, replaced_clock
from nutbeam.web.engine.host_queue import HostTurn, origin_of
from nutbeam.web.engine.pace import FetchOptions, RunTimes, Throughput
from nutbeam.web.engine.queues import Queues
from nutbeam.web.engine.robots_search import RobotsSearch
from nutbeam.web.engine.tasks import HostRecord, Result, Task
from nutbeam.web.exchange.status import Response
from nutbeam.web.robots.robots import robots_steps


class Clock:
    """A monotonic clock that only the test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    clock = Clock()
    with replaced_clock(lambda: EARLIEST_MS + int(clock.now * 1000)):
        yield clock


def tasks_of(lengths):
    return [Task(f"http://{host}/{n}", host=host) for host, many in lengths for n in range(many)]


def done(queue, task):
    return HostTurn(queue, task, requested=True, failed=False)


def work(clock, queues, threads, latency, take_turn=done):
    """Lets threads work through queues; returns the (moment, host) of each request."""
    begin, requested, busy, ties = clock.now, [], [], itertools.count()
    while True:
        turns, due = queues.take_due([], threads - len(busy))
        for turn in turns:
            requested.append((clock.now - begin, turn[1].host))
            heapq.heappush(busy, (clock.now + latency, next(ties), turn))
        if not busy and due == math.inf:
            return requested
        clock.now = min([due] + [moment for moment, _, _ in busy[:1]])
        while busy and busy[0][0] <= clock.now:
            queues.take_due([take_turn(*heapq.heappop(busy)[2])], 0)


def queues_of(clock, lengths, records=None, **options):
    times = RunTimes(monotonic=clock)
    queues = Queues(FetchOptions(**options), (records or {}).get, times)
    queues.add(tasks_of(lengths))
    return queues


def bound(lengths, threads, delay, latency):
    """Seconds that nobody can undercut: of the longest host, and of all work together."""
    longest = max(many for _, many in lengths)
    total = sum(many for _, many in lengths)
    return max(longest * latency + (longest - 1) * delay, total * latency / threads)


def test_the_longest_queue_is_begun_first_so_the_tail_is_short(clock):
    lengths = [*((f"h{n}", 5) for n in range(400)), ("long", 60)]  # known last, asked first
    requested = work(clock, queues_of(clock, lengths, server_delay=1.0), 10, 0.1)
    assert requested[0][1] == "long"
    assert len(requested) == 2060
    assert requested[-1][0] + 0.1 <= 1.02 * bound(lengths, 10, 1.0, 0.1)


@pytest.mark.parametrize("seed", range(4))
def test_the_total_time_is_near_the_bound(clock, seed):
    dice = random.Random(seed)
    lengths = [(f"h{n}", 1 + int(dice.paretovariate(1.2)) % 200) for n in range(500)]
    threads, delay, latency = dice.choice([(4, 1.0, 0.1), (20, 1.0, 0.1), (50, 5.0, 0.3)])
    requested = work(clock, queues_of(clock, lengths, server_delay=delay), threads, latency)
    assert Counter(host for _, host in requested) == dict(lengths)
    assert requested[-1][0] + latency <= 1.1 * bound(lengths, threads, delay, latency) + delay


def test_no_host_is_requested_before_its_delay_is_over(clock):
    lengths = [(f"h{n}", 4) for n in range(30)]
    requested = work(clock, queues_of(clock, lengths, server_delay=2.0), 5, 0.25)
    for host, _ in lengths:
        moments = [moment for moment, name in requested if name == host]
        assert all(b - a >= 2.25 - 1e-9 for a, b in itertools.pairwise(moments)), host


def test_a_queue_that_has_begun_is_not_starved_by_longer_ones(clock):
    queues = queues_of(clock, [("short", 3)], server_delay=1.0)
    (first,), _ = queues.take_due([], 1)
    queues.add(tasks_of((f"h{n}", 50) for n in range(100)))
    queues.take_due([done(*first)], 0)
    clock.now += 1.0
    assert [task.host for _, task in queues.take_due([], 1)[0]] == ["short"]


def test_a_queue_that_grows_moves_up(clock):
    queues = queues_of(clock, [("a", 3), ("b", 4)])
    queues.add(tasks_of([("a", 10)]))
    (first,), _ = queues.take_due([], 1)
    assert first[1].host == "a"
    queues.take_due([done(*first)], 0)
    assert len(work(clock, queues, 1, 0.1)) == 16  # each is listed once


def test_without_a_delay_all_is_done_too(clock):
    lengths = [("a", 3), ("b", 50), ("c", 1)]
    requested = work(clock, queues_of(clock, lengths, server_delay=0.0), 2, 0.1)
    assert Counter(host for _, host in requested) == dict(lengths)


def test_a_redirect_is_requested_in_the_turn_of_its_host(clock):
    queues = queues_of(clock, [("a", 2), ("b", 3)], server_delay=1.0)
    target = Task("http://b/target", host="b")

    def take_turn(queue, task):
        follow = target if task.url == "http://a/0" else None
        return HostTurn(queue, task, requested=True, failed=False, follow=follow)

    requested = work(clock, queues, 4, 0.1, take_turn)
    # robots.txt is not asked for here: b's four requests are a delay apart, as if all were its own.
    assert [round(moment, 3) for moment, host in requested if host == "b"] == [0.0, 1.1, 2.2, 3.3]
    assert queues.is_idle()
    assert queues.take_due([], 1) == ([], math.inf)  # more may be added until end_feed() is called
    queues.end_feed()
    assert queues.take_due([], 1) == ([], None)


ENDS = {
    "again": lambda queue, task: HostTurn(queue, task, again=True, requested=True),
    "failed": lambda queue, task: HostTurn(queue, task, requested=True, failed=True),
    "not sent": lambda queue, task: HostTurn(queue, task),
    "purged": lambda queue, task: HostTurn(queue, task, again=True, drop_queue="robots_deferred"),
    "busy": lambda queue, task: HostTurn(
        queue, task, requested=True, failed=True, busy=True, wait=9e9
    ),
    "address": lambda queue, task: HostTurn(queue, task, again=True, address="10.0.0.1"),
    "dropped": lambda queue, task: HostTurn(queue, task, drop="address_changed"),
    "held": lambda queue, task: held(queue, task),
}


def held(queue, task):
    """A page whose robots.txt is at another host, or is there by now."""
    origin = origin_of(task.url)
    search = queue.searches.pop(origin, None)
    if search is not None and search.answer is not None:
        return HostTurn(queue, task)
    search = queue.searches[origin] = RobotsSearch(robots_steps(("bot",), origin, 5))
    host = f"h{zlib.crc32(task.url.encode()) % 12}.d1.com"  # some have pages of their own
    search.url, search.owner = f"http://{host}/robots.txt", "d1.com"
    return HostTurn(queue, task, search=search, follow=Task(search.url, host=host, robots=True))


def hop(queue, task, dice):
    """Any end of a request for a robots.txt that others wait for."""
    if queue.hosts[task.host].address is None and dice.random() < 0.5:
        return HostTurn(queue, task, again=True, address="10.0.0.2")
    turn = HostTurn(queue, task, requested=True, answer=Response(task.url, status=404))
    turn.failed = dice.choice([True, False])
    turn.wait = dice.choice([0.0, 0.0, 9e9])
    return turn


@pytest.mark.parametrize("threads_per_host", [1, 3])
@pytest.mark.parametrize("mode", ["host", "domain", "ip"])
def test_every_way_a_turn_may_end_frees_its_slot(clock, mode, threads_per_host):
    """Random ends: in the end nothing is in progress, and each task has an end or a reason."""
    dice = random.Random(5)
    for _ in range(60):
        options = {"threads_per_host": threads_per_host, "threads_per_address": 2}
        lengths = [(f"h{n}.d{n % 3}.com", dice.randrange(1, 6)) for n in range(9)]
        queues = queues_of(clock, lengths, queue_mode=mode, server_delay=1.0, **options)
        ended = Counter()

        def take_turn(queue, task, ended=ended):
            if task.robots:
                return hop(queue, task, dice)
            end = dice.choice(list(ENDS))
            if end == "again" and dice.random() < 0.9:
                end = "failed"
            if end == "address" and queue.hosts[task.host].address is not None:
                end = "not sent"
            turn = ENDS[end](queue, task)
            ended["done"] += not (turn.again or turn.search or turn.drop)
            return turn

        work(clock, queues, 4, 0.1, take_turn)
        assert queues.is_idle()
        assert ended["done"] + queues.drop_counts.total() == sum(many for _, many in lengths)


def test_a_robots_txt_that_others_wait_for_comes_before_hosts_that_have_not_begun(clock):
    lengths = [("a", 9), *((f"h{n}", 5) for n in range(50)), ("v", 1)]

    def take_turn(queue, task):
        if task.url == "http://a/0" and not queue.searches:
            search = queue.searches["http://a"] = RobotsSearch(
                robots_steps(("bot",), "http://a", 5)
            )
            search.url = "http://v/robots.txt"
            follow = Task(search.url, host="v", robots=True)
            return HostTurn(queue, task, requested=True, search=search, follow=follow)
        turn = HostTurn(queue, task, requested=True, failed=False)
        turn.answer = Response(task.url, status=404) if task.robots else None
        return turn

    requested = work(clock, queues_of(clock, lengths, server_delay=1.0), 1, 0.1, take_turn)
    assert [host for _, host in requested[:2]] == ["a", "v"]
    assert Counter(host for _, host in requested)["a"] == 10  # the first page twice


def test_a_failure_of_an_earlier_round_makes_the_delay_longer(clock):
    records = {"a": HostRecord("a", backoff_level=3)}
    queues = queues_of(clock, [("a", 2)], records, server_delay=1.0, exceptions_delay=1.0)
    requested = work(clock, queues, 1, 0.1, ENDS["failed"])
    assert 8 <= requested[1][0] - requested[0][0] - 1.1 <= 8 * 1.2


def test_successes_lower_the_level_again(clock):
    records = {"a": HostRecord("a", backoff_level=9)}
    queues = queues_of(clock, [("a", 5)], records, server_delay=1.0)
    levels = []

    def take_turn(queue, task):
        levels.append(queue.backoff_level)
        return HostTurn(queue, task, requested=True, failed=False)

    work(clock, queues, 1, 0.1, take_turn)
    assert levels == [9, 4, 2, 1, 0]


def test_slow_seconds_must_be_in_a_row():
    options = FetchOptions(
        throughput_threshold_pages=2,
        throughput_threshold_retries=3,
        throughput_threshold_check_after=10.0,
    )
    throughput = Throughput(options, now=100.0)
    pages = [*(0 for _ in range(12)), 9, 9, 9, 20, 20, 20, 20]
    low = [throughput.too_low(101.0 + n, some) for n, some in enumerate(pages)]
    # Ten seconds do not count; two slow ones, a fast one, two slow ones, a fast one, three slow ones.
    assert low == [False] * 18 + [True]


def test_seconds_of_a_pause_do_not_count_for_throughput():
    options = FetchOptions(
        throughput_threshold_pages=2,
        throughput_threshold_retries=1,
        throughput_threshold_check_after=0.0,
    )
    throughput = Throughput(options, now=0.0)
    assert not throughput.too_low(1.0, 4)
    throughput.pause(60.0)
    assert not throughput.too_low(61.5, 5)
    assert throughput.too_low(62.5, 5)


def test_turns_say_when_to_ask_again(clock):
    queues = queues_of(clock, [("a", 2), ("b", 1)], server_delay=5.0)
    queues.workers = 9
    queues.end_feed()
    turns, due = queues.take_due([], 9)  # hosts are looked for first, one at a time
    assert [task.url for _, task in turns] == ["http://a/0", "http://b/0"]
    assert due == float("inf")  # until one of them is back
    clock.now += 1
    back = [
        HostTurn(queue, task, requested=True, failed=False, address="") for queue, task in turns
    ]
    turns, due = queues.take_due(back[:1], 8)
    assert (turns, due) == ([], clock.now + 5)
    clock.now += 2
    assert queues.take_due(back[1:], 9) == ([], due)
    assert queues.throttled_seconds() == pytest.approx(2 * 8 / 9)
    clock.now = due
    (last,), due = queues.take_due([], 9)
    assert last[1].url == "http://a/1"
    assert queues.take_due([HostTurn(*last, requested=True, failed=False)], 9) == ([], None)


def test_no_more_turns_than_there_is_room_for(clock):
    queues = queues_of(clock, [(f"h{n}", 1) for n in range(5)], server_delay=5.0)
    assert [len(queues.take_due([], room)[0]) for room in (0, 2, 9, 9)] == [0, 2, 3, 0]


def test_uncollected_results_hold_turns_back(clock):
    queues = queues_of(clock, [(f"h{n}", 1) for n in range(1002)], server_delay=5.0)
    alerts = []
    queues.alert = lambda: alerts.append(clock.now)
    taken, _ = queues.take_due([], 1000)
    back = [HostTurn(*turn, Result(turn[1], None, 33, 1), requested=True) for turn in taken]
    assert queues.take_due(back, 9) == ([], float("inf"))
    assert not alerts
    assert len(queues.collect(0, 0.0)) == 1000
    assert len(alerts) == 1
    assert len(queues.take_due([], 9)[0]) == 2
    queues.collect(0, 0.0)
    assert len(alerts) == 1  # they were not held back


def test_changes_of_the_queues_alert_the_loop(clock):
    queues = Queues(FetchOptions(), {}.get, RunTimes(clock.now + 60, monotonic=clock))
    alerts = []
    queues.alert = lambda: alerts.append(None)
    for number, change in enumerate(
        (lambda: queues.add(tasks_of([("a", 1)])), queues.end_feed, lambda: queues.stop("x")), 1
    ):
        change()
        assert len(alerts) == number
    assert queues.take_due([], 9) == ([], None)


def test_after_the_time_limit_nothing_is_waited_for(clock):
    queues = Queues(FetchOptions(), {}.get, RunTimes(clock.now + 60, monotonic=clock))
    queues.add(tasks_of([("a", 2)]))
    queues.end_feed()
    (turn,), due = queues.take_due([], 9)
    assert due == clock.now + 60
    clock.now = due
    assert queues.take_due([], 8) == ([], float("inf"))  # but for what is under way
    assert queues.drop_counts == {"time_limit": 1}
    assert queues.take_due([HostTurn(*turn, address="", again=True)], 9) == ([], None)
    assert queues.drop_counts == {"time_limit": 2}
