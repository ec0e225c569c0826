"""How a run ends early, and its gate and pulse."""

import itertools
import threading
import time

import pytest
from engine_runs import A, pages, pages_or_404, run, urls
from http_clients import Client, HttpOptions
from web_servers import connect_to, reply, serve

from nutbeam.web.engine.engine import Engine, FetchOptions, Task

pytestmark = pytest.mark.usefixtures("each_client")


def test_the_time_limit():
    began = time.monotonic()
    results, engine, _ = run(pages, urls(100), server_delay=0.2, fetch_time_limit=0.7)
    assert 0.6 < time.monotonic() - began < 19  # all would take 19.8 or longer
    assert 1 <= len(results) <= 4
    assert engine.drop_counts == {"time_limit": 100 - len(results)}


def test_closing_stops_everything():
    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        options = FetchOptions(server_delay=0.0, threads=5, threads_per_host=5)
        results = Engine(options, client).run(Task(url) for url in urls(5000))
        next(results)
        results.close()
        asked = len(server.requests)
        time.sleep(0.4)
        assert len(server.requests) <= asked + options.threads  # which were on their way
        alive = [t for t in threading.enumerate() if t.name == "nutbeam-fetch"]
        assert not alive


def test_stop_leaves_the_rest_due():
    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        engine = Engine(FetchOptions(server_delay=0.1), client)
        results = []
        for result in engine.run(Task(url) for url in urls(50)):
            results.append(result)
            engine.stop("lease_lost")
    assert len(results) + engine.drop_counts["lease_lost"] == 50
    assert len(results) <= 2


def test_an_error_of_the_tasks_is_raised():
    def broken():
        yield Task(f"{A}/1")
        raise RuntimeError("no more")

    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        with pytest.raises(RuntimeError, match="no more"):
            list(Engine(FetchOptions(), client).run(broken()))


def gated(gate, tasks, **options):
    with serve(lambda path, _: reply(b"", "404 No") if "robots" in path else reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)), gate=gate)
        engine = Engine(FetchOptions(**{"server_delay": 0.0} | options), client)
        results = list(engine.run(map(Task, tasks)))
        client.close()
    return results, engine, server


def test_a_gate_that_shuts_stops_all():
    asked = itertools.count(1)
    tasks = [url for number in range(5) for url in urls(9, f"http://h{number}.example.com")]
    results, engine, server = gated(lambda: next(asked) <= 17, tasks, threads=4)
    assert len(server.requests) <= 17
    assert len(results) == sum(path != "/robots.txt" for path in server.paths)
    assert engine.drop_counts == {"stopped": len(tasks) - len(results)}
    # It is not the hosts' fault.
    assert all(host.exceptions == 0 for host in engine.hosts())


def test_nothing_is_sent_while_the_gate_takes_its_time():
    opened = threading.Event()
    moments = []

    def gate():
        assert opened.wait(20)
        return True

    def open_later():
        time.sleep(0.5)
        moments.append(time.monotonic())
        opened.set()

    threading.Thread(target=open_later).start()
    results, _, server = gated(gate, urls(3), threads=4)
    assert len(results) == 3
    assert min(moment for _, _, moment in server.requests) >= moments[0]


def test_an_error_of_a_pulse_ends_the_run():
    def pulse(_):
        raise RuntimeError("over")

    engine = Engine(FetchOptions(server_delay=90.0), Client(HttpOptions()), on_pulse=pulse)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="over"):
        list(engine.run([Task("http://a.invalid/")] * 3))
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_a_pulse_comes_though_nothing_else_does():
    told = []
    with serve(lambda path, _: reply(b"", "404 No") if "robots" in path else reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        engine = Engine(FetchOptions(server_delay=5.0), client, on_pulse=told.append)
        assert len(list(engine.run([Task(f"{A}/1")]))) == 1
        client.close()
    waiting = [seconds for seconds in told if 0.5 < seconds < 4.5]
    assert len(waiting) >= 2
    assert 4.5 < told[-1] < 8


@pytest.mark.slow
def test_too_low_a_throughput_leaves_the_rest_due():
    options = {"throughput_threshold_check_after": 0.0, "throughput_threshold_retries": 1}
    options |= {"server_delay": 0.4, "throughput_threshold_pages": 50.0}
    results, engine, _ = run(pages, urls(100), **options)
    assert 1 <= len(results) <= 8
    assert engine.drop_counts == {"throughput": 100 - len(results)}
