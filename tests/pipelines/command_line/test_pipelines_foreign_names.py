"""Typing errors, and names of other crawlers: each gets the right answer, or none."""

import inspect
from collections import defaultdict

import pytest

from nutbeam.pipelines.base.suggestions import similar
from nutbeam.pipelines.command_line.cli import load, option_names
from nutbeam.pipelines.command_line.commands import COMMANDS

# Typing errors and half names: the only good guesses, in order; none where any would be wrong.
TYPED = {
    "crawl": {
        "--round": ["--rounds"], "--agent": ["--agent_name", "--agent_url"], "--topn": ["--top_n"],
        "--exlude": ["--exclude"], "--includes": ["--include"], "--delay": ["--server_delay"],
        "--max_depth": [], "--user_agent": [], "--frobnicate": [], "-v": [], "-q": [],
        "--thread": ["--threads"], "--robots": ["--robots_agents", "--robots_allowlist"],
        "--recursive": [],
    },
    "readdb": {"--stat": ["--stats"], "--tops": ["--top"], "--json": [], "--output_file": []},
    "simweb": {"--prot": ["--port"], "--host": ["--hosts"], "--sedd": ["--seed"]},
}  # fmt: skip


@pytest.mark.parametrize("command", TYPED)
def test_typing_errors_get_a_good_guess_or_none(command):
    known = [f"--{name}" for name in option_names(command)]
    for flag, expected in TYPED[command].items():
        found = similar(flag, known)
        assert (set(expected) <= set(found)) if expected else found == [], (flag, found)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("fecth", ["fetch"]), ("geneate", ["generate"]), ("crawler", ["crawl"]), ("page", ["pages"]),
        ("update", ["updatedb", "updatehostdb"]), ("dedupe", ["dedup"]), ("robots", ["robotsparser"]),
        ("stats", ["status"]), ("query", []), ("delete", []), ("links", []), ("list", []), ("x", []),
    ],
)  # fmt: skip
def test_typing_errors_of_commands(typed, expected):
    assert similar(typed, COMMANDS) == expected


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_flag_of_a_command_is_one_property(command):
    """Two declarations of one name would share a field of the command's options."""
    try:
        options = load(command).Options
    except ModuleNotFoundError:
        pytest.skip("not installed")
    declared = defaultdict(set)
    for cls in options.__mro__:
        for name in inspect.get_annotations(cls):
            field = getattr(cls, "__dataclass_fields__", {}).get(name)
            if field is not None and "option" in field.metadata:
                declared[name].add(field.metadata["option"].get("nutch"))
    assert {name: found for name, found in declared.items() if len(found) > 1} == {}
