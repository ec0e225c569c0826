"""``nutbeam import_warc`` of a record of 5 GB: its page is cut, and memory does not grow with it."""

import gzip
import os
import zlib

import pytest
import zstandard
from peak_memory import peak_memory
from written_archives import pages_of

pytestmark = pytest.mark.long
SIZE = 5 << 30
MOST = 580  # MiB; an import of small records takes half of it
HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def head(name, size):
    return (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{name}>\r\n"
        f"WARC-Date: 2016-01-02T03:04:05Z\r\nWARC-Target-URI: http://a.com/{name}\r\n"
        f"Content-Type: application/http\r\nContent-Length: {size}\r\n\r\n"
    ).encode()


SMALL = head("small", len(HTTP) + 3) + HTTP + b"<p>\r\n\r\n"
LARGE = head("large", len(HTTP) + SIZE) + HTTP


def write_large(path, kind):
    """Writes a file of a large record of zeros and a small one."""
    with path.open("wb") as file:
        if kind == "plain":
            file.write(LARGE)
            file.seek(SIZE, os.SEEK_CUR)  # a hole
            file.write(b"\r\n\r\n" + SMALL)
            return
        zstd = zstandard.ZstdCompressor(level=1)
        packer = zlib.compressobj(1, wbits=31) if kind == "gz" else zstd.compressobj()
        file.write(packer.compress(LARGE))
        for _ in range(SIZE >> 20):
            file.write(packer.compress(bytes(1 << 20)))
        file.write(packer.compress(b"\r\n\r\n") + packer.flush())
        file.write(gzip.compress(SMALL) if kind == "gz" else zstd.compress(SMALL))


@pytest.mark.parametrize("kind", ["gz", "zst", "plain"])
def test_a_record_of_5_gb_is_cut_at_the_limit_in_bounded_memory(tmp_path, kind):
    path, table = tmp_path / ("a.warc" if kind == "plain" else f"a.warc.{kind}"), tmp_path / "table"
    write_large(path, kind)
    words = ["import_warc", str(table), str(path), "--content_limit", "1000", "--progress", "false"]
    peak, output = peak_memory(*words)
    path.unlink()
    assert "truncated/content_limit 1" in output
    assert {key: len(page["body"]) for key, page in pages_of(table).items()} == {
        "http://a.com/large": 1000, "http://a.com/small": 3,
    }  # fmt: skip
    assert peak < MOST
