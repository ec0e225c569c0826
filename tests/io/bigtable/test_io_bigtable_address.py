import subprocess
import sys

import pytest

from nutbeam.io.bigtable.address import EMULATOR, is_bigtable, parse_address
from nutbeam.web.base.errors import UsageError


@pytest.mark.parametrize(
    "text",
    [
        "bigtable://my-project/my-instance/crawl",
        "bigtable://example.com:my-project/my-instance/Crawl_1.a-b",
        "bigtable://my-project/my-instance/crawl?app_profile=batch",
        "bigtable://my-project/my-instance/crawl?app_profile=batch&emulator=localhost:8086",
        "bigtable://my-project/my-instance/crawl?emulator=[::1]:8086",
    ],
)
def test_an_address_is_read_and_spelt_as_it_was(text):
    assert str(parse_address(text, {})) == text
    assert is_bigtable(text)


def test_an_address_names_table_app_profile_and_emulator():
    address = parse_address("bigtable://my-project/my-instance/crawl?app_profile=batch", {})
    assert address.name == "projects/my-project/instances/my-instance/tables/crawl"
    assert address.app_profile == "batch"
    assert address.emulator == ""


@pytest.mark.parametrize(
    ("environ", "emulator"),
    [({}, "a:1"), ({EMULATOR: "b:2"}, "a:1"), ({EMULATOR: ""}, "a:1")],
)
def test_the_emulator_of_the_address_comes_first(environ, emulator):
    text = "bigtable://my-project/my-instance/crawl?emulator=a:1"
    assert parse_address(text, environ).emulator == emulator


def test_the_emulator_of_the_environment_goes_into_the_address():
    address = parse_address("bigtable://my-project/my-instance/crawl", {EMULATOR: "b:2"})
    assert str(address) == "bigtable://my-project/my-instance/crawl?emulator=b:2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("crawl", "the table must be bigtable://PROJECT/INSTANCE/TABLE, got 'crawl'"),
        ("bigtable://", "the table must be bigtable://PROJECT/INSTANCE/TABLE, got 'bigtable://'"),
        ("bigtable:/p/i/t", "the table must be bigtable://PROJECT/INSTANCE/TABLE, got"),
        ("bigtable://my-project/my-instance", "the table must be bigtable://PROJECT"),
        ("bigtable://my-project/my-instance/t/", "the table must be bigtable://PROJECT"),
        ("bigtable://p/my-instance/t", "the project must be 6 to 30 of a-z, 0-9 and -, got 'p' in"),
        ("bigtable://My-Project/my-instance/t", "got 'My-Project' in"),
        ("bigtable://my-project/i/t", "the instance must be 6 to 33 of a-z, 0-9 and -, got 'i' in"),
        ("bigtable://my-project/my-instance/", "the table must be 1 to 50 of letters"),
        ("bigtable://my-project/my-instance/a b", "got 'a b' in"),
        ("bigtable://my-project/my-instance/" + "t" * 51, "the table must be 1 to 50"),
        ("bigtable://my-project/my-instance/t?", "after ? only app_profile and emulator"),
        ("bigtable://my-project/my-instance/t?x=1", "after ? only app_profile and emulator"),
        ("bigtable://my-project/my-instance/t?app_profile", "the application profile must be"),
        ("bigtable://my-project/my-instance/t?app_profile=a&app_profile=b", "once each"),
        ("bigtable://my-project/my-instance/t?app_profile=", "the application profile must be"),
        ("bigtable://my-project/my-instance/t?app_profile=a/b", "got 'a/b' in"),
        ("bigtable://my-project/my-instance/t?emulator=x", "the emulator must be HOST:PORT"),
    ],
)  # fmt: skip
def test_malformed_addresses_are_refused_and_quoted(text, said):
    with pytest.raises(UsageError) as error:
        parse_address(text, {})
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_malformed_emulator_is_refused():
    with pytest.raises(UsageError, match="BIGTABLE_EMULATOR_HOST must be HOST:PORT, got 'http"):
        parse_address("bigtable://my-project/my-instance/t", {EMULATOR: "http://localhost:1/"})


def test_commands_without_bigtable_do_not_load_its_libraries():
    code = (
        "import sys; from nutbeam.pipelines import generate; from nutbeam.pipelines.views import table;"
        "from nutbeam.pipelines.command_line import cli; cli.main(['--help']);"
        "assert cli.main(['table', 'drop', 'bigtable://my-project/my-instance/t']) == 2;"
        "sys.exit(any(name.startswith('google.cloud.bigtable') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_packing_and_the_parse_worker_do_not_load_pandas(tmp_path):
    # pyarrow loads it, where it is installed, for its most common calls; that takes a second.
    (tmp_path / "pandas.py").write_text("raise SystemExit('pandas is loaded')")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from nutbeam.io.bigtable.cell_layout import cell_kind;"
        "from nutbeam.io.bigtable.cells import decode, encode; kind = cell_kind('state');"
        "from nutbeam.io.bigtable.request_parts import check_limits; import polars as pl;"
        "cells = encode(pl.DataFrame({'key': ['a', 'b'], 'score': [None, 1.0]}), kind);"
        "check_limits(cells); assert len(decode(cells, kind)) == 2;"
        "from nutbeam.io.parsing import parse_worker"
    )
    command = [sys.executable, "-c", code, tmp_path]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
