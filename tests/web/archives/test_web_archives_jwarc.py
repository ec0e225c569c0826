"""jwarc, the reader of IIPC in Java, accepts the records and indexes them as we do."""

import gzip
import json
import shutil
import subprocess

import pytest
from running import TOOLS

from nutbeam.web.archives.captures import Capture
from nutbeam.web.archives.cdxj import IndexedRecord, cdxj_line
from nutbeam.web.archives.member_codecs import record_encoder
from nutbeam.web.archives.page_records import (
    NOT_MODIFIED,
    EarlierCapture,
    PageContent,
    answer_of,
    capture_records,
    dns_record,
    robots_record,
    warcinfo_record,
)
from nutbeam.web.archives.warc_records import encode_record

JAR = TOOLS / "jwarc.jar"
pytestmark = pytest.mark.skipif(
    not (shutil.which("java") and JAR.exists()),
    reason=f"no Java, or no jwarc at {JAR}: .ci/tools jwarc.jar fetches it",
)
BATCH, TIME = "20261128163224-aaaa", 1_795_883_544_123
HTML = b"<title>Pears</title> A pear is green."
ZIPPED = gzip.compress(HTML, mtime=0)
CHUNKED = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (ZIPPED[:9], ZIPPED[9:], b""))
TYPE = ("Content-Type", "text/html; charset=utf-8")
CODED = (("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked"))
EARLIER = EarlierCapture("http://a.com/first", TIME - 9000, BATCH)


def answer(path, *headers, status=200, line=None, body=HTML, **more):
    request = f"GET {path} HTTP/1.1\r\nHost: a.com\r\n\r\n"
    line = f"HTTP/1.1 {status} Fine" if line is None else line
    return Capture(f"http://a.com{path}", BATCH, TIME, request=request, status=status,
                   status_line=line, headers=(TYPE, *headers), body=body,
                   content_type="text/html", ip="192.0.2.1", **more)  # fmt: skip


# Whole and incomplete bodies, as they came and decoded, in each way that a server frames them.
ANSWERS = (
    answer("/decoded", *CODED),
    answer("/length", ("Content-Length", str(len(HTML)))),
    answer("/wire", *CODED, wire=CHUNKED),
    answer("/zipped", ("Content-Encoding", "gzip"), ("Content-Length", str(len(ZIPPED))), wire=ZIPPED),
    answer("/cut", ("Content-Length", "9000"), truncated="length"),
    answer("/cut-wire", ("Content-Length", "9000"), wire=HTML, truncated="disconnect"),
    answer("/cut-chunks", *CODED, wire=CHUNKED[:20], truncated="time"),
    answer("/lost", ("Content-Length", "67"), status=404, body=None),
    answer("/lost-chunks", ("Transfer-Encoding", "chunked"), status=500, body=None),
    answer("/empty", ("Content-Length", "0"), status=410, body=None),
    answer("/moved", ("Content-Length", "5"), ("Location", "/a"), status=301, body=None),
    answer("/no-content", status=204, body=None),
    answer("/twice", ("Content-Length", "37"), ("Content-Length", "37")),
    answer("/wrong", ("Content-Length", "x"), ("Content-Length", "-1")),
    answer("/old", line="HTTP/0.9 200"),
    answer("/odd-header", ("X-Odd", "caf\xe9 \x01\ttab"), ("X-Empty", "")),
)  # fmt: skip
REVISITS = (
    (answer("/copy", ("Content-Length", "37")), EARLIER),
    (answer("/copy-wire", *CODED, wire=CHUNKED), EARLIER),
    (answer("/same", ("Content-Length", "37"), status=NOT_MODIFIED, body=None), EARLIER),
    (answer("/alone", status=NOT_MODIFIED, body=None), None),
)


def jwarc(*words):
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", JAR, *words]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def written(folder, version):
    """Writes all records into a file; returns its path, and the lines of our index."""
    path, page = folder / "all.warc.gz", PageContent("A pear", [("title", "Pears")], ["http://b/"])
    encode, lines, data = record_encoder("gzip"), [], b""
    records = [(warcinfo_record(path.name, TIME, [("software", "x")]), None)]
    records += [(dns_record("a.com", "192.0.2.1", TIME, "1"), None)]
    records += [(robots_record("http://a.com/robots.txt", "User-agent: *", TIME, BATCH), None)]
    for capture, earlier in (*((capture, None) for capture in ANSWERS), *REVISITS):
        of_page = capture_records(capture, answer_of(capture), version, earlier=earlier,
                                  page=page, text=True, data=True)  # fmt: skip
        records += [(record, capture) for record in of_page]
    for record, capture in records:
        encoded = encode(encode_record(record, version))
        if capture and record.kind in ("response", "revisit"):
            digest = answer_of(capture).digest
            entry = IndexedRecord(
                capture.url, TIME, record.kind, capture.status, "text/html",
                None if capture.status == NOT_MODIFIED else digest,
                path.name, len(data), len(encoded),
            )  # fmt: skip
            lines.append(cdxj_line(entry))
        data += encoded
    path.write_bytes(data)
    return path, lines


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_jwarc_finds_no_error_in_records_of_odd_answers(version, tmp_path):
    path, _ = written(tmp_path, version)
    done = jwarc("validate", path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    broken = bytearray(path.read_bytes())
    broken[len(broken) // 2] ^= 255  # so that the check can fail
    path.write_bytes(broken)
    assert jwarc("validate", path).returncode != 0


def test_jwarc_indexes_the_same_answers_at_the_same_places(tmp_path):
    path, lines = written(tmp_path, "1.1")

    def entries(texts):
        names = ("url", "status", "digest", "length", "offset")
        return {
            (key, time[:14], *(fields.get(name) for name in names))
            for key, time, fields in (
                (key, time, json.loads(fields)) for key, time, fields in (
                    text.split(" ", 2) for text in texts))
        }  # fmt: skip

    ours, theirs = entries(lines), entries(jwarc("cdxj", path).stdout.splitlines())
    assert ours == {entry for entry in theirs if not entry[2].endswith(("robots.txt", "dns:a.com"))}
