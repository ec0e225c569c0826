"""Look-ups of many hosts: bounded, each with a time limit, by the rules of the guard."""

import functools
import socket
import threading
import time

from nutbeam.web.exchange.addresses import check_host, look_up_all
from nutbeam.web.network.guard import Guard


class Names:
    """Name servers: some do not answer, some answer private addresses."""

    def __init__(self):
        self.at_once = self.most = self.asked = 0
        self.lock = threading.Lock()
        self.closed = threading.Event()

    def lookup(self, host, port, *_, **__):
        with self.lock:
            self.asked += 1
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        try:
            if "hang" in host:
                self.closed.wait(20)
            if "none" in host:
                raise socket.gaierror(socket.EAI_NONAME, "none")
            if "again" in host:
                raise socket.gaierror(socket.EAI_AGAIN, "again")
            address = "10.0.0.1" if "private" in host else "93.184.215.14"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]
        finally:
            with self.lock:
                self.at_once -= 1


def look_up(hosts, threads=4, timeout=0.3, limit=5.0):
    names = Names()
    try:
        guard = Guard(lookup=names.lookup)
        check = functools.partial(check_host, guard)
        return look_up_all(hosts, check, threads, limit, (timeout, "timeout")), names
    finally:
        names.closed.set()


def test_each_result_has_its_reason():
    found, names = look_up(["good.com", "none.com", "again.com", "private.com", "hang.com"])
    assert found == {
        "good.com": "", "none.com": "unknown", "again.com": "no_answer",
        "private.com": "address_denied", "hang.com": "timeout",
    }  # fmt: skip
    assert names.most <= 4


def test_hanging_servers_hold_up_only_themselves():
    hosts = [f"hang{n}.com" for n in range(4)] + [f"good{n}.com" for n in range(20)]
    found, names = look_up(hosts, limit=60)
    assert sum(result == "timeout" for result in found.values()) == 4
    assert sum(result == "" for result in found.values()) == 20
    assert names.most <= 8


def test_when_all_hang_the_rest_is_left_out():
    found, names = look_up([f"hang{n}.com" for n in range(100)], threads=3, timeout=0.1)
    assert set(found.values()) == {"timeout"}
    assert len(found) < 20
    assert names.most <= 6


def test_the_limit_of_all_ends_it():
    started = time.monotonic()
    found, _ = look_up(["hang.com", "good.com"], timeout=60, limit=0.3)
    assert time.monotonic() - started < 30
    assert found == {"good.com": ""}


def test_nothing_to_look_up():
    assert look_up([])[0] == {}
