"""Where the search page is served: names, paths and origins; wrong values fail at once."""

import http.client
import json
import threading

import pytest
from crawling import nutbeam
from index_shards import commit_shards, page, write_shards

from nutbeam.pipelines.base.served_address import ServedAddress
from nutbeam.pipelines.searching.search_serving import SearchServer
from nutbeam.pipelines.searching.searched_table import SearchedTable
from nutbeam.web.base.errors import UsageError


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("address")
    assert nutbeam("inject", folder / "table", "http://a.com/") == 0
    shards = write_shards(folder / "table", [page("http://a.com/", "Pear", "a green pear")])
    commit_shards(folder / "table", shards, "first")
    return SearchedTable(str(folder / "table"), "main", str(folder / "cache"))


@pytest.fixture
def serve(table):
    ends = []

    def start(**values):
        server = SearchServer(table, ServedAddress(**values), 10)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        ends.append((server, thread))

        def ask(path, host=None, **fields):
            connection = http.client.HTTPConnection(values.get("host", "127.0.0.1"), server.port)
            host = host or server.names[0]
            connection.request("GET", path, headers={"Host": host, **fields})
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, dict(answer.getheaders()), text

        return ask

    yield start
    for server, thread in ends:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.long
def test_only_requests_for_allowed_names_are_answered(serve):
    ask = serve(allowed_hosts=("Search.example.com", "other.example.com:8443"))
    answered = {
        host: ask("/search.json?q=pear", host)[0] == 200
        for host in ("search.example.com", "search.example.com:443", "SEARCH.example.com",
                     "other.example.com:8443", "other.example.com", "other.example.com:1",
                     "evil.example", "search.example.com.evil.example", "127.0.0.1")
    }  # fmt: skip
    assert [host for host, good in answered.items() if good] == [
        "search.example.com", "search.example.com:443", "SEARCH.example.com",
        "other.example.com:8443",
    ]  # fmt: skip


def test_all_addresses_are_below_the_base_path(serve):
    ask = serve(base_path="/docs/search")
    status, fields, _ = ask("/docs/search")
    assert (status, fields["Location"]) == (301, "/docs/search/")
    status, _, html = ask("/docs/search/?q=pear")
    assert status == 200
    assert 'action="/docs/search/"' in html
    assert 'src="/docs/search/search.js"' in html
    assert ask("/docs/search/search.js")[0] == ask("/docs/search/combobox.js")[0] == 200
    assert "/docs/search/?q={searchTerms}" in ask("/docs/search/opensearch.xml")[2]
    assert ask("/?q=pear")[0] == ask("/search.js")[0] == ask("/docs/searching/")[0] == 404


def test_no_other_site_may_read_answers_unless_it_is_allowed(serve):
    header = "Access-Control-Allow-Origin"
    assert header not in serve()("/search.json?q=pear", Origin="https://a.example")[1]
    ask = serve(cors_origins=("https://a.example",))
    _, fields, text = ask("/search.json?q=pear", Origin="https://a.example")
    assert (fields[header], fields["Vary"], json.loads(text)["total"]) == (
        "https://a.example",
        "Origin",
        1,
    )
    assert ask("/complete.json?q=pe", Origin="https://a.example")[1][header] == "https://a.example"
    assert header not in ask("/search.json?q=pear", Origin="https://b.example")[1]
    assert header not in ask("/?q=pear", Origin="https://a.example")[1]  # the page itself
    every = serve(cors_origins=("*",))
    assert every("/search.json?q=", Origin="null")[1][header] == "*"


def test_it_is_served_on_the_address_that_is_chosen(serve):
    ask = serve(host="127.0.0.2")
    assert ask("/")[0] == 200
    assert ask("/", "127.0.0.1")[0] == 421


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "example.com"], "--host takes an IP address of this machine, got 'example.com'"),
        (["--host", "0.0.0.0"], "name the hosts that they ask for, as in --allowed_hosts "),
        (["--host", "192.0.2.1"], "--host 192.0.2.1 --port 0 cannot be used: "),
        (["--allowed_hosts", "https://a.example"], "got 'https://a.example'"),
        (["--allowed_hosts", "a.example/x"], "got 'a.example/x'"),
        (["--allowed_hosts", "a.example:99999"], "got 'a.example:99999'"),
        (["--cors_origins", "https://a.example:65536"], "got 'https://a.example:65536'"),
        (["--base_path", "search"], "--base_path takes a path, such as /search/, got 'search'"),
        (["--base_path", '/a"b/'], "got '/a\"b/'"),
        (["--base_path", "//evil.example/"], "got '//evil.example/'"),
        (["--cors_origins", "a.example"], "got 'a.example'"),
        (["--cors_origins", "https://a.example/x"], "got 'https://a.example/x'"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_line_that_quotes_it(table, tmp_path, capsys, words, message):
    command = ("search", table.address, "--serve", *words, "--cache_folder", tmp_path)
    assert nutbeam(*command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_wildcard_address_takes_requests_for_allowed_names_only():
    address = ServedAddress(host="::", allowed_hosts=("a.example",))
    assert address.is_named("a.example", 80)
    assert not address.is_named("[::]", 80)
    with pytest.raises(UsageError, match="--host :: takes requests from other machines"):
        ServedAddress(host="::")
