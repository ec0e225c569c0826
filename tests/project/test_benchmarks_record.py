"""The page of figures is made of what the benchmarks print, and worse ratios are shown."""

import importlib.util
import json
import re

import pytest
from here import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the wheel"
)


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("record", ROOT / "benchmarks" / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    return module


def page(*blocks):
    return "# Figures\n\n" + "\ntext\n\n".join(
        f"<!-- benchmarks/{command} -->\n```text\n{body}```\n" for command, body in blocks
    )


def recorded(recorder, folder, text, words):
    """Returns the page after a run, and how many benchmarks failed."""
    file = folder / "page.md"
    file.write_text(text)
    failed, _ = recorder.record(file, folder / "last.json", words)
    return file.read_text(), failed


def test_only_chosen_blocks_are_recorded_again(recorder, tmp_path):
    (tmp_path / "benchmarks" / "one.py").write_text("import sys; print('ratio', sys.argv[1:])")
    text = page(("one.py --small", "old\n"), ("two.py", "kept\n"), ("one.py", ""))
    made, failed = recorded(recorder, tmp_path, text, ["one"])
    assert failed == 0
    bodies = re.findall(r"```text\n(.*?)```", made, re.DOTALL)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d, \d+ cores\n\nratio \['--small'\]\n", bodies[0])
    assert bodies[1] == "kept\n"
    assert bodies[2].endswith("ratio []\n")
    assert re.sub(r"```text\n.*?```", "", made, flags=re.DOTALL) == re.sub(
        r"```text\n.*?```", "", text, flags=re.DOTALL
    )


def test_a_benchmark_that_fails_leaves_the_old_block(recorder, tmp_path):
    (tmp_path / "benchmarks" / "one.py").write_text("raise SystemExit('needs duckdb')")
    text = page(("one.py", "old\n"))
    assert recorded(recorder, tmp_path, text, []) == (text, 1)


def test_each_measured_block_is_written_at_once(recorder, tmp_path):
    (tmp_path / "benchmarks" / "one.py").write_text("print('made')")
    file = tmp_path / "page.md"
    end = f"import os, pathlib; print(pathlib.Path({str(file)!r}).read_text())"
    (tmp_path / "benchmarks" / "two.py").write_text(end)
    made, _ = recorded(recorder, tmp_path, page(("one.py", "old\n"), ("two.py", "old\n")), [])
    assert made.count("made\n") == 2  # the second has seen the page with the first


TABLE = """
fetch, median of 3
  pages            ours  bare  ratio
  ---------------  ----  ----  -----
  per CPU second    300   200  {speed}
  peak memory, MB    60    20  {memory}

links; budget: 2
  the work alone  ours  bare  ratio
  --------------  ----  ----  -----
  CPU s              2     1  {work}
"""


def test_ratios_that_are_much_worse_are_shown(recorder, tmp_path):
    file, last = tmp_path / "page.md", tmp_path / "last.json"
    file.write_text(page(("one.py", "old\n")))

    def worse(**ratios):
        output = TABLE.format(**ratios)
        (tmp_path / "benchmarks" / "one.py").write_text(f"print({output!r})")
        return list(map(str, recorder.record(file, last, [])[1]))

    assert worse(speed=1.5, memory=3.0, work=2.0) == []  # there is no last run
    assert worse(speed=1.4, memory=3.4, work=2.2) == []  # less than 15 %
    assert worse(speed=2.5, memory=1.0, work=1.0) == []  # better
    assert worse(speed=2.0, memory=1.2, work=1.1) == [
        "benchmarks/one.py: 1, per CPU second, ratio (larger is better): 2.5 before, 2 now",
        "benchmarks/one.py: 1, peak memory, MB, ratio: 1 before, 1.2 now",
    ]
    assert worse(speed=2.0, memory=1.2, work=1.3) == [
        "benchmarks/one.py: 2, CPU s, ratio: 1.1 before, 1.3 now"
    ]


def test_full_sizes_are_not_compared_and_change_no_file(recorder, tmp_path):
    (tmp_path / "benchmarks" / "one.py").write_text("import sys; print(sys.argv[1:])")
    text = page(("one.py", "old\n"))
    assert recorded(recorder, tmp_path, text, ["--full"]) == (text, 0)
    assert not (tmp_path / "last.json").exists()


def test_last_run_has_ratios_of_the_commands_of_the_page(recorder):
    last = json.loads((ROOT / "benchmarks" / "last_figures.json").read_text())
    blocks = recorder.BLOCK.finditer((ROOT / "docs" / "performance.md").read_text())
    assert set(last) == {each["command"] for each in blocks}
    assert sum(len(each["ratios"]) for each in last.values()) > 100


def test_all_commands_of_the_page_are_there():
    text = (ROOT / "docs" / "performance.md").read_text()
    commands = re.findall(r"<!-- (benchmarks/\S+)", text)
    assert commands
    assert all((ROOT / command).is_file() for command in commands)


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def test_readme_has_the_figures_of_the_page():
    blocks = re.findall(
        r"```text\n(.*?)```", (ROOT / "docs" / "performance.md").read_text(), re.DOTALL
    )
    found = [[value_of(number) for number in NUMBER.findall(block)] for block in blocks]
    rows = rows_of_readme()
    assert len(rows) > 20
    for row in rows:
        shown = NUMBER.findall(" ".join(row[1:4]))
        assert any(all(is_in(one, block) for one in shown) for block in found), row


def test_readme_says_which_budgets_are_missed():
    missed = 0
    for _, ours, _, ratio, budget in rows_of_readme():
        limit = re.match(r"(at most|at least|under) ([\d.]+)( \u00d7|)", budget)
        if limit is None:
            continue
        figure = value_of(NUMBER.findall(ratio if limit[3] else ours)[0])
        met = figure >= float(limit[2]) if limit[1] == "at least" else figure <= float(limit[2])
        assert met != budget.endswith(", missed"), (ratio, budget)
        missed += not met
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    assert f" {words[missed]} in this table" in (ROOT / "README.md").read_text()


def rows_of_readme():
    table = (ROOT / "README.md").read_text().partition("| what | nutbeam | baseline |")[2]
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def value_of(number):
    return float(number.replace(",", ""))


def is_in(shown, measured):
    """Whether one of the measured numbers is shown like this."""
    digits = len(shown.partition(".")[2])
    return any(abs(value_of(shown) - value) <= 0.5001 * 10**-digits for value in measured)
