"""A host's own number of threads: the fewest that its tasks allow, in place of the usual limit."""

from nutbeam.web.engine.host_queue import HostQueue
from nutbeam.web.engine.tasks import Task


def queue(*threads, host="a.com"):
    found = HostQueue(host)
    found.add_host(host, lambda _: None)
    for number in threads:
        task = Task(f"http://{host}/", host=host, threads=number, address="192.0.2.1")
        found.take_over(task)
        found.tasks.append(task)
    return found


def test_own_threads_replace_the_usual_limit():
    assert queue(None).limit(2) == 2
    assert queue(None, 4).limit(2) == 4
    assert queue(4, 1, None).limit(2) == 1


def test_one_at_a_time_with_a_crawl_delay():
    slow = queue(4)
    slow.crawl_delay = 1.0
    assert slow.limit(2) == 1


def test_the_smaller_thread_limit_counts_after_two_queues_are_merged():
    both = queue(4)
    both.absorb(queue(3, host="b.com"))
    assert both.limit(2) == 3
