import ipaddress
import socket

import pytest
from http_clients import Client, HttpOptions
from web_servers import reply, serve

from nutbeam.web.network.guard import Denied, Destination, Guard, is_public, parse_connect_to

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.255.255",
    "172.32.0.1",
    "192.0.1.1",
    "198.17.255.255",
    "223.255.255.254",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]
DENIED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.8",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1::808:808",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::1",
    "2001:0:808:808::80ff:fffe",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:c0a8:1::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "2606:4700:4700::1111%1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "not an address",
    "",
]
# What requests and getaddrinfo take for 127.0.0.1, and what a URL may say.
LOOPBACK_SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "127.0.0.1.",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "user@127.0.0.1",
    "user:1.1.1.1@127.0.0.1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_passes_global_unicast(address):
    assert is_public(address)


@pytest.mark.parametrize("address", DENIED)
def test_private_and_special_addresses_are_denied(address):
    assert not is_public(address)


@pytest.fixture(scope="module")
def canary():
    with serve(lambda path, connection: reply(b"secret")) as server:
        yield server


@pytest.mark.usefixtures("each_client")
@pytest.mark.parametrize("host", LOOPBACK_SPELLINGS)
def test_no_spelling_reaches_loopback(canary, host):
    named = {"agent_name": "bot", "agent_email": "a@b"}
    client = Client(HttpOptions(**named, allowed_ports=("1-65535",), timeout=1))
    response = client.get(f"http://{host}:{canary.port}/")
    # "dns": what this machine's resolver does not take for an address at all.
    assert response.error in ("address_denied", "bad_url", "dns")
    assert response.body == b""
    assert canary.connections == 0


@pytest.mark.usefixtures("each_client")
@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://127.0.0.1/", "http://", "//a/"])
def test_other_schemes_are_no_urls(url):
    assert Client(HttpOptions()).get(url).error == "bad_url"


def lookup_of(*answers):
    """A resolver that gives the next answer each time it is asked."""
    remaining = list(answers)

    def lookup(host, port, **_):
        address = remaining.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    return lookup


def test_connects_to_the_address_that_was_checked():
    guard = Guard(allowed_ports=["80"], lookup=lookup_of("1.1.1.1", "127.0.0.1"))
    first = guard.target("rebind.example", 80)
    assert first == Destination(((socket.AF_INET, ("1.1.1.1", 80)),), False)
    assert guard.target("rebind.example", 80) == first  # no second lookup while it is known


def test_denies_a_name_that_resolves_inside():
    guard = Guard(lookup=lookup_of("127.0.0.1"))
    with pytest.raises(Denied, match=r"127\.0\.0\.1 is no public address"):
        guard.target("inside.example", 80)


def test_only_public_ones_of_several_addresses_are_tried():
    def lookup(host, port, **_):
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("10.0.0.1", "1.1.1.1", "10.0.0.1")
        ]

    target = Guard(lookup=lookup).target("both.example", 80)
    assert [address[0] for _, address in target.addresses] == ["1.1.1.1"]
    assert not target.opened


@pytest.mark.usefixtures("each_client")
def test_allow_addresses_opens_a_door(canary):
    options = HttpOptions(allow_addresses=("127.0.0.0/8",), allowed_ports=(str(canary.port),))
    assert Client(options).get(f"http://127.0.0.1:{canary.port}/").body == b"secret"
    assert Client(options).get(f"http://[::ffff:127.0.0.1]:{canary.port}/").status in (200, 0)


def networks():
    """Each length of a mapped block that holds 127.0.0.1, with the IPv4 block that it is."""
    for length in range(96, 129):
        block = ipaddress.ip_network((0x7F000001, length - 96), strict=False)
        yield str(ipaddress.IPv6Address((0xFFFF << 32) + int(block[0]))) + f"/{length}", block


@pytest.mark.parametrize(("mapped", "block"), list(networks()))
def test_a_mapped_block_is_the_ipv4_block(mapped, block):
    """An address that the one opens the other opens, and no other."""
    guard, same = Guard([mapped]), Guard([str(block)])
    last, first = int(block[-1]), int(block[0])
    for number in {first, last, max(0, first - 1), min(2**32 - 1, last + 1), 0x7F000001}:
        inner = ipaddress.IPv4Address(number)
        for text in (str(inner), f"::ffff:{inner}"):
            assert guard.allows(text) == same.allows(text) == (inner in block), text
        for text in (
            f"::{inner}",
            f"64:ff9b::{inner}",
            str(ipaddress.IPv6Address((0x2002 << 112) + (number << 80))),
        ):
            assert not guard.allows(text)


@pytest.mark.parametrize(
    "spelling", ["::ffff:7f00:0/104", "::FFFF:127.0.0.0/104", "0:0:0:0:0:ffff:7f00::/104"]
)
def test_spellings_of_a_mapped_block(spelling):
    assert Guard([spelling]).allows("127.0.0.1")
    assert not Guard([spelling]).allows("128.0.0.1")


@pytest.mark.parametrize(
    "entry", ["::/0", "::/8", "::/64", "::/80", "::fffe:0:0/95", "::ffff:0:0/90"]
)
def test_a_wider_block_of_ipv6_opens_no_ipv4(entry):
    guard = Guard([entry])
    assert not guard.allows("127.0.0.1")
    assert not guard.allows("::ffff:127.0.0.1")
    assert guard.allows("::1") == (
        ipaddress.ip_address("::1") in ipaddress.ip_network(entry, strict=False)
    )


@pytest.mark.parametrize(
    ("entry", "itself"),
    [
        ("64:ff9b::/96", "64:ff9b::7f00:1"),
        ("64:ff9b::7f00:0/104", "64:ff9b::7f00:1"),
        ("2002::/16", "2002:7f00:1::1"),
        ("2002:7f00::/24", "2002:7f00:1::1"),
        ("::/96", "::7f00:1"),
    ],
)
def test_ipv6_ranges_with_embedded_ipv4_are_opened_only_by_their_own_entry(entry, itself):
    assert Guard([entry]).allows(itself)
    assert not Guard([entry]).allows("127.0.0.1")
    assert not Guard(["127.0.0.0/8"]).allows(itself)


def test_port_must_be_allowed():
    with pytest.raises(Denied) as denied:
        Guard(allow_addresses=["0.0.0.0/0"]).target("127.0.0.1", 6379)
    assert denied.value.reason == "port_denied"


@pytest.mark.parametrize(
    ("entry", "host", "port", "opened"),
    [
        ("a.example:80:127.0.0.1:81", "a.example", 80, True),
        ("A.example:80:127.0.0.1:81", "a.example", 80, True),
        ("a.example:80:127.0.0.1:81", "a.example", 8080, False),
        ("a.example::127.0.0.1:81", "a.example", 8080, True),
        ("a.example:80:127.0.0.1:81", "b.a.example", 80, False),
        ("*.a.example:80:127.0.0.1:81", "b.a.example", 80, True),
        ("*.a.example:80:127.0.0.1:81", "a.example", 80, True),
        ("*.a.example:80:127.0.0.1:81", "ba.example", 80, False),
        ("[::1]:80:127.0.0.1:81", "::1", 80, True),
    ],
)
def test_connect_to_reaches_exactly_the_hosts_and_ports_that_it_names(entry, host, port, opened):
    assert bool(Guard(connect_to=[entry]).connect_to(host, port)) == opened


def test_connect_to_goes_where_it_says():
    guard = Guard(connect_to=["a.example:80:[::1]:8080"])
    ((family, address),) = guard.target("a.example", 80).addresses
    assert (family, address[:2]) == (socket.AF_INET6, ("::1", 8080))
    guard = Guard(connect_to=["a.example::127.0.0.1:"])
    assert guard.target("a.example", 7).addresses == ((socket.AF_INET, ("127.0.0.1", 7)),)


@pytest.mark.parametrize(
    "entry",
    [
        *("", "a", "a:80", ":80:127.0.0.1:81", "*:80:127.0.0.1:81", "a.*:80:127.0.0.1:1"),
        *("a:b:127.0.0.1:81", "a:80:::1:81", "a:70000:127.0.0.1:1", "[x]:80:127.0.0.1:1"),
    ],
)
def test_rejects_a_connect_to_that_names_no_host(entry):
    with pytest.raises(ValueError, match="connect_to must"):
        parse_connect_to(entry)


def test_bad_configuration_is_quoted():
    with pytest.raises(ValueError, match=r"allow_addresses must be CIDR blocks, got '1\.2\.3'"):
        HttpOptions(allow_addresses=("1.2.3",))
    for entry in ("http", "0", "70000", "90-80"):
        wrong = f"allowed_ports must be ports or FIRST-LAST, got '{entry}'"
        with pytest.raises(ValueError, match=wrong):
            HttpOptions(allowed_ports=(entry,))


def test_a_label_too_long_does_not_resolve():
    with pytest.raises(socket.gaierror):
        Guard().target("a" * 64 + ".example", 80)
