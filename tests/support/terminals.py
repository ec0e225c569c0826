"""Commands on a real pseudo-terminal, and what strangers must not make it do."""

import contextlib
import fcntl
import logging
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import unicodedata

import pyte

from nutbeam.pipelines.command_line.cli import main

# What others say: a window's title, a colour that we never use, C1, DEL, bidirectional and invisible
# characters, a tag. WORD stands in all of it, so that a test sees that it has arrived.
WORD = "PWNED"
COLOUR = "\x1b[95;105m"
EVIL = f"\x1b]0;{WORD}\x07{COLOUR}\x9b2J\x7f\u202e\u2066\u200b\u200f\u061c\ufeff\U000e0041end"
# What rich says by itself: styles, hiding and moving the cursor, clearing a line.
_OURS = re.compile(r"\x1b\[(?:\d{1,3}(?:;\d{1,3})*)?m|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r")
_NEVER = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def obeyed(output, term="dumb"):
    """Returns what of an output a terminal would obey, and that is not our own doing.

    Args:
        output: The bytes that came to the terminal.
        term: Of a ``dumb`` one nothing at all is our own doing.
    """
    text = output.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    found = [COLOUR] if COLOUR in text else []
    text = text if term == "dumb" else _OURS.sub("", text)
    return found + sorted({c for c in text if unicodedata.category(c) in _NEVER} - {"\n", "\t"})


@contextlib.contextmanager
def terminal(chunks, width=400, rows=50):
    """Opens a pseudo-terminal; yields its descriptor for programs; what they write comes to ``chunks``."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, width, 0, 0))
    reader = threading.Thread(target=_collect, args=(master, chunks), daemon=True)
    reader.start()
    try:
        yield slave
    finally:
        os.close(slave)
        reader.join()
        os.close(master)


def _collect(master, chunks):
    for chunk in read(master):
        chunks.append(chunk)


def read(master):
    """Yields what programs write to a pseudo-terminal, until its other end is closed."""
    with contextlib.suppress(OSError):  # what a terminal says once its other end is closed
        while chunk := os.read(master, 1 << 16):
            yield chunk


class Screen:
    """What a terminal shows, by an emulator: its lines, with those that have scrolled away."""

    def __init__(self, columns=100, rows=12):
        self._size = columns, rows

    def after(self, output):
        """Returns (lines without the empty ones at the end, whether the cursor is shown)."""
        screen = pyte.HistoryScreen(*self._size, history=10_000)
        pyte.ByteStream(screen).feed(output)
        above = [
            "".join(line[column].data for column in range(self._size[0])).rstrip()
            for line in screen.history.top
        ]
        lines = [*above, *(line.rstrip() for line in screen.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines, not screen.cursor.hidden


def typed(monkeypatch, *words, term="dumb"):
    """Runs a command in this process on a terminal; returns its exit code, and the bytes that came."""
    chunks = []
    with terminal(chunks) as slave, monkeypatch.context() as patch:
        patch.setenv("TERM", term)
        patch.setattr(logging.getLogger(), "handlers", [])  # pytest's
        patch.delenv("COLUMNS", raising=False)
        with (
            open(slave, "w", encoding="utf-8", closefd=False) as out,
            open(slave, "w", encoding="utf-8", closefd=False, errors="backslashreplace") as err,
        ):
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = main(list(map(str, words)))
            for handler in logging.getLogger().handlers:
                handler.flush()
    return code, b"".join(chunks)


def process(*command, term="dumb", talk=None, **environment):
    """Runs a process on a terminal; returns its exit code, and the bytes that came.

    Args:
        command: Its words.
        term: The kind of terminal.
        talk: Called with the process and with the list of what comes; makes one that serves end. Without
            it standard input is empty.
        environment: More variables.
    """
    chunks = []
    with terminal(chunks) as slave:
        known = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
        with subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
            stdout=slave, stderr=slave, env=known | {"TERM": term} | environment,
        ) as running:  # fmt: skip
            try:
                if talk:
                    talk(running, chunks)
                running.communicate(timeout=400)
            except BaseException:
                running.kill()
                raise
    return running.returncode, b"".join(chunks)
