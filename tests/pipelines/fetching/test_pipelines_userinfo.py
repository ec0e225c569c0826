"""No user and password of a URL that a server wrote come into a table, a log or what is shown.

Bodies are as they came: only the column that holds them is left out of the search.
"""

import html

import pyarrow.parquet as pq
import pytest
from crawling import nutbeam, state_of
from web_servers import Server, connect_to, reply

from nutbeam.web.urls.row_keys import from_key

USER, PASSWORD = "hidden-user", "s3cret-of-theirs"
WHO = f"{USER}:{PASSWORD}@"
ENCODED = "%68idden-user:s3cret%2Dof-theirs@"
TO = "b.example.com"
# What Location says, and the target that is recorded.
LOCATIONS = {
    f"http://{WHO}{TO}/1": f"http://{TO}/1",
    f"http://{ENCODED}{TO}/2": f"http://{TO}/2",
    f"//{WHO}{TO}/3": f"http://{TO}/3",
    f"ftp:{WHO}{TO}/4?q=1#f": f"ftp://{TO}/4?q=1#f",
    f"http:///{WHO}{TO}/5": f"http://{TO}/5",
    f"http:\\\\{WHO}{TO}/6": f"http://{TO}/6",
    f"ht\ttp://{WHO[:9]}\t{WHO[9:]}{TO}/7": f"http://{TO}/7",
    f"http://a@{WHO}{TO}/8": f"http://{TO}/8",
    f"http://{PASSWORD}@{TO}/9": f"http://{TO}/9",
    f"HTTP://{WHO}B.Example.COM:80/10": f"http://{TO}/10",
    f"ftp://{WHO}{TO}/11": f"ftp://{TO}/11",
    f"gopher://{WHO}{TO}/12": f"gopher://{TO}/12",
    f"view-source:http://{WHO}{TO}/13": None,
    f"http://{WHO}{TO} x/14": None,
    f"http://{WHO}{TO}:99999/15": None,
    f"http://{WHO}[::x]/16": None,
    f" http://{WHO}{TO}/17 ": f"http://{TO}/17",
    f"http://{USER}:p/{PASSWORD}@{TO}/18": None,
}
LIST = list(LOCATIONS)
URL = f"http://{WHO}{TO}/"
HEADERS = (
    f"Link: <{URL}link>; rel=canonical, <//{WHO}{TO}/next>; rel=next",
    f"Refresh: 5; url={URL}header",
    f"Content-Location: {URL}content",
    f"X-Other: see {URL}other",
)
PAGE = f"""<html><head><title>page</title>
<base href="http://{WHO}a.example.com/page"><link rel=canonical href="{URL}canonical">
<link rel=alternate hreflang=de href="{URL}de"><meta property="og:url" content="{URL}og">
<meta name=description content="at {URL}described">
<script type="application/ld+json">{{"url": "{URL}json"}}</script></head>
<body><a href="{URL}a">x</a><a href="http://{html.escape(ENCODED)}{TO}/b">x</a><a href="relative">x</a>
<form action="{URL}form"></form><iframe src="{URL}frame"></iframe><img src="{URL}image"></body></html>"""
REFRESH = f'<title>x</title><meta http-equiv=refresh content="0; url={URL}refresh">'
FEED = f"""<?xml version="1.0"?><rss version="2.0"><channel><title>f</title><link>{URL}</link>
<item><title>one</title><link>{URL}item</link><guid>{URL}guid</guid><description>x</description></item>
<item><title>two</title><link>http://{WHO}a.example.com/own</link><description>y</description></item>
</channel></rss>"""
SITEMAP = f"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>{URL}loc</loc></url></urlset>"""
ROBOTS = (
    f"User-agent: *\nDisallow: /x\nSitemap: {URL}robots-sitemap\nsite-map : {URL}robots-sitemap2\n"
)
PAGES = {
    "/page": (PAGE, "text/html"),
    "/refresh": (REFRESH, "text/html"),
    "/feed": (FEED, "application/rss+xml"),
    "/sitemap.xml": (SITEMAP, "application/xml"),
}


class Telling(Server):
    """A site whose redirects, headers, pages and robots.txt hold somebody's password."""

    def __init__(self):
        super().__init__(None)

    def _answer(self, head, connection):
        with self.lock:
            self.requests.append(head)
        answer = self.told(head.split(" ")[1], "Host: robots." in head)
        connection.sendall(answer)
        return answer

    @staticmethod
    def told(path, redirected):
        if path == "/robots.txt" and redirected:
            return reply(b"", "302 Found", f"Location: {URL}robots.txt")
        if path == "/robots.txt":
            return reply(ROBOTS.encode())
        if path.startswith("/redirect"):
            number = int(path.rpartition("/")[2])
            code = (301, 302, 303, 307, 308)[number % 5]
            return reply(b"", f"{code} Elsewhere", f"Location: {LIST[number]}", *HEADERS)
        if path == "/missing":
            return reply(b"", "404 Not Found", f"Location: {URL}", *HEADERS)
        text, kind = PAGES.get(path, ("<title>other</title>", "text/html"))
        return reply(text.encode(), "200 OK", f"Content-Type: {kind}", *HEADERS)


def stored(table):
    """Returns all that the files of a table hold, but for bodies."""
    texts = []
    for path in table.rglob("*"):
        if path.suffix == ".parquet":
            found = pq.read_table(path)
            columns = [name for name in found.column_names if name != "body"]
            if "body" not in found.column_names:
                texts.append(path.read_bytes().decode("latin-1"))
            texts.append(str(found.select(columns).to_pylist()))
        elif path.is_file():
            texts.append(path.read_bytes().decode("latin-1"))
    return "\n".join(texts)


@pytest.fixture(params=[("threads", "0"), ("asyncio", "5")], ids=lambda p: p[0])
def crawled(request, tmp_path, capsys, caplog):
    """A crawl of it: the table, what was asked, what was said, and options that reach it."""
    client, hops = request.param
    server = Telling()
    seeds = [f"http://a.example.com/redirect/{number}" for number in range(len(LIST))]
    seeds += [f"http://a.example.com{path}" for path in (*PAGES, "/missing")]
    seeds += ["http://robots.example.com/"]
    reach = (
        "--connect_to",
        connect_to(server.port)[0],
        "--server_delay",
        "0",
        "--http_client",
        client,
    )
    words = ("crawl", tmp_path / "table", *seeds, *reach, "--rounds", "2", "--redirect_max", hops)
    assert nutbeam(*words, "--scope", "any", "--agent_name", "bot", "--agent_email", "a@b") == 0
    yield tmp_path / "table", server, capsys.readouterr(), (*reach, "--agent_name", "bot")
    server.close()


@pytest.mark.few(1)
def test_no_password_of_a_url_is_kept_or_shown(crawled, capsys, caplog):
    table, server, said, reach = crawled
    shown = said.out + said.err
    for path in ("/redirect/0", "/redirect/13", "/page", "/refresh"):
        url = f"http://a.example.com{path}"
        assert nutbeam("readdb", table, "--url", url) == 0
        assert nutbeam("explain", table, url) in (0, 1)
        nutbeam("parsechecker", url, *reach)
    assert nutbeam("readdb", table) == 0
    assert nutbeam("pages", table) == 0
    for what in ("hosts", "batch_documents"):
        assert nutbeam("export", table, "--what", what, "--format", "jsonl") == 0
    output = capsys.readouterr()
    shown += output.out + output.err + caplog.text
    for text in (stored(table), shown, "".join(server.requests)):
        for secret in (PASSWORD, USER, "s3cret%2Dof", "%68idden"):
            at = text.find(secret)
            assert at < 0, text[max(0, at - 200) : at + 200]
    check_targets(table)


def check_targets(table):
    rows = {from_key(row["key"]): row for row in state_of(table).to_dicts()}
    for number, (_, target) in enumerate(LOCATIONS.items()):
        if target is not None:
            message = rows[f"http://a.example.com/redirect/{number}"]["protocol_message"]
            assert message == target
    assert "http://b.example.com/1" in rows
    assert {"http://b.example.com/a", "http://b.example.com/loc", "http://b.example.com/item"} <= {
        *rows
    }
