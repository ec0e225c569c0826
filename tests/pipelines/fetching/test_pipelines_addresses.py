"""Queues by address over several partitions: dealt by address, and asked at no other."""

import itertools
import socket
import threading

import polars as pl
import pytest
from crawling import files_of, manifest_of, nutbeam, reach, statuses_of
from simulated_web import SimWeb
from web_servers import reply, serve

from nutbeam.io.storage.files import read_bytes
from nutbeam.web.exchange import addresses as module
from nutbeam.web.exchange.addresses import Addresses, AddressOptions, PinnedGuard
from nutbeam.web.exchange.http_options import HttpOptions
from nutbeam.web.network.guard import Denied, Guard

ONE, TWO = "127.0.0.1", "127.0.0.2"
DELAY = 0.1
NAMES = {
    **{f"n{n}.example.org": [ONE] for n in range(3)},
    **{f"n{n}.example.org": [TWO] for n in range(3, 5)},
    "both.example.org": [TWO, ONE],
    "moves.example.org": [TWO],
    "dead.example.org": [],
    "wakes.example.org": [],
}


@pytest.fixture
def names(monkeypatch):
    """What the name server says; to be changed."""
    known = dict(NAMES)

    def lookup(host, port, **_):
        if host[0].isdigit():
            return [(socket.AF_INET, 1, 6, "", (host, port))]
        if not known[host]:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_INET, 1, 6, "", (address, port)) for address in known[host]]

    defaults = Guard.__init__.__defaults__
    monkeypatch.setattr(Guard.__init__, "__defaults__", (*defaults[:-1], lookup))
    return known


@pytest.fixture
def servers():
    def answer(path, _):
        return reply(b"", "404 No") if path == "/robots.txt" else reply(b"x")

    with serve(answer, address=ONE) as one, serve(answer, address=TWO, port=one.port) as two:
        yield one, two


def hosts_asked(server):
    return {head.split("Host: ")[1].split(":")[0] for _, head, _ in server.requests}


@pytest.mark.long
def test_an_address_belongs_to_one_partition_and_its_host_is_requested_at_no_other(
    tmp_path, names, servers
):
    table, port = tmp_path / "table", servers[0].port
    mapping = f"door.example.org:{port}:{ONE}:{port}"
    reach = ("--allow_addresses", "127.0.0.0/8", "--allowed_ports", port, "--connect_to", mapping)
    mode = ("--queue_mode", "ip")
    urls = [f"http://{name}:{port}/{n}" for name in (*names, "door.example.org") for n in "ab"]
    assert nutbeam("inject", table, *urls) == 0
    assert nutbeam("generate", table, *mode, "--num_fetchers", "5", *reach) == 0
    generated = manifest_of(table)
    assert generated.counts["unresolved"] == 4
    (batch,) = generated.batches
    files = files_of(table, f"batches/{batch}/fetchlist")
    rows = pl.concat(
        pl.read_parquet(read_bytes(file)).with_columns(file=pl.lit(str(file))) for file in files
    )
    found = dict(zip(rows["key"].str.extract("example.([a-z0-9]+):"), rows["address"], strict=True))
    assert found == {
        "n0": ONE, "n1": ONE, "n2": ONE, "n3": TWO, "n4": TWO, "both": ONE, "moves": TWO,
        "dead": "", "wakes": "", "door": None,
    }  # fmt: skip
    for address in (ONE, TWO):
        assert rows.filter(pl.col("address") == address)["slot"].n_unique() == 1
    names["moves.example.org"] = [ONE]
    names["wakes.example.org"] = [ONE]
    words = (*mode, *reach, "--server_delay", DELAY)
    assert nutbeam("fetch", table, *words) == 0
    counts = manifest_of(table).counts
    assert counts["dropped/address_changed"] == 4
    assert counts["not_fetched/dns"] == 2
    assert counts["protocol/success"] == 14
    one, two = servers
    short = {host.partition(".")[0] for host in hosts_asked(one)}
    assert short == {"n0", "n1", "n2", "both", "door"}
    assert {host.partition(".")[0] for host in hosts_asked(two)} == {"n3", "n4"}
    for server in servers:  # but for the host of connect_to all there are one neighbour
        moments = [at for _, head, at in server.requests if "Host: door" not in head]
        assert all(after - at >= DELAY for at, after in itertools.pairwise(moments)), server.port
    for job in ("parse", "updatedb"):
        assert nutbeam(job, table) == 0
    statuses = statuses_of(table)
    left = {url for url, status in statuses.items() if status == "db_unfetched"}
    assert left == {url for url in urls if any(f"/{n}." in url for n in ("moves", "wakes", "dead"))}


def test_a_batch_dealt_by_host_is_not_fetched_by_address(tmp_path, capsys, names):
    table = tmp_path / "table"
    assert nutbeam("inject", table, *(f"http://n{n}.example.org/" for n in range(4))) == 0
    assert nutbeam("generate", table, "--num_fetchers", "3") == 0
    words = ("--queue_mode", "ip", "--allow_addresses", "127.0.0.0/8")
    assert nutbeam("fetch", table, *words) == 3
    error = capsys.readouterr().err
    assert "was not generated for queues by ip" in error
    assert "generate with --queue_mode ip, too" in error


@pytest.mark.long
def test_a_batch_dealt_by_address_is_fetched_by_host(tmp_path, names, servers):
    table, port = tmp_path / "table", servers[0].port
    reach = ("--allow_addresses", "127.0.0.0/8", "--allowed_ports", port)
    assert nutbeam("inject", table, *(f"http://n{n}.example.org:{port}/" for n in range(5))) == 0
    assert nutbeam("generate", table, "--queue_mode", "ip", "--num_fetchers", "3", *reach) == 0
    names["n0.example.org"] = [TWO]
    assert nutbeam("fetch", table, *reach, "--server_delay", "0") == 0
    assert manifest_of(table).counts["protocol/success"] == 5


def addresses(**options):
    return Addresses(AddressOptions(**options))


def test_the_address_of_a_host(names):
    names["both.example.org"] = ["2606:4700::1111", "8.8.8.8", "9.9.9.9", "127.0.0.1"]
    names["six.example.org"] = ["2606:4700::1112", "2606:4700::1111"]
    at = addresses()
    assert at.look_up("both.example.org", [80]) == "8.8.8.8"
    assert at.look_up("six.example.org", [80]) == "2606:4700::1111"
    assert at.look_up("dead.example.org", [80]) == ""
    assert at.look_up("n0.example.org", [80]) == ""  # it may not be asked there
    assert at.look_up("both.example.org", [81]) == ""
    assert at.look_up("both.example.org", [81, 443]) == "8.8.8.8"
    mapping = addresses(connect_to=("both.example.org:80:127.0.0.1:8080",))
    assert mapping.look_up("both.example.org", [80]) is None
    assert mapping.look_up("both.example.org", [80, 443]) == "8.8.8.8"
    assert addresses(http_proxy="http://127.0.0.1:3128").look_up("n0.example.org", [80]) is None


def test_a_name_server_that_does_not_answer_ends_nothing(names, monkeypatch):
    over = threading.Event()
    right = Addresses.look_up

    def of(self, host, ports):
        if host == "slow.example.org":
            over.wait(30)
            return None
        return right(self, host, ports)

    monkeypatch.setattr(Addresses, "look_up", of)
    hosts = {f"org.example.{name}": {80} for name in ("slow", "n0", "dead")}
    found = addresses(allow_addresses=("127.0.0.0/8",)).look_up_all(hosts, threads=2, seconds=1.0)
    over.set()
    assert found == {"org.example.n0": ONE, "org.example.dead": ""}
    assert addresses().look_up_all({}) == {}


def test_a_name_that_no_resolver_takes_has_no_address_and_ends_no_look_up():
    hosts = {"org." + "a" * 64: {80}, "com.example..": {80}}
    assert addresses().look_up_all(hosts, threads=1, seconds=9) == dict.fromkeys(hosts, "")


def test_a_host_is_reached_where_it_is_pinned(names):
    options = HttpOptions(allow_addresses=("127.0.0.0/8",))
    guard = PinnedGuard(options, {"both.example.org": ONE, "n0.example.org": ""})
    assert [entry[1] for entry in guard.target("both.example.org", 80).addresses] == [(ONE, 80)]
    assert guard.target("n3.example.org", 80).addresses[0][1] == (TWO, 80)
    with pytest.raises(Denied) as denied:
        guard.target("n0.example.org", 80)
    assert denied.value.reason == module.ADDRESS_CHANGED


@pytest.mark.long
def test_hosts_that_are_reached_by_name_are_queues_by_name(tmp_path):
    with SimWeb(hosts=3, pages=2, seed=7, crawl_delay=0) as web:
        words = ("--queue_mode", "ip", "--num_fetchers", "2", "--rounds", "1", *reach(web))
        assert nutbeam("crawl", tmp_path / "table", *web.seeds, *words) == 0
    assert "db_fetched" in statuses_of(tmp_path / "table").values()


@pytest.mark.long
def test_two_workers_do_not_ask_one_address_at_once(tmp_path, servers):
    # Names that every machine resolves, to addresses that it has; each worker asks by itself.
    table, port = tmp_path / "table", servers[0].port
    hosts = ("localhost", ONE, TWO)
    urls = [f"http://{host}:{port}/{n}" for host in hosts for n in range(8)]
    reach = ("--allow_addresses", "127.0.0.0/8", "--allowed_ports", port, "--queue_mode", "ip")
    two = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
    assert nutbeam("inject", table, *urls) == 0
    assert nutbeam("generate", table, "--num_fetchers", "16", *reach, *two) == 0
    assert nutbeam("fetch", table, *reach, "--server_delay", DELAY, *two) == 0
    assert manifest_of(table).counts["protocol/success"] == len(urls)
    for server, requests in zip(servers, (18, 9), strict=True):
        moments = [at for _, _, at in server.requests]
        assert len(moments) == requests
        assert all(after - at >= DELAY for at, after in itertools.pairwise(moments))
