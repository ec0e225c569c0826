import os
import pickle
import subprocess
import sys

import polars as pl
import pytest

from nutbeam.web.base.errors import UsageError
from nutbeam.web.plugins.plugin_files import (
    fault_text,
    load_plugin_file,
    place_of_code,
    plugin_label,
    read_plugin_files,
)
from nutbeam.web.plugins.plugin_options import plugin_names
from nutbeam.web.rules.url_rules import UrlOptions, UrlRules


def test_a_file_runs_once_until_it_is_read_again(tmp_path):
    path = tmp_path / "one.py"
    path.write_text("import os\nruns = os.environ.get('X')\ndef f(): return 1\n")
    name = f"{path}:f"
    first = load_plugin_file(name, "x")
    path.write_text("def f(): return 2\n")
    assert load_plugin_file(name, "x") is first
    read_plugin_files([name])
    assert load_plugin_file(name, "x")() == 2


def test_messages_name_the_file_of_a_plugin_not_the_module_that_it_becomes(tmp_path):
    path = tmp_path / "one.py"
    path.write_text("def f(): pass\n")
    assert place_of_code(load_plugin_file(f"{path}:f", "x")) == f"file {path}"
    assert place_of_code(plugin_label) == f"module {plugin_label.__module__}"


def test_a_missing_file_is_named():
    with pytest.raises(UsageError, match=r"plug-in file '/no/x\.py' cannot be read: no such file"):
        read_plugin_files(["/no/x.py:f", "regex"])


def test_the_source_of_a_file_travels_with_the_options_to_where_there_is_no_file(tmp_path):
    """Also from there to a third process."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "rules.py").write_text("def no(urls):\n    return ~urls.str.contains('/no')\n")
    send = (
        "import os, pickle, sys\nfrom nutbeam.web.rules.url_rules import UrlOptions, UrlRules\n"
        "rules = UrlRules(UrlOptions(url_filters=('./rules.py:no',)))\n"
        "sys.stdout.buffer.write(pickle.dumps(rules))"
    )
    forward = (
        "import pickle, sys\nrules = pickle.load(sys.stdin.buffer)\n"
        "sys.stdout.buffer.write(pickle.dumps(rules.options))"
    )
    python, environment = [sys.executable, "-P", "-c"], {"PATH": os.environ["PATH"]}
    sent = subprocess.run(
        [*python, send], cwd=here, env=environment, capture_output=True, check=True
    )
    passed = subprocess.run([*python, forward], cwd=there, env=environment, input=sent.stdout,
                            capture_output=True, check=True)  # fmt: skip
    rules = UrlRules(pickle.loads(passed.stdout))
    reasons = rules.admit(pl.Series(["http://a.com/no", "http://a.com/yes"]))["reason"]
    assert reasons.to_list() == ["filtered", None]


def test_options_without_a_file_carry_none():
    assert b"plugin_sources" not in pickle.dumps(UrlOptions(exclude=("./a.py:b",)))


def test_names_are_those_of_all_options():
    options = UrlOptions(
        url_filters=("regex", "./a.py:f"), url_normalizers_in=("inject=basic+./b.py:g",),
        protocols=("gemini:=./c.py:h", "a.com=mine"),
    )  # fmt: skip
    names = plugin_names(options)
    assert {"./a.py:f", "./b.py:g", "./c.py:h", "mine"} <= set(names)
    assert [plugin_label(name) for name in names if ".py" in name] == ["c.h", "a.f", "b.g"]


def test_a_fault_cannot_write_control_characters_to_a_terminal():
    fault = fault_text(ValueError("two\nlines\x1b[31m"), len)
    assert fault == "ValueError: two lines\\x1b[31m"
