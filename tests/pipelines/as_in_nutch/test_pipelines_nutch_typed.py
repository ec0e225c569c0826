"""Command lines of Nutch run as they are typed: those of its documentation, one after the other."""

import contextlib
import functools
import io
import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from crawling import manifest_of
from simulated_web import served_web

from nutbeam.pipelines.command_line.cli import main

LINES = tomllib.loads(Path(__file__).with_name("nutch_lines_typed.toml").read_text())["line"]
RUNS = {"some": [line for line in LINES if "long" not in line], "all": LINES}
CASES = [
    pytest.param(
        run, number, id=f"{run}-{line['typed']}", marks=[pytest.mark.long] * (run == "all")
    )
    for run, lines in RUNS.items()
    for number, line in enumerate(lines)
]
web = served_web(hosts=2, pages=4, scope="module")


class Ran(NamedTuple):
    """What a line did: its exit code, what it printed, and the names for braces at that time."""

    code: int
    out: str
    err: str
    names: dict[str, str]
    file_bytes: int


def run_line(words):
    """Runs a command with an empty standard input; returns its exit code and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def names_of(web, folder):
    """Returns the names in braces: a page, its host, and the batches that there are."""
    names = {"SEED": web.seeds[0], "HOST": urlsplit(web.seeds[0]).hostname}
    if (folder / "crawl" / "manifest").is_dir():
        for number, batch in enumerate(sorted(manifest_of(folder / "crawl").batches), start=1):
            names |= {f"BATCH{number}": batch, f"SEGMENT{number}": f"crawl/segments/{batch}"}
    return names


@pytest.fixture(scope="module")
def ran(web, tmp_path_factory):
    """Runs some lines or all in one folder, in order, once; returns pairs of a line and what it did."""
    return functools.cache(lambda run: run_lines(RUNS[run], web, tmp_path_factory.mktemp("nutch")))


def run_lines(lines, web, folder):
    (folder / "urls").mkdir()
    (folder / "urls" / "seed.txt").write_text("".join(f"{url}\n" for url in web.seeds))
    connect_to = ", ".join(f'"{each}"' for each in web.connect_to)
    (folder / "nutbeam.toml").write_text(
        f"connect_to = [{connect_to}]\nserver_delay = 0\nprogress = false\n"
        'agent_name = "tester"\nagent_email = "tester@example.org"\n'
    )
    results, before = [], Path.cwd()
    os.chdir(folder)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO())))
            for line in lines:
                names = names_of(web, folder)
                words = shlex.split(line["typed"].format(**names))
                result = run_line(words)
                size = (
                    Path(line["file"]).stat().st_size if Path(line.get("file", "-")).exists() else 0
                )
                results.append((line, Ran(*result, names, size)))
    finally:
        os.chdir(before)
    return results


@pytest.mark.few(6)
@pytest.mark.parametrize(("run", "number"), CASES)
def test_a_line_of_nutch_runs_as_it_is_typed(ran, run, number):
    line, result = ran(run)[number]
    assert result.code == line.get("code", 0), result.err
    ours = line["ours"].format(**result.names)
    said = re.search("^nutbeam [a-z]+: as in Nutch; (.*)$", result.err, re.MULTILINE)
    assert (said[1].partition("here it is: ")[2] if said else "") == ours
    assert line.get("notes", "") in result.err
    assert re.search(line.get("prints", "").format(**result.names), result.out, re.MULTILINE)
    assert result.file_bytes > 0 or "file" not in line
    assert "Traceback" not in result.err
    assert "internal error" not in result.err


def test_at_least_forty_lines_are_typed():
    assert len({line["typed"] for line in LINES}) >= 40
