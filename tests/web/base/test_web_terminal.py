"""Streams on a real terminal and elsewhere: what passes, and what is shown."""

import io
import logging
import sys

from terminals import EVIL, WORD, obeyed, process, terminal

from nutbeam.web.base.terminal import (
    LineFormatter,
    VisibleBytes,
    VisibleStream,
    pass_records,
    unwrap_stream,
    visible_streams,
)

PARENT = """
import subprocess, sys
from nutbeam.web.base.terminal import Relay
relay = Relay()
for number in range(2):
    subprocess.run([sys.executable, "-Sc", {child!r}], stderr=relay.stderr)
relay.close()
print("end")
"""
CHILD = f"import os; os.write(2, {EVIL!r}.encode() * 3000); os.write(2, b'\\x9b31m\\n')"


def test_output_of_child_processes_is_shown_with_escapes():
    code, output = process(sys.executable, "-c", PARENT.format(child=CHILD))
    assert (code, obeyed(output)) == (0, [])
    assert output.count(WORD.encode()) == 6000
    assert output.count(rb"\x9b31m") == 2
    assert output.endswith(b"end\r\n")


def test_characters_that_come_in_parts_are_whole():
    out = io.StringIO()
    stream = VisibleBytes(out)
    for byte in "é\u202e日\n".encode():
        stream.write(bytes([byte]))
    assert out.getvalue() == "é\\u202e日\n"


def test_bytes_pass_where_there_is_no_terminal():
    raw = io.BytesIO()
    stream = VisibleStream(io.TextIOWrapper(raw, "utf-8"))
    stream.buffer.write(b"\x1b\xff")
    assert raw.getvalue() == b"\x1b\xff"
    stream.writelines(["\x1b", "\ud800\n"])
    stream.flush()
    assert raw.getvalue() == b"\x1b\xff\\x1b\\ud800\n"


def test_records_pass_where_there_is_no_terminal_alone(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with visible_streams():
        print("\x1b1")
        pass_records()
        print("\x1b2")
        with visible_streams():
            assert unwrap_stream(sys.stdout) is out
            print("\x1b3")
    print("\x1b4")
    assert out.getvalue() == "\\x1b1\n\x1b2\n\\x1b3\n\x1b4\n"
    chunks = []
    with terminal(chunks) as slave, open(slave, "w", closefd=False) as out:
        monkeypatch.setattr(sys, "stdout", out)
        with visible_streams():
            pass_records()
            print("\x1b5")
            sys.stdout.buffer.write(b"\x1b6")
    assert b"".join(chunks) == b"\\x1b5\r\n\\x1b6"


def test_there_may_be_no_stream(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with visible_streams():
        assert sys.stderr is None


def test_a_record_is_one_line_and_its_traceback_follows():
    form = LineFormatter("%(levelname)s %(name)s: %(message)s")
    record = logging.LogRecord("nutbeam", 30, "", 0, "from %s", ("a\nERROR x: \x1b",), None)
    assert form.format(record) == "WARNING nutbeam: from a\\nERROR x: \\x1b"
    try:
        raise ValueError("b")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert form.format(record).splitlines()[-1] == "ValueError: b"
