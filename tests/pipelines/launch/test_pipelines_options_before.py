"""Options of earlier jobs: a batch done with others is no success, and missing rules are named."""

import json
import re
import shlex
import subprocess
import sys

import pytest
from crawling import manifest_of, nutbeam, reach, tree
from hostile_tables import change_manifest
from simulated_web import served_web

web = served_web(hosts=2, pages=4, scope="module")
RULES = ("--scope", "host", "--exclude", "/p1", "--depth", "3")


@pytest.fixture
def table(web, tables, tmp_path):
    """A table that a crawl with rules for links has made."""
    folder = tables(tmp_path / "table")
    words = (*web.seeds, *RULES, "--rounds", "1", *reach(web))
    assert nutbeam("crawl", folder, *words) == 0
    return folder


def fetched_batch(table, web):
    """Returns the id of a new batch that is fetched."""
    assert nutbeam("generate", table) == nutbeam("fetch", table, *reach(web)) == 0
    return next(name for name, b in manifest_of(table).batches.items() if b.phase == "fetched")


def error_of(capsys, *words):
    """Returns what a command that is refused says."""
    capsys.readouterr()
    assert nutbeam(*words) == 2
    return capsys.readouterr().err


def test_a_batch_that_was_done_with_other_options_is_refused(table, web, capsys):
    batch = ("--batch", fetched_batch(table, web))
    assert nutbeam("parse", table, *batch, *RULES[:2]) == 0
    files = tree(table)
    assert nutbeam("parse", table, *batch, *RULES[:2]) == 0  # done before
    said = error_of(capsys, "parse", table, *batch, "--exclude", "a|b")
    assert "was parsed with other options: with --scope host, now --exclude 'a|b'" in said
    assert tree(table) == files
    # The advice is right.
    assert f"nutbeam parse {table} --batch {batch[1]} --reparse parses" in said
    assert nutbeam("parse", table, *batch, "--reparse", "--exclude", "a|b") == 0
    assert nutbeam("parse", table, *batch, "--exclude", "a|b") == 0  # done before
    assert nutbeam("updatedb", table, *batch, "--exclude", "a|b") == 0
    assert nutbeam("updatedb", table, *batch, "--exclude", "a|b") == 0
    said = error_of(capsys, "updatedb", table, *batch, "--depth", "1")
    assert "with --exclude 'a|b', now --depth 1; nutbeam filterdb" in said
    assert f"{batch[1]} --reparse parses" in error_of(capsys, "parse", table, *batch)


@pytest.mark.long
def test_a_batch_that_was_parsed_while_it_was_fetched_remembers_the_options_too(table, capsys):
    (batch,) = manifest_of(table).batches
    assert nutbeam("parse", table, "--batch", batch, *RULES[:4]) == 0
    said = error_of(capsys, "parse", table, "--batch", batch)
    assert "with --scope host, --exclude /p1, now without" in said


@pytest.mark.long
def test_schemes_are_no_rule_for_links(table, web, capsys, caplog):
    batch = ("--batch", fetched_batch(table, web))
    assert nutbeam("parse", table, *batch, *RULES[:4], "--schemes", "http") == 0
    assert "schemes" not in manifest_of(table).rules
    assert nutbeam("parse", table, *batch, *RULES[:4]) == 0
    assert nutbeam("updatedb", table, *batch, *RULES, "--schemes", "http,ftp") == 0
    assert nutbeam("updatedb", table, *batch, *RULES) == 0
    assert "schemes" not in caplog.text + capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [("crawl",), ("round",), ("next",), ("parse",), ("updatedb",), ("generate", "--filter")],
)
@pytest.mark.few(1)
def test_a_job_that_has_nothing_to_do_does_not_warn_of_missing_rules(words, table, web, caplog):
    assert nutbeam("crawl", table, *RULES, "--rounds", "-1", *reach(web)) in (0, 1)
    caplog.clear()
    requests = reach(web) if words[0] in ("crawl", "round", "next") else ()
    assert nutbeam(words[0], table, *words[1:], *requests) == 1
    assert "lacks" not in caplog.text


@pytest.mark.long
def test_the_warning_says_how_to_drop_a_rule_and_names_no_module(table, web, tmp_path):
    command = [sys.executable, "-m", "nutbeam", "crawl", table, *reach(web), "--top_n", "1"]

    def said(*words):
        done = subprocess.run(
            [*map(str, command), *words], capture_output=True, text=True, check=True
        )
        return done.stderr

    first = said("--rounds", "1")
    assert "WARNING nutbeam: this job lacks --exclude /p1, --scope host, --depth 3 of" in first
    dropping = re.search(r"; (--.*) drops it on purpose", first)[1]
    assert dropping == "--exclude '' --scope domain --depth 50"
    assert nutbeam("crawl", table, *RULES, *reach(web), "--rounds", "0") == 1
    assert nutbeam("inject", table, *web.seeds, *RULES[2:4]) == 0
    assert "lacks" not in said("--rounds", "1", *shlex.split(dropping))


@pytest.mark.long
@pytest.mark.parametrize("command", ["crawl", "round", "next", "updatedb", "filterdb", "sitemap"])
@pytest.mark.few(1)
def test_a_job_that_lacks_rules_of_the_job_before_names_them(command, table, web, caplog):
    words = [command, table]
    if command in ("crawl", "round", "next"):
        words += [*reach(web), "--top_n", "1"]
    elif command == "sitemap":
        words += [*web.seeds, *reach(web)]
    else:
        batch = fetched_batch(table, web)
        assert nutbeam("parse", table, *RULES[:4]) == 0
        words += ["--batch", batch] if command == "updatedb" else ["--dry_run"]
    given = [word for word in RULES if "depth" not in word and word != "3"]
    depth = [] if command in ("filterdb", "sitemap") else RULES[4:]
    caplog.clear()
    nutbeam(*words, "--exclude", "other", *depth)
    assert caplog.text.count("this job lacks --scope host of the job before") == 1
    assert "--exclude /p1" not in caplog.text  # another value is meant
    if command == "filterdb":
        caplog.clear()
        nutbeam(*words, *given)
        assert "lacks" not in caplog.text


@pytest.mark.long
def test_rules_in_a_file_are_not_missing_and_stay_until_another_job_has_others(
    table, web, tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    rules = {"scope": "domain", "exclude": [], "depth": 50}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in rules.items())
    (tmp_path / "nutbeam.toml").write_text(lines)
    assert manifest_of(table).rules == {"scope": "host", "exclude": ["/p1"], "depth": 3}
    assert nutbeam("compact", table) == 0
    assert manifest_of(table).rules == {"scope": "host", "exclude": ["/p1"], "depth": 3}
    caplog.clear()
    assert nutbeam("crawl", table, *reach(web), "--rounds", "1") == 0
    assert "lacks" not in caplog.text
    assert manifest_of(table).rules == {}


@pytest.mark.long
def test_recorded_names_that_are_no_options_are_ignored_and_long_values_are_cut(
    table, web, capsys, caplog
):
    batch = ("--batch", fetched_batch(table, web))
    assert nutbeam("parse", table, *batch) == 0

    def change(record):
        record["options"] = {"parsed": {"__class__": "secret", "exclude": ["y" * 5_000] * 50}}
        record["rules"] = {"__class__": "secret", "exclude": ["y" * 5_000] * 50}

    change_manifest(table, change)
    said = error_of(capsys, "parse", table, *batch)
    assert "y" * 100 in said
    assert "40 more of --exclude" in said
    assert "secret" not in said
    assert "y" * 101 not in said
    change_manifest(
        table, lambda record: record.update(options={"parsed": {"__class__": "secret"}})
    )
    caplog.clear()
    assert nutbeam("filterdb", table) == 0
    said = caplog.text
    assert "y" * 100 in said
    assert "secret" not in said
    assert "y" * 101 not in said
