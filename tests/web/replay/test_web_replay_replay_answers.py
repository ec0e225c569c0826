"""What a hostile archive says in heads does not break the answers of a replay."""

import gzip

from nutbeam.web.archives.captures import Capture
from nutbeam.web.replay.replay_answers import original_answer, page_answer


def capture(*headers, status=200, line="HTTP/1.1 200 OK", **fields):
    return Capture("http://a/", "", 0, status=status, status_line=line, headers=headers, **fields)


def test_headers_cannot_begin_another_header_or_another_answer():
    evil = capture(
        ("X-A", "1\r\nSet-Cookie: evil=1\r\n\r\nbody"), ("Bad\r\nName", "x"), ("", "x"), ("X:", "x"),
        line="HTTP/1.1 200 OK\r\nEvil: 1", body=b"page",
    )  # fmt: skip
    answer = original_answer(evil, "")
    text = repr((answer.reason, answer.fields))
    assert "\\r" not in text
    assert "\\n" not in text
    assert [name for name, _ in answer.fields] == ["X-A"]


def test_headers_of_the_connection_are_left_out():
    names = (
        "Connection",
        "Keep-Alive",
        "Transfer-Encoding",
        "Content-Length",
        "Upgrade",
        "X-Hop",
        "X",
    )
    headers = [(name, "X-Hop" if name == "Connection" else "7") for name in names]
    assert original_answer(capture(*headers, body=b"page"), "").fields == [("X", "7")]


def test_codes_that_would_end_no_answer_are_errors_of_the_replay():
    for status in (0, 100, 101, 199, 1000):
        line = f"HTTP/1.1 {status}"
        assert original_answer(capture(status=status, line=line, body=b"x"), "").status in (
            200,
            502,
        )
    assert original_answer(capture(status=204, body=b"x"), "").body == b""


def test_a_coded_body_is_for_clients_that_accept_its_coding():
    wire = gzip.compress(b"page")
    headers = (("Content-Encoding", "gzip"), ("Content-Length", str(len(wire))))
    coded = capture(*headers, body=b"page", wire=wire)
    assert original_answer(coded, "br, gzip").body == wire
    for other in ("", "br"):
        answer = original_answer(coded, other)
        assert answer.body == b"page"
        assert "Content-Encoding" not in dict(answer.fields)
    cut = capture(*headers, body=b"pa", wire=wire[:9], truncated="length")
    assert original_answer(cut, "gzip").body == b"pa"
    error = capture(*headers, status=404, wire=wire)  # only as it was transferred
    assert original_answer(error, "").body == page_answer(error).body == b"page"
    damaged = capture(*headers, status=404, wire=b"\x1f\x8b\x08junk")
    assert original_answer(damaged, "").body in (b"", b"\x1f\x8b\x08junk")


def test_chunks_are_put_together():
    chunked = capture(
        ("Transfer-Encoding", "chunked"), body=b"page", wire=b"4\r\npage\r\n0\r\n\r\n"
    )
    answer = original_answer(chunked, "")
    assert (answer.body, answer.fields) == (b"page", [])


def test_a_body_that_was_cut_claims_the_bytes_that_it_lacks():
    """So a client that reads it as the server's answer does not take it for the whole."""
    whole_length = ("Content-Length", "5000")
    cut = original_answer(capture(whole_length, body=b"pa", truncated="length"), "")
    assert (cut.body, cut.length, cut.incomplete) == (b"pa", 5000, "length")
    for unknown in ((), (("Content-Encoding", "gzip"), ("Content-Length", "9"))):
        answer = original_answer(capture(*unknown, body=b"page", truncated="disconnect"), "")
        # Clients take a page for whole that lacks a few bytes.
        assert (answer.body, answer.length > 1000, answer.incomplete) == (
            b"page",
            True,
            "disconnect",
        )
    unkept = original_answer(capture(whole_length), "")
    assert (unkept.body, unkept.length, unkept.incomplete) == (b"", 5000, "unspecified")
    error = original_answer(capture(whole_length, status=404, body=b"n", truncated="time"), "")
    assert (error.length, error.incomplete) == (1, "time")  # its body decides nothing
    by_path = page_answer(capture(whole_length, body=b"pa", truncated="length"))
    assert (by_path.body, by_path.incomplete) == (b"pa", "length")


def test_a_body_that_is_whole_as_it_came_or_by_its_format_is_not_cut():
    page, wire = b"page" * 9, gzip.compress(b"page" * 9)
    headers = (("Content-Encoding", "gzip"), ("Content-Length", str(len(wire))))
    limited = capture(*headers, body=page[:5], wire=wire, truncated="length")
    for accepted, body in (("gzip", wire), ("", page)):
        answer = original_answer(limited, accepted)
        assert (answer.body, answer.length, answer.incomplete) == (body, len(body), None)
    assert page_answer(limited).body == page
    for whole in ("frame", "checksum"):
        answer = original_answer(capture(("Content-Length", "50"), body=page, truncated=whole), "")
        assert (answer.length, answer.incomplete) == (len(page), None)
