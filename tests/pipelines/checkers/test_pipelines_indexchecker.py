"""indexchecker fetches a URL, shows its document, and sends it with --do_index."""

import json

import pytest
from bulk_servers import bulk_server
from crawling import nutbeam
from web_servers import connect_to, reply, serve

URL = "http://site.example.com/a"
# Lone surrogates, as a reference and as bytes that are no UTF-8; control characters.
ODD = b"<title>A&#xD800;b</title><p>one&#xDFFF; two\xed\xa0\x80 three &#1; four</p>"


def answer(path, _):
    if path == "/noindex":
        robots = b"<meta name=robots content=noindex>words"
        return reply(robots, "200 OK", "Content-Type: text/html")
    if path == "/robots.txt":
        rules = (
            b"User-Agent: *\nAllow: /\nContent-Usage: search=y\nContent-Usage: /ruled search=n\n"
        )
        return reply(rules, "200 OK", "Content-Type: text/plain")
    if path == "/ruled":
        return reply(b"words", "200 OK", "Content-Type: text/html")
    if path == "/usage":
        return reply(b"words", "200 OK", "Content-Type: text/html", "Content-Usage: search=n")
    if path == "/a":
        return reply(ODD, "200 OK", "Content-Type: text/html; charset=utf-8")
    return reply(b"", "404 Not Found")


@pytest.fixture
def checked(capsys):
    with serve(answer) as server:
        reach = [word for door in connect_to(server.port) for word in ("--connect_to", door)]

        def run(*words, code=0):
            capsys.readouterr()
            agent = ("--agent_name", "test", "--agent_email", "a@example.com")
            at_once = ("--server_delay", "0")
            assert nutbeam("indexchecker", *words, *agent, *reach, *at_once) == code
            return capsys.readouterr()

        yield run


def test_do_index_sends_the_document_that_it_shows(checked, tmp_path):
    words = (
        "--do_index",
        "true",
        "--writer",
        "jsonl",
        "--writer_parameters",
        f"path={tmp_path}/out",
    )
    record = json.loads(checked(URL, *words, "--format", "json").out)
    assert record["sent"] == {"jsonl/added": 1}
    (file,) = (tmp_path / "out").glob("*.jsonl")
    assert json.loads(file.read_text("utf-8")) == record["document"]
    assert not (tmp_path / "out" / ".nutbeam").exists()
    assert "sent: jsonl/added 1" in checked(URL, *words).out


def test_without_do_index_nothing_is_sent_and_the_writer_is_not_opened(checked, tmp_path):
    words = ("--writer", "jsonl", "--writer_parameters", f"path={tmp_path}/out")
    assert "sent" not in checked(URL, *words).out
    assert not (tmp_path / "out").exists()
    checked(URL, "--writer", "opensearch", "--writer_parameters", "url=http://127.0.0.1:1")


@pytest.mark.long
def test_pages_that_are_not_indexed_are_not_sent(checked, tmp_path):
    words = (
        "--do_index",
        "true",
        "--writer",
        "jsonl",
        "--writer_parameters",
        f"path={tmp_path}/out",
    )
    out = checked(URL.replace("/a", "/noindex"), *words, code=1).out
    assert "not indexed: robots_noindex" in out
    assert "not indexed" in checked(URL, *words, "--index_filters", "basic,expr", "--index_expr",
                                    "len(title) > 99", code=1).out  # fmt: skip
    assert not list(tmp_path.glob("out/*.jsonl"))


@pytest.mark.few(1)
@pytest.mark.parametrize("path", ["/usage", "/ruled"])  # of the response, of robots.txt
def test_content_usage_counts_as_it_does_for_index(checked, tmp_path, path):
    url = URL.replace("/a", path)
    given = ("--writer", "jsonl", "--writer_parameters", f"path={tmp_path}/out")
    assert "not indexed: usage" in checked(url, "--do_index", "true", *given, code=1).out
    assert not list(tmp_path.glob("out/*.jsonl"))
    assert "not indexed" not in checked(url, "--obey_usage", "false").out


def test_routes_and_fields_of_several_writers_count(checked, tmp_path):
    rules = tmp_path / "writers.toml"
    rules.write_text(f"""
        [[writer]]
        name = "first"
        kind = "jsonl"
        path = "{tmp_path}/first"
        only = "host == 'site.example.com'"
        rename = {{ content = "body" }}
        [[writer]]
        name = "rest"
        kind = "dummy"
        path = "{tmp_path}/rest"
        otherwise = true
    """)
    words = ("--do_index", "true", "--index_writers", rules, "--format", "json")
    assert json.loads(checked(URL, *words).out)["sent"] == {"first/added": 1}
    (file,) = (tmp_path / "first").glob("*.jsonl")
    assert json.loads(file.read_text("utf-8"))["body"].endswith("four")
    assert not list((tmp_path / "rest").glob("*.txt"))


def test_an_index_in_a_table_is_refused(checked):
    error = checked(URL, "--do_index", "true", "--writer", "tantivy", code=2).err
    assert "nutbeam index sends to it" in error
    assert error.count("\n") == 1


def test_a_page_with_lone_surrogates_reaches_a_server_as_a_whole_text(checked):
    with bulk_server() as server:
        words = ("--writer", "opensearch", "--writer_parameters", f"url={server.url}")
        checked(URL, "--do_index", "true", *words)
        document = server.documents[URL]
    assert document["title"] == "A\ufffdb"
    assert [
        word for word in ("one", "two", "three", "four") if word not in document["content"]
    ] == []
    assert "\ufffd" in document["content"]
    assert not set(document["content"]) & set(map(chr, range(9)))
