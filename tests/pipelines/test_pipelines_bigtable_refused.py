"""Commands that cannot work on a table in Bigtable fail with one line."""

import pytest

pytestmark = pytest.mark.bigtable
AGENT = ["--agent_name", "tester", "--agent_email", "tester@example.com"]


# One of each kind: two that begin a table, a job, one that chooses a job, three that read.
JOBS = ("crawl", "inject", "generate", "next", "pages", "history", "fsck")


@pytest.mark.parametrize("command", JOBS)
def test_a_table_that_does_not_exist_is_one_line(bigtable, refuse, command):
    address = str(bigtable.new_address())
    words = ["http://www.example.com/"] if command in ("crawl", "inject") else []
    agent = AGENT if command in ("crawl", "next") else []
    line = refuse(command, address, *words, *agent, code=2)
    assert "nutbeam table create" in line
    assert address in line


@pytest.mark.parametrize("command", ["generate", "readdb"])
def test_an_emulator_that_does_not_answer_is_one_line(refuse, monkeypatch, command):
    monkeypatch.setattr("nutbeam.io.bigtable.channel.back_off", lambda failed: None)
    address = "bigtable://my-project/my-instance/t?emulator=127.0.0.1:1"
    line = refuse(command, address, code=3)
    assert f"the emulator at 127.0.0.1:1 failed 5 times in a row for {address}" in line


def test_no_credentials_are_one_line(refuse, monkeypatch, tmp_path):
    monkeypatch.delenv("BIGTABLE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    line = refuse("generate", "bigtable://my-project/my-instance/t", code=3)
    assert line.startswith("no credentials for bigtable://my-project/my-instance/t: ")
    assert line.endswith("log in with gcloud auth application-default login")


def test_files_that_workers_elsewhere_do_not_see_are_refused(table, refuse):
    line = refuse("generate", table, "--runner=FlinkRunner", "--flink_master=localhost:1")
    assert line.startswith(f"the files of {table!r} are in a folder of this machine, which workers")
    assert "--shared_path" in line


@pytest.mark.parametrize("command", [c for c in JOBS if c not in ("crawl", "inject")])
def test_a_table_without_a_snapshot_is_empty(table, refuse, command):
    agent = AGENT if command == "next" else []
    line = refuse(command, table, *agent)
    assert line == f"the web table at {table!r} is empty: inject puts seeds into it"
