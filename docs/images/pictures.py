"""Draws the pictures of the README: ``python docs/images/pictures.py docs/images``.

``make pictures`` runs it. Everything in them is real: the commands run on a pseudo-terminal,
against a simulated web on this machine. ``crawl.svg`` is a crawl, ``demo.svg`` the end of ``make
demo`` and what its next steps show.
"""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from nutbeam.pipelines.command_line.demo import MOST_LINKED
from nutbeam.web.simweb.server import SimWeb

COLUMNS, ROWS = 96, 60
CRAWL = ("crawl", "mine", "http://h0.example.com/", "--rounds", "3")
DEMO = ".work/demo"
# The commands after the demo, as they are typed and as they are run.
QUERIES = (
    ("readdb", DEMO, "--top", "5"),
    ("sql", DEMO, MOST_LINKED),
)
# The view that is drawn again and again clears its lines and moves the cursor up, by these alone.
CLEAR, UP = "\x1b[2K", "\x1b[1A"
_MOVES = re.compile(r"(\x1b\[2K|\x1b\[1A|\r|\n)")
_OTHERS = re.compile(r"\x1b\[\?25[lh]")
NUTBEAM = str(Path(sys.executable).with_name("nutbeam"))
_FONTS = re.compile(r"\s*@font-face \{\{.*?\}\}", re.DOTALL)


def screen(output: str) -> list[str]:
    """Returns the lines that a terminal shows at the end, with their colours.

    >>> screen("1 page\\r\\x1b[2K2 pages\\r\\ndone")
    ['2 pages', 'done']
    >>> screen("a\\r\\nb\\r\\x1b[2K\\x1b[1A\\x1b[2Kc")
    ['c', '']
    """
    lines, row, fresh = [""], 0, False
    for part in _MOVES.split(_OTHERS.sub("", output)):
        if part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif part == UP:
            row -= 1
        elif part == CLEAR:
            lines[row] = ""
        elif part == "\r":
            fresh = True
            continue
        elif part:
            lines[row] = part if fresh else lines[row] + part
        fresh = False
    return lines


def run_in_terminal(command: Sequence[str], folder: str) -> str:
    """Runs a command on a pseudo-terminal; returns all that it writes there."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=slave, stderr=slave)
    os.close(slave)
    chunks = []
    with contextlib.suppress(OSError):  # Linux says so when the other end is closed
        while chunk := os.read(master, 1 << 16):
            chunks.append(chunk)
    os.close(master)
    if process.wait():
        raise SystemExit(b"".join(chunks).decode())
    return b"".join(chunks).decode()


def picture(lines: Sequence[str], title: str) -> str:
    """Returns an SVG of a terminal; it loads no font from elsewhere."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, color_system="truecolor")
        for line in lines:
            console.print(Text.from_ansi(line), soft_wrap=True)
        return console.export_svg(title=title, code_format=_FONTS.sub("", CONSOLE_SVG_FORMAT))


def of_crawl(folder: str) -> list[str]:
    """Crawls a simulated web; returns the lines on the terminal."""
    with SimWeb(hosts=5, pages=20, seed=7, crawl_delay=0) as web:
        doors = [word for door in web.connect_to for word in ("--connect_to", door)]
        output = run_in_terminal([NUTBEAM, *CRAWL, *doors, "--server_delay", "0"], folder)
    typed = f"$ nutbeam {' '.join(CRAWL)} --connect_to … --server_delay 0"
    return [typed, *(line for line in screen(output) if line.strip())]


def of_demo(folder: str) -> list[str]:
    """Runs the demo and queries its table; returns the lines, the demo's from its last ones."""
    demo = [sys.executable, "-m", "nutbeam.pipelines.command_line.demo", DEMO]
    lines = ["$ make demo", "…", *_last_part(screen(run_in_terminal(demo, folder)))]
    for words in QUERIES:
        typed = f"$ .venv/bin/nutbeam {' '.join(words)}"
        lines += ["", *typed.replace(MOST_LINKED, f'\\\n      "{MOST_LINKED}"').split("\n")]
        output = screen(run_in_terminal([NUTBEAM, *words], folder))
        lines += [line for line in output if line.strip()]
    return lines


def _last_part(lines: Sequence[str]) -> list[str]:
    """Returns the lines from the one that names the table on."""
    first = max(at for at, line in enumerate(lines) if f"table is in {DEMO}" in line)
    return "\n".join(lines[first:]).rstrip().split("\n")


def main(folder: str) -> None:
    """Draws both pictures into a folder."""
    drawn = {
        "crawl.svg": (of_crawl, "a crawl of a simulated web"),
        "demo.svg": (of_demo, "what the demo has found"),
    }
    for name, (lines_of, title) in drawn.items():
        with tempfile.TemporaryDirectory() as here:
            lines = lines_of(here)
        (Path(folder) / name).write_text(picture(lines, title))


if __name__ == "__main__":
    main(*sys.argv[1:])
