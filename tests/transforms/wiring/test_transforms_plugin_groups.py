import polars as pl
import pytest
from plugins import install

from nutbeam.pipelines.running.arrival import check_worker
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.transforms.tickets import Ticket
from nutbeam.transforms.wiring.plugin_groups import SCORINGS, scorings_of, warn_of_hidden
from nutbeam.web.base.errors import UsageError
from nutbeam.web.plugins.plugins import check_plugins, forget_plugins, load_plugins


def test_a_changed_file_counts_at_once(tmp_path):
    path = tmp_path / "boosts.txt"
    options = ScoringOptions(scoring=("urlboost",), url_boost_file=str(path))
    rows = pl.DataFrame({"key": ["com.a:http/news"], "score": [1.0]})
    for factor in (2.0, 30.0):
        path.write_text(f"{factor} /news")
        found = scorings_of(options).sort_value(rows).get_column("sort_value")
        assert found.to_list() == [factor]


def test_scorings_are_loaded_once_and_in_order(tmp_path, monkeypatch):
    source = (
        "from nutbeam.policy.scoring.scoring import Scoring\nclass A(Scoring):\n    name = 'a'\n"
    )
    install(tmp_path, "two", {"two.py": source}, {"a": "two:A", "no": "two:__name__"},
            group="nutbeam.scorings")  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    forget_plugins()
    steps = scorings_of(ScoringOptions(scoring=("a", "opic"))).steps
    assert [step.name for step in steps] == ["a", "opic"]
    with pytest.raises(UsageError, match=r"scoring 'no' is no function: 'two:__name__'"):
        load_plugins(SCORINGS, ("no",))
    forget_plugins()


def test_unknown_scorings_are_refused_with_those_that_there_are():
    expected = r"no scoring 'x' is installed: there are opic, .*, urlboost, mine$"
    with pytest.raises(UsageError, match=expected):
        check_plugins(SCORINGS, ("opic", "mine", "x"), ["mine"])


def test_a_worker_without_the_plugin_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("nutbeam.pipelines.running.arrival.check_versions", lambda ticket: None)
    with pytest.raises(
        UsageError, match=r"on the workers: no scoring 'elsewhere' is installed.*--plugin"
    ):
        check_worker(Ticket(str(tmp_path), "one"), 0, ScoringOptions(scoring=("elsewhere",)))


def test_a_plugin_with_the_name_of_a_built_in_one_is_no_secret(tmp_path, monkeypatch, caplog):
    install(tmp_path, "hidden", {}, {"opic": "two:A", "free": "two:B"}, group="nutbeam.scorings")
    monkeypatch.syspath_prepend(str(tmp_path))
    warn_of_hidden(ScoringOptions(scoring=("link",)))
    assert not caplog.records
    warn_of_hidden(ScoringOptions())
    assert [record.getMessage() for record in caplog.records] == [
        "scoring 'opic' is the built-in one; the plug-in of that name is not used: rename it"
    ]
