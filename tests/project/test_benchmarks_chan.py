"""The web of benchmarks/chan.py is what its page says: sizes, coding, failures."""

import gzip
import statistics

import pytest
from here import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the wheel"
)


@pytest.fixture
def web(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import chan_web

    return chan_web


def test_pages_have_the_sizes_of_the_web(web):
    sizes = [sum(len(piece.plain) for piece in web.pieces_of(n, 1)) for n in range(1_000)]
    assert statistics.mean(sizes) == pytest.approx(web.MEAN_BYTES, rel=0.1)
    assert statistics.median(sizes) == pytest.approx(web.MEDIAN_BYTES, rel=0.1)


def test_joined_pieces_are_gzip(web):
    head, _, body = web.answer_of(3, 1).partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head
    assert f"Content-Length: {len(body)}".encode() in head
    page = gzip.decompress(body)
    assert page == b"".join(piece.plain for piece in web.pieces_of(3, 1))
    assert page.startswith(b"<!DOCTYPE html>")


def test_a_fifth_of_the_pages_fails(web):
    pages = [(host, page) for host in range(2_000) for page in range(2)]
    unreachable = [".test/" not in web.url_of(*page) for page in pages]
    failing = [lost or web.fault_of(*page) for page, lost in zip(pages, unreachable, strict=True)]
    assert statistics.mean(map(bool, failing)) == pytest.approx(0.2, abs=0.02)
