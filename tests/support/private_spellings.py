"""Spellings of private and special addresses, and names of private worlds.

``tests/support/canary.py`` says what the names resolve to, and holds the server that
none of them may reach.
"""
# ruff: noqa: RUF001 - that characters look like others is the point

import ipaddress

# The ways in which a URL comes in.
WAYS = (
    *("seed", "link", "redirect", "robots", "refresh", "canonical", "sitemap", "feed"),
    *("frame", "base", "header", "proxy"),
)

# One of each block that is private or special, and what a cloud answers at.
V4 = (
    *("127.0.0.1", "127.0.0.53", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1"),
    *("100.100.100.200", "192.0.0.192"),
)
_FULLWIDTH = {ord(c): 0xFF10 + int(c) for c in "0123456789"} | {ord("."): "．"}
_CIRCLED = {ord("0"): "⓪"} | {ord(str(n)): 0x2460 + n - 1 for n in range(1, 10)}
_BOLD = {ord(str(n)): 0x1D7CE + n for n in range(10)}


def of_v4(text):
    """Returns hosts that stand for an IPv4 address, as resolvers and browsers read them."""
    number = int(ipaddress.IPv4Address(text))
    a, b, c, d = (int(part) for part in text.split("."))
    high, low = number >> 16, number & 0xFFFF
    inverted = number ^ 0xFFFFFFFF
    mixed = f"{high:x}:{low:x}"
    return (
        *(text, f"{text}.", f"{number}", f"{number}.", f"0x{number:x}", f"0X{number:08X}"),
        *(f"0{number:o}", f"000{number:o}", f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        *(f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"0x{a:x}.{number & 0xFFFFFF}", f"{a}.{number & 0xFFFFFF}"),
        *(f"{a}.{b}.{number & 0xFFFF}", f"0{a:o}.0x{b:x}.{number & 0xFFFF}", f"{a:04o}.{b}.{c}.{d}"),
        *(text.translate(_FULLWIDTH), text.replace(".", "。"), text.replace(".", "｡")),
        *(text.translate(_CIRCLED), text.translate(_BOLD), text.replace(".", "%2e")),
        *("".join(f"%{ord(char):02x}" for char in text), f"{text[0]}\u00ad{text[1:]}", f"u:p@{text}"),
        *(f"[::ffff:{text}]", f"[::FFFF:{mixed}]", f"[0:0:0:0:0:ffff:{mixed}]", f"[::{text}]"),
        *(f"[::ffff:0:{text}]", f"[64:ff9b::{text}]", f"[64:ff9b::{mixed}]", f"[2002:{mixed}::1]"),
        f"[2001:0:4136:e378:8000:63bf:{inverted >> 16:x}:{inverted & 0xFFFF:x}]",
        f"[64:ff9b:1::{text}]",
    )  # fmt: skip


V6 = (
    *("[::]", "[0::0]", "[0:0:0:0:0:0:0:0]", "[::1]", "[0::1]", "[::0001]", "[0:0::0:1]"),
    *("[0000:0000:0000:0000:0000:0000:0000:0001]", "[::0.0.0.1]", "[::1%25lo]", "[::1%lo]", "[::1%1]"),
    *("[::2]", "[::ffff:0:0]", "[fe80::1]", "[FE80::1]", "[fe80::1%25eth0]", "[fe80::1%1]", "[febf::1]"),
    *("[fec0::1]", "[feff::1]", "[fc00::1]", "[fd00::1]", "[FDFF::FFFF]", "[fd00:ec2::254]"),
    *("[fd00:00ec:0002:0000::0254]", "[ff00::]", "[ff01::1]", "[ff02::1]", "[FF02::2]", "[ff0e::1]"),
    *("[2001:db8::1]", "[2001:DB8:0::0:1]", "[2001::1]", "[2001:2::1]", "[2001:10::1]", "[2001:20::1]"),
    *("[2001:0:7f00:1::]", "[100::1]", "[100:0:0:1::]", "[5f00::1]", "[3fff::1]", "[4000::1]", "[2002::]"),
    *("[64:ff9b:1::1]", "[64:ff9b:ffff::]", "[::ffff:7f00:0001]", "[::FfFf:7F.0.0.1]", "[::ffff:127.1]"),
    *("[::ffff:0x7f000001]", "[::127.0.0.1]", "[::ffff:127.0.0.1%251]", "[v1.fe80::1]", "[::1", "::1"),
    *("[::1]x", "u:p@[::1]", "[::1].", "%5B::1%5D", "［::1］", "[：：1]", "[::ffff:７f00:1]"),
)  # fmt: skip

# Names that belong to nobody on the internet; behind a proxy nothing else is known of them.
NAMES = (
    *("localhost", "LOCALHOST", "LocalHost.", "a.localhost", "a.b.localhost.", "localhost.localdomain"),
    *("localhost4", "localhost6", "localhost4.localdomain4", "localhost6.localdomain6", "ip6-localhost"),
    *("ip6-loopback", "broadcasthost", "host.docker.internal", "gateway.docker.internal", "x.localdomain"),
    *("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
    *("host.minikube.internal", "host.containers.internal", "host.lima.internal", "rancher.internal"),
    *("metadata", "metadata.google.internal", "metadata.google.internal.", "METADATA.GOOGLE.INTERNAL"),
    *("instance-data", "instance-data.ec2.internal", "ip-10-0-0-1.ec2.internal", "a.b.compute.internal"),
    *("consul", "vault.service.consul", "web.service.dc1.consul", "mesos.mesos", "leader.mesos"),
    *("printer.local", "_http._tcp.local", "printer.LOCAL.", "nas.lan", "router.lan", "a.home", "a.mail"),
    *("wiki.corp", "wiki.corporate", "wiki.intranet", "wiki.intra", "wiki.internal", "wiki.private"),
    *("wiki.priv", "wiki.prv", "wiki.int.local", "dc1.domain", "dc1.loc"),
    *("wiki.localnet", "wiki.lokal", "a.site.local", "a.workgroup", "a.dmz", "a.mgmt"),
    *("router", "router.home", "router.home.arpa", "router.belkin", "router.asus", "my.router", "modem.lan"),
    *("fritz.box", "www.fritz.box", "fritz.nas", "fritz.repeater", "speedport.ip", "easy.box", "o2.box"),
    *("connect.box", "vodafone.box", "myfritz.box", "metadata.goog", "a.ts.net", "setup.ubnt.com"),
    *("congstar.box", "dlink.router", "vigor.router", "homerouter.cpe", "mobile.hotspot", "home.gateway"),
    *("dlinkrouter", "dlinkrouter.local", "livebox", "livebox.home", "bthub.home", "hitronhub.home"),
    *("router.asus.com", "www.asusrouter.com", "tplinkwifi.net", "www.tplinkwifi.net", "tplinkmodem.net"),
    *("tplinklogin.net", "tplinkap.net", "tplinkrepeater.net", "tplinkextender.net", "routerlogin.net"),
    *("www.routerlogin.net", "routerlogin.com", "orbilogin.com", "orbilogin.net", "mywifiext.net"),
    *("myrouter.local", "amplifi.lan", "unifi", "unifi.localdomain", "pi.hole", "huaweimobilewifi.com"),
    *("tendawifi.com", "tendawifi.net", "dsldevice.lan", "dsldevice.attlocal.net", "attlocal.net"),
    *("1.0.0.127.in-addr.arpa", "1.0.168.192.in-addr.arpa", "in-addr.arpa", "x.ip6.arpa", "1.0.ip6.arpa"),
    *("home.arpa", "x.home.arpa.", "ipv4only.arpa", "resolver.arpa", "service.arpa", "a.arpa", "arpa"),
    *("a.onion", "a.alt", "a.gns.alt", "a.test", "a.invalid", "a.example", "a.bit", "a.eth", "a.i2p", "a.zkey"),
    *("a.exit", "a.lnx", "x", "intranet", "wiki", "com", "net.", "wpad", "wpad.lan", "isatap"),
    *("autodiscover", "db", "redis", "elasticsearch", "a..localhost", "localhost..", ".localhost"),
    *("localtest.me", "a.localtest.me", "lvh.me", "a.lvh.me", "vcap.me", "lacolhost.com", "localho.st"),
    *("1.2.3.999", "256.0.0.1", "1.2.3.4.5", "a.1", "a.0x7", "0x7f.x.1", "127.0.0.1.1", "08.1", "a.09"),
    *("ｌｏｃａｌｈｏｓｔ", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "%6cocalhost", "loc\u00adalhost", "a.ｌｏｃａｌ", "a。local"),
    *("u:p@localhost", "www.example.com@wiki.corp", "xn--a.local", "a_b.local", "-.local"),
)  # fmt: skip

# What writes more than a host: ``{at}`` is the canary's host and port.
WHOLE = (
    *("http:{at}", "http:/{at}", "http:///{at}", "http:////{at}", "http:\\\\{at}", "http:\\/{at}", "http:/\\{at}"),
    *("HtTp://{at}", "HTTP://{at}", " http://{at}", "\x01http://{at}", "ht\ttp://{at}", "http:\n//{at}"),
    *("http://1\t27.0.0.1:{port}", "http://127.0.0.1\n:{port}", "http://127.0.\r0.1:{port}"),
    *("http://{at}\\@www.example.com", "http://{at}\\.example.com", "http://www.example.com\\@{at}"),
    *("http://www.example.com@{at}", "http://www.example.com:80@{at}", "http://www.example.com%2f@{at}"),
    *("http://a@b@{at}", "http://a:b:c@{at}", "http://@{at}", "http://:@{at}", "http://:80@{at}", "http://%40@{at}"),
    *("http://www.example.com%23@{at}", "http://www.example.com%5c@{at}", "http://u%3ap@{at}", "http://１@{at}"),
    *("http://{at}#@www.example.com", "http://{at}?@www.example.com", "http://{at}/@www.example.com"),
    *("http://{at}%2f.example.com", "http://{at}%00.example.com", "http://127.0.0.1%20:{port}"),
    *("http://127.0.0.1%00.example.com:{port}", "http://127.0.0.1%09:{port}", "http://127.0.0.1,:{port}"),
    *("http://127.0.0.1:0{port}", "http://127.0.0.1:000{port}", "http://127.0.0.1:{port}:80"),
    *("http://127.0.0.1:22", "http://127.0.0.1:6379", "http://127.0.0.1:0", "http://127.0.0.1:99999"),
    *("http://127.0.0.1:-80", "http://127.0.0.1:+80", "http://127.0.0.1: 80", "http://127.0.0.1:８０"),
    *("https://{at}", "file://{at}", "gopher://{at}", "ftp://{at}", "dict://{at}", "ws://{at}", "wss://{at}"),
    *("ldap://{at}", "jar:http://{at}", "view-source:http://{at}", "blob:http://{at}", "feed:http://{at}"),
    *("javascript://{at}", "data://{at}", "//{at}", "///{at}", "\\\\{at}", "/\\{at}", "{at}", "http//{at}"),
)  # fmt: skip


def spellings(port):
    """Returns the URLs, each without a path, that may lead to a port on loopback."""
    urls = [f"http://{host}:{port}" for host in (*ADDRESSES, *V6, *NAMES)]
    return urls + [url.format(at=f"127.0.0.1:{port}", port=port) for url in WHOLE]


ADDRESSES = tuple(dict.fromkeys(host for text in V4 for host in of_v4(text)))
