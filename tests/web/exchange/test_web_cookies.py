import pytest
from http_clients import Client, HttpOptions
from hypothesis import given
from hypothesis import strategies as st
from web_servers import connect_to, reply, serve

from nutbeam.web.exchange.cookies import CookieJar, parse_cookie

WWW = "http://www.example.co.uk/dir/page?q"
NOW = 1_800_000_000.0


def sent(cookie, to, url=WWW):
    """Returns the Cookie header of a request, after another URL has set a cookie."""
    jar = CookieJar()
    jar.take(url, [cookie], NOW)
    return jar.header(to, NOW)


@pytest.mark.parametrize(
    ("cookie", "to", "expected"),
    [
        ("a=1", "http://www.example.co.uk/dir/", "a=1"),
        ("a=1", "https://www.example.co.uk/dir/x", "a=1"),
        ("a=1", "http://www.example.co.uk:8080/dir/x", "a=1"),
        ("a=1", "http://www.example.co.uk/", None),  # the default path is /dir
        ("a=1; Path=/", "http://www.example.co.uk/", "a=1"),
        ("a=1; Path=/di", "http://www.example.co.uk/dir", None),
        ("a=1; Path=/dir", "http://www.example.co.uk/dir?x", "a=1"),
        ("a=1; Path=x", "http://www.example.co.uk/dir/y", "a=1"),
        ("a=1; Path=/", "http://example.co.uk/", None),
        ("a=1; Path=/", "http://x.www.example.co.uk/", None),
        ("a=1; Path=/", "http://www.example.co.uk./", None),
        ("a=1; Path=/; Domain=example.co.uk", "http://example.co.uk/", "a=1"),
        ("a=1; Path=/; Domain=.EXAMPLE.co.uk", "http://b.example.co.uk/", "a=1"),
        ("a=1; Path=/; Domain=example.co.uk", "http://badexample.co.uk/", None),
        ("a=1; Path=/; Domain=www.example.co.uk", "http://x.www.example.co.uk/", "a=1"),
        # Not to be set by www.example.co.uk at all:
        ("a=1; Path=/; Domain=co.uk", "http://www.example.co.uk/", None),
        ("a=1; Path=/; Domain=uk", "http://www.example.co.uk/", None),
        ("a=1; Path=/; Domain=other.co.uk", "http://other.co.uk/", None),
        ("a=1; Path=/; Domain=x.www.example.co.uk", "http://x.www.example.co.uk/", None),
        ("a=1; Path=/; Domain=ample.co.uk", "http://www.example.co.uk/", None),
        ("a=1; Path=/; Secure", "https://www.example.co.uk/", None),  # came over http
        ("__Secure-a=1; Path=/", "http://www.example.co.uk/", None),
        ("__Host-a=1; Path=/", "http://www.example.co.uk/", None),
        ("a=1\0; Path=/", "http://www.example.co.uk/", None),
        ("a=1\r\nX: y; Path=/", "http://www.example.co.uk/", None),
        ("a=" + "x" * 5000 + "; Path=/", "http://www.example.co.uk/", None),
        ("; Path=/", "http://www.example.co.uk/", None),
        ("a=1; Path=/; Max-Age=0", "http://www.example.co.uk/", None),
        ("a=1; Path=/; Max-Age=-1", "http://www.example.co.uk/", None),
        ("a=1; Path=/; Max-Age=99999999999999999999", "http://www.example.co.uk/", "a=1"),
        ("a=1; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://www.example.co.uk/", None),
        ("a=1; Path=/; Expires=Fri, 31-Dec-99 23:59:59 GMT", "http://www.example.co.uk/", None),
        ("a=1; Path=/; Expires=Fri, 31 Dec 9999 23:59:59 GMT", "http://www.example.co.uk/", "a=1"),
        ("a=1; Path=/; Expires=soon", "http://www.example.co.uk/", "a=1"),
        ("a=b=c; Path=/", "http://www.example.co.uk/", "a=b=c"),
        ("alone; Path=/", "http://www.example.co.uk/", "alone"),
    ],
)
def test_a_cookie_goes_only_to_urls_in_its_scope(cookie, to, expected):
    assert sent(cookie, to) == expected


@pytest.mark.parametrize(
    ("cookie", "url", "to", "expected"),
    [
        ("a=1; Domain=github.io", "http://one.github.io/", "http://two.github.io/", None),
        ("a=1; Domain=github.io", "http://github.io/", "http://two.github.io/", None),
        ("a=1; Domain=github.io", "http://github.io/", "http://github.io/", "a=1"),
        ("a=1; Domain=intranet", "http://x.intranet/", "http://y.intranet/", None),
        ("a=1; Domain=1.1.1.1", "http://1.1.1.1/", "http://1.1.1.1/", "a=1"),
        ("a=1; Domain=1.1.1", "http://9.1.1.1/", "http://8.1.1.1/", None),
        ("a=1; Domain=1.1.1.1", "http://1.1.1.1/", "http://9.1.1.1.1/", None),
        ("a=1; Secure", "https://a.example.com/", "https://a.example.com/", "a=1"),
        ("a=1; Secure", "https://a.example.com/", "http://a.example.com/", None),
        ("__Secure-a=1; Secure", "https://a.b.com/", "https://a.b.com/", "__Secure-a=1"),
        ("__Host-a=1; Secure; Path=/", "https://a.b.com/", "https://a.b.com/", "__Host-a=1"),
        ("__Host-a=1; Secure; Path=/; Domain=b.com", "https://b.com/", "https://b.com/", None),
        ("=__Host-a=1; Secure; Path=/", "https://a.b.com/", "https://a.b.com/", None),
    ],
)
def test_domains_that_strangers_share(cookie, url, to, expected):
    assert sent(cookie, to, url) == expected


def test_a_cookie_of_https_is_not_replaced_over_http():
    jar = CookieJar()
    jar.take("https://a.example.com/", ["a=safe; Secure; Path=/"], NOW)
    jar.take("http://a.example.com/", ["a=forged; Path=/"], NOW)
    assert jar.header("https://a.example.com/", NOW) == "a=safe"


def test_order_renewal_and_end():
    jar = CookieJar()
    values = ["b=1; Path=/", "a=1; Path=/x", "c=1; Path=/; Max-Age=10", "b=2; Path=/"]
    jar.take("http://a.example.com/", values, NOW)
    assert jar.header("http://a.example.com/x/y", NOW) == "a=1; b=2; c=1"
    assert jar.header("http://a.example.com/x/y", NOW + 11) == "a=1; b=2"


def test_a_jar_is_bounded():
    jar = CookieJar()
    jar.take("http://a.example.com/", [f"c{n}={n}; Path=/" for n in range(200)], NOW)
    assert jar.header("http://a.example.com/", NOW).count("=") == 50
    big = [f"c{n}={'x' * 4000}; Path=/" for n in range(10)]
    for host in range(1000):
        jar.take(f"http://h{host}.example.com/", big, NOW)
    kept = [c for cookies in jar._by_domain.values() for c in cookies.values()]
    assert sum(cookie.size for cookie in kept) == jar._bytes <= 16 << 20
    assert jar.header("http://h999.example.com/", NOW)
    assert jar.header("http://h0.example.com/", NOW) is None


@given(st.text(st.characters(max_codepoint=255), max_size=60), st.sampled_from(["http", "https"]))
def test_a_cookie_of_any_text_stays_with_its_server(text, scheme):
    url = f"{scheme}://a.example.com/p"
    cookie = parse_cookie(text, url, NOW)
    jar = CookieJar()
    jar.take(url, [text], NOW)
    header = jar.header(url, NOW)
    assert jar.header("https://a.example.org/p", NOW) is None
    if header is not None:
        assert cookie is not None
        assert not set(header) & set("\r\n\0;")


@pytest.mark.usefixtures("each_client")
@pytest.mark.parametrize("kept", [True, False])
def test_cookies_come_back_only_where_they_are_wanted(kept):
    with serve(lambda path, connection: reply(b"x", "200 OK", "Set-Cookie: a=1; Path=/")) as server:
        options = HttpOptions(connect_to=connect_to(server.port), http_cookies=kept)
        client = Client(options)
        responses = [client.get(f"http://{h}.example.com/") for h in ("a", "a", "b")]
        heads = [head for _, head, _ in server.requests]
    assert ["Cookie: a=1" in head for head in heads] == [False, kept, False]
    assert "a=1" not in responses[1].request
    assert ("Cookie: (withheld)" in responses[1].request) == kept


def test_cookies_of_an_earlier_fetch_are_the_same():
    jar, later = CookieJar(), CookieJar()
    values = [
        "a=1; Path=/",
        "b=2; Max-Age=50",
        "c=3; Domain=example.com; Path=/",
        "=4; Path=/",
        "d",
    ]
    jar.take("http://a.example.com/x/y", [*values, "e=5; Secure"], NOW)
    jar.take("https://a.example.com/x/y", ["f=6; Secure", "__Host-g=7; Secure; Path=/"], NOW)
    later.restore("a.example.com", jar.lines_of("a.example.com", NOW), NOW)
    for now in (NOW, NOW + 51):
        for url in (
            "http://a.example.com/x/",
            "https://a.example.com/x/",
            "https://b.example.com/",
        ):
            assert later.header(url, now) == jar.header(url, now), url
    assert later.lines_of("a.example.com", NOW) == jar.lines_of("a.example.com", NOW)
    assert jar.lines_of("b.example.com", NOW).count("\n") == 0


def test_a_record_gives_a_host_no_cookies_for_others_and_none_that_are_older():
    jar = CookieJar()
    jar.take("http://a.example.com/", ["a=new; Path=/"], NOW)
    lines = "a=old; Path=/\nb=1; Domain=example.org; Path=/\nc=1; Domain=com; Path=/\n\x00=1\nd=1; Path=/"
    jar.restore("a.example.com", lines, NOW)
    assert jar.header("http://a.example.com/", NOW) == "a=new; d=1"
    assert jar.header("http://example.org/", NOW) is None
    jar.restore("a.example.com", "e=1; Path=/", NOW)  # it was restored before
    assert jar.header("http://a.example.com/", NOW) == "a=new; d=1"


def test_the_cookies_that_a_host_keeps_are_bounded():
    jar = CookieJar()
    jar.take("http://a.example.com/", [f"c{n}={'x' * 1000}; Path=/" for n in range(50)], NOW)
    lines = jar.lines_of("a.example.com", NOW)
    assert len(lines) <= 8192
    assert lines.startswith("c49=")
