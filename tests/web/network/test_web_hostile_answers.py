"""Each answer of ``hostile_answers`` comes out as listed, with both clients, from a real server."""

import contextlib
import http.client
import itertools
import random

import pytest
from counting import calls, weigh
from hostile_answers import ANSWERS, CHUNKED, LAST, OK, PAGE, REST, ROBOTS
from http_clients import CLIENTS, Client, HttpOptions
from web_servers import connect_to, reply, serve

from nutbeam.web.clients.aio_client import client_of
from nutbeam.web.exchange.http_options import HttpOptions as Options
from nutbeam.web.exchange.status import classify
from nutbeam.web.network.response_reader import ChunkReader, ResponseReader
from nutbeam.web.robots.robots import fetch_robots

URL = "http://a.example.com/"
KINDS = {}
for _answer in ANSWERS:
    KINDS.setdefault(_answer.name.rpartition(" ")[0], []).append(_answer)


@pytest.fixture(scope="module", params=CLIENTS)
def ask(request):
    """Yields ``ask(wire, closes, times)``: the responses, and how many connections they took."""
    numbers, current = itertools.count(), {}

    def answer(path, connection):
        if not current["closes"]:
            return current["wire"]
        connection.sendall(current["wire"])
        return None

    def asking(wire, closes, times):
        current.update(wire=wire, closes=closes)
        before, url = server.connections, f"http://h{next(numbers)}.example.com/"
        found = [client.get(url) for _ in range(times)]
        return found, server.connections - before

    with serve(answer) as server:
        limits = {"timeout": 2.0, "http_time_limit": 5.0, "http_client": request.param}
        client = client_of(Options(connect_to=connect_to(server.port), **limits))
        yield asking
        client.close()


def outcome(response):
    return response.error, response.status, response.body, response.truncated


@pytest.mark.parametrize("kind", KINDS)
def test_each_answer_is_as_listed(ask, kind):
    for answer in KINDS[kind]:
        responses, connections = ask(answer.wire, answer.closes, 2)
        expected = (answer.expected, answer.status, answer.body, answer.truncated)
        found = [outcome(response) for response in responses]
        assert found == [expected] * 2, (answer.name, answer.wire[:100])
        # What is not kept carries nothing more: nothing that is left can pass for an answer.
        assert connections == (1 if answer.kept else 2), (answer.name, answer.wire[:100])


def test_there_are_enough_of_them():
    assert len({answer.wire for answer in ANSWERS}) >= 150
    assert len({answer.name for answer in ANSWERS}) == len(ANSWERS)
    assert {answer.expected for answer in ANSWERS} == {
        *(None, "protocol_error", "headers_too_large", "framing_too_large", "incomplete", "reset")
    }


def test_every_error_is_counted_under_its_reason(ask):
    for reason in ("protocol_error", "headers_too_large", "framing_too_large", "incomplete"):
        answer = next(a for a in ANSWERS if a.expected == reason and a.status in (0, 200))
        (response,), _ = ask(answer.wire, answer.closes, 1)
        assert classify(response)[:3] == (34, 16, reason)


def fed(wire, size_of):
    """Returns what a reader makes of bytes that come in parts of the lengths given."""
    reader, body, error, at = ResponseReader(fresh=True), [], None, 0
    try:
        while at < len(wire) and not (reader.ended or reader.error):
            size = size_of()
            body.append(reader.feed(wire[at : at + size]))
            at += size
        if not (reader.ended or reader.error):
            body.append(reader.end())
    except Exception as failed:  # noqa: BLE001 - whatever it is, it must be the same
        error = failed
    error = error or reader.error
    return reader.head, b"".join(body), type(error), reader.ended


@pytest.mark.parametrize("kind", KINDS)
def test_it_does_not_matter_how_the_bytes_come(kind):
    parts = random.Random(kind)
    for answer in KINDS[kind]:
        once = fed(answer.wire, lambda: 1 << 30)
        for sizes in ((1, 2, 3, 7), (50, 5000)):
            if len(answer.wire) > 20_000 and sizes[0] == 1:
                continue
            assert fed(answer.wire, lambda s=sizes: parts.choice(s)) == once, answer.wire[:100]


def test_random_damage_is_read_alike_by_both():
    """Mutations of the list: both clients agree on all that is received."""
    dice = random.Random(15)
    current = {}

    def answer(path, connection):
        connection.sendall(current["wire"])

    wires = []
    short = [a.wire for a in ANSWERS if 0 < len(a.wire) < 300]
    for _ in range(150):
        wire = bytearray(dice.choice(short))
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(wire))
            wire[at : at + dice.randrange(3)] = dice.choice(
                [b"", b"\r\n", b"\n", b":", b" ", b"\0", b"0", b"9", b";", b",", b"\xff", b"-"]
            )
        wires.append(bytes(wire))
    with serve(answer) as server:
        options = {"connect_to": connect_to(server.port), "timeout": 2.0}
        clients = [client_of(Options(http_client=name, **options)) for name in CLIENTS]
        for number, wire in enumerate(wires):
            current["wire"] = wire
            found = [client.get(f"http://h{number}.example.com/") for client in clients]
            kept = [
                (r.status_line, r.reason, r.http_version, r.headers, *outcome(r)) for r in found
            ]
            assert kept[0] == kept[1], wire
        for client in clients:
            client.close()


@pytest.mark.usefixtures("each_client")
@pytest.mark.parametrize(
    "wire",
    [
        ROBOTS,
        b"HTTP/1.1 200: OK\r\n\r\n" + ROBOTS,
        OK + b"Content-Length: thousand\r\n\r\n" + ROBOTS,
        OK + b"Content-Length: -1\r\n\r\n" + ROBOTS,
    ],
)
def test_a_robots_txt_that_comes_so_is_read(wire):
    with serve(lambda path, connection: connection.sendall(wire)) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        rules = fetch_robots(client, "http://a.example.com")
    assert rules.allows("http://a.example.com/open")
    assert not rules.allows("http://a.example.com/private")


@pytest.mark.usefixtures("each_client")
def test_a_page_without_a_head_is_taken_on_a_new_connection_only():
    """On a used one it may be what is left of the answer before."""

    def keeping(path, connection):
        if path == "/first":
            return reply(b"x")
        if server.connections == 1:
            connection.sendall(b"<p>left over")
        else:
            connection.sendall(b"<p>from a new connection")
        return None

    with serve(keeping) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        assert client.get(f"{URL}first").body == b"x"
        left_over = client.get(f"{URL}second")
        assert (left_over.body, left_over.status, left_over.resend) == (b"", 0, True)
        assert server.connections == 1
        assert client.get(f"{URL}second", fresh=True).body == b"<p>from a new connection"
        assert server.connections == 2


def steps_of(work):
    return calls(work)[0]


def pieces(wire, size=65_536):
    return [wire[at : at + size] for at in range(0, len(wire), size)]


def test_one_byte_chunks_cost_steps_in_proportion():
    """As counted steps: a fixed number for each chunk, and pieces as they came over the wire."""
    counts, given = {}, {}
    for size in (20_000, 200_000):
        wire = CHUNKED + b"1\r\nx\r\n" * size + LAST
        reader, parts = ResponseReader(), []

        def work(wire=wire, reader=reader, parts=parts):
            parts.extend(reader.feed(piece) for piece in pieces(wire))

        counts[size] = steps_of(work)
        assert b"".join(parts) == b"x" * size
        assert reader.ended
        assert reader.keeps
        given[size] = len(parts)
    assert counts[200_000] < 7 * 200_000
    assert counts[200_000] < 11 * counts[20_000]
    assert given[200_000] == len(pieces(CHUNKED + b"1\r\nx\r\n" * 200_000 + LAST))


def test_bytes_that_come_one_by_one_cost_steps_in_proportion():
    wire = CHUNKED + b"5\r\nhello\r\n" * 2000 + LAST
    counts = {}
    for part in (wire[: len(wire) // 10], wire):
        reader = ResponseReader()
        counts[len(part)] = steps_of(lambda r=reader, p=part: [r.feed(b) for b in pieces(p, 1)])
    few, many = sorted(counts)
    assert counts[many] < 11 * counts[few]


def bytes_given(work):
    """Returns how many bytes work gives to functions, ours and methods of bytes, in this thread.

    A function with an argument ``start`` looks at what comes from there on.
    """

    def given(frame, event, argument):
        values = []
        if event == "call":
            values = list(frame.f_locals.values())
        elif event == "c_call" and argument.__name__ not in ("append", "extend"):
            values = [getattr(argument, "__self__", None)]
        start = frame.f_locals.get("start", 0) if event == "call" else 0
        return sum(len(one) - start for one in values if isinstance(one, bytes | bytearray))

    return weigh(given, work)[0]


DRIPS = {
    "white space": (b"", b"\r\n"),
    "blanks": (b"", b"  "),
    "a page's first line": (b"", b"<p>"),
    "a status line": (OK[:-2], b"k"),
    "header lines": (OK, b"A:\n"),
    "a header line": (OK + b"A: ", b"b"),
    "a folded header": (OK + b"A: b\r\n", b" b\r\n"),
    "a chunk size": (CHUNKED, b"0"),
    "a chunk extension": (CHUNKED + b"1;", b"a"),
    "chunks with bare line feeds": (CHUNKED, b"1\nx\n"),
    "a trailer": (CHUNKED + b"0\r\n", b"a"),
    "trailers": (CHUNKED + b"0\r\n", b"a:" + b"b" * 400 + b"\r\n"),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", DRIPS)
def test_dripping_answers_cost_steps_in_proportion(name):
    """As counted bytes: each is given to a fixed number of functions, however many came before."""
    begin, unit = DRIPS[name]
    reader = ResponseReader(fresh=True)
    reader.feed(begin)
    dripping = pieces(unit * (15_000 // len(unit)), 1)

    def work():
        with contextlib.suppress(http.client.BadStatusLine):  # too much white space
            for piece in dripping:
                reader.feed(piece)

    assert bytes_given(work) < 100 * len(dripping)


def test_a_folded_header_costs_steps_in_proportion():
    wire = OK + b"A: b\r\n" + b" c\r\n" * 50_000 + b"\r\n"
    reader = ResponseReader()
    assert bytes_given(lambda: reader.feed(wire)) < 20 * len(wire)
    assert reader.head.fields == [("A", "b" + " c" * 50_000)]


def test_chunks_with_bare_line_feeds_cost_steps_in_proportion():
    wire = CHUNKED + b"1\nx\n" * 10_000 + b"0\n\n"
    reader, parts = ResponseReader(), []
    assert bytes_given(lambda: parts.append(reader.feed(wire))) < 20 * len(wire)
    assert (parts, reader.ended, reader.keeps) == ([b"x" * 10_000], True, False)


def test_white_space_before_a_status_line_has_a_limit():
    for unit in (b" ", b"\n", b"\r\n"):
        reader = ResponseReader(fresh=True)
        for piece in pieces(unit * 512, 1)[:512]:
            assert reader.feed(piece) == b""
        with pytest.raises(http.client.BadStatusLine, match="white space"):
            reader.feed(b" ")
    with pytest.raises(http.client.RemoteDisconnected):  # asked for again on a new connection
        ResponseReader().feed(b" " * 513 + OK + REST)


@pytest.mark.usefixtures("each_client")
def test_a_megabyte_in_one_byte_chunks_is_a_page_as_any_other():
    wire = CHUNKED + b"1\r\nx\r\n" * (1 << 20) + LAST
    with serve(lambda path, connection: wire) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port), content_limit=1 << 20))
        response = client.get(URL)
    assert (len(response.body), response.error, response.truncated) == (1 << 20, None, None)


def test_a_chunk_reader_keeps_little_of_an_incomplete_chunk():
    reader = ChunkReader()
    for _ in range(1000):
        reader.feed(b"1;" + b"e" * 100)
        assert len(reader._rest) < 20_000
        if reader.error:
            break
    assert type(reader.error).__name__ in ("FramingTooLarge", "IncompleteRead")


@pytest.mark.parametrize("other", [b"5", b"thousand", b"", b"-5", b"019"])
def test_lengths_that_disagree_are_an_error_and_not_a_choice(other):
    message = f"Content-Length '19' and '{other.decode()}'"
    for wire in (b"19\r\nContent-Length: %s" % other, b"19, %s" % other, b"19,%s" % other):
        with pytest.raises(http.client.HTTPException, match=message):
            ResponseReader().feed(OK + b"Content-Length: " + wire + b"\r\n\r\n" + PAGE)
