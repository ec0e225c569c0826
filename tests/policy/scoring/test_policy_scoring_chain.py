"""Several scorings, those of users, and what every scoring may rely on."""

import random

import polars as pl
import pyarrow as pa
import pytest
from scored_web import NOW, ScoredWeb, key, random_pages

from nutbeam.policy.components.schema import CHANGES
from nutbeam.policy.scoring.scoring import BUILT_IN_SCORINGS, CarriedColumn, Scoring, ScoringOptions
from nutbeam.policy.scoring.scorings import OPIC, Scorings, chosen_scorings


class OnlyA(Scoring):
    """Leaves out links to pages whose names do not begin with a; scores are not numbers."""

    name = "only_a"

    def links(self, links):
        return links.filter(pl.col("key").str.starts_with(key("a")))

    def arrived(self, rows, now):
        return rows.with_columns(score=pl.lit(float("nan")), cash=pl.lit(float("inf")))

    def judged(self, rows, now):
        return self.arrived(rows, now)

    def sort_value(self, rows):
        return rows.with_columns(sort_value=pl.lit(float("inf")))


def user_scoring(*names):
    return chosen_scorings(ScoringOptions(scoring=names), {"only_a": OnlyA})


def test_a_scoring_of_a_user_may_leave_out_links():
    web = ScoredWeb("opic")
    web.scorings = user_scoring("opic", "only_a")
    web.inject("s")
    web.fetch({"s": ["a1", "b1", "a2"]})
    assert set(web.column("score")) == {"s", "a1", "a2"}
    assert web.counts["dropped/by_scoring"] == 1


def test_scores_that_are_no_number_do_not_enter_a_row():
    web = ScoredWeb("opic")
    web.scorings = user_scoring("only_a", "opic")
    web.inject("s")
    web.fetch({"s": ["a1"]})
    assert web.column("score") == {"s": 0.0, "a1": 0.0}
    assert web.rows["cash"].is_finite().all()
    values = user_scoring("opic", "only_a").sort_value(web.rows).get_column("sort_value")
    assert values.is_finite().all()


def test_the_order_counts():
    names = [step.name for step in user_scoring("depth", "only_a", "opic").steps]
    assert names == ["depth", "only_a", "opic"]


def test_the_default_carries_no_column_and_reads_none():
    assert OPIC.changes(CHANGES) == CHANGES
    assert (OPIC.row_columns, OPIC.document_columns, OPIC.sort_columns) == ((), (), ())
    assert not OPIC.needs_source
    changes = ScoredWeb("opic").changes({"a": ["b"]})
    assert changes.columns == CHANGES.names
    assert chosen_scorings(ScoringOptions()).steps[0].name == "opic"


def test_all_scorings_at_once(tmp_path):
    (tmp_path / "gold").write_text("word")
    (tmp_path / "boosts").write_text("2 /p1")
    names = [name for name in BUILT_IN_SCORINGS if name != "opic"]
    web = ScoredWeb(
        *names, metadata_to_links=("topic",), parsemeta_to_crawldb=("lang",),
        goldstandard_file=str(tmp_path / "gold"), url_boost_file=str(tmp_path / "boosts"),
    )  # fmt: skip
    web.inject(*({"key": key(f"p{n}"), "metadata": [("topic", "x")]} for n in range(4)))
    dice = random.Random(1)
    for _ in range(4):
        texts = {f"p{n}": "a word" for n in range(12)}
        languages = {f"p{n}": [("lang", "en")] for n in range(12)}
        web.fetch(random_pages(dice, 12), text=texts, metadata=languages)
    assert web.rows.select(pl.col("score", "cash").is_finite().all()).row(0) == (True, True)
    found = {tuple(sorted(metadata)) for metadata in web.column("metadata").values()}
    assert ("lang", "topic") in found
    assert found <= {("topic",), ("lang", "topic"), ("lang",)}
    assert web.rows.get_column("key").is_sorted()


def test_a_range_whose_chunks_lack_columns():
    scorings = chosen_scorings(ScoringOptions(scoring=("depth", "opic_cash")))
    web = ScoredWeb("depth", "opic_cash")
    web.inject("a")
    changes = web.changes({"a": ["b"]})
    carried = [column.name for column in (*scorings.passed, *scorings.own)]
    assert set(carried) <= set(changes.columns)
    web.update(changes.filter(pl.col("fetch_status").is_null()).drop(carried))
    assert web.column("max_depth") == {"a": None, "b": None}


def test_no_scorings():
    web = ScoredWeb("opic")
    web.scorings = Scorings(())
    web.inject("a")
    web.fetch({"a": ["b"]})
    assert web.column("score") == {"a": 1.0, "b": 0.0}
    assert web.now > NOW


@pytest.mark.parametrize("name", BUILT_IN_SCORINGS)
def test_each_name_has_a_scoring(name, tmp_path):
    (tmp_path / "file").write_text("2 word")
    options = ScoringOptions(
        scoring=(name,), metadata_to_links=("x",), goldstandard_file=str(tmp_path / "file"),
        url_boost_file=str(tmp_path / "file"),
    )  # fmt: skip
    assert [step.name for step in chosen_scorings(options).steps] == [name]


def test_no_scoring_at_all_is_refused():
    with pytest.raises(ValueError, match="--scoring must name at least one scoring, got ''"):
        ScoringOptions(scoring=())


def raises(self, rows, *_):
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (raises, "RuntimeError: boom"),
        (lambda self, rows, *_: None, "it must return a frame, got None"),
        (lambda self, rows, *_: rows.head(1), "it must return all 2 rows, in their order, got 1"),
        (lambda self, rows, *_: rows.drop("key"), "it must keep all columns, and has dropped key"),
        (lambda self, rows, *_: rows.reverse(), "it must return the rows in their order"),
        (
            lambda self, rows, *_: rows.with_columns(score=pl.col("score").replace(2.0, None)),
            "it must not make score null, as for 'b'",
        ),
        (
            lambda self, rows, *_: rows.with_columns(status=pl.lit(77)),
            "it must not make a status that does not exist, got 77 for 'a'",
        ),
        (
            lambda self, rows, *_: rows.with_columns(score=pl.lit("high")),
            "InvalidOperationError: .*",
        ),
    ],
)
def test_a_fault_of_a_scoring_names_it(step, message):
    rows = pl.DataFrame({"key": ["a", "b"], "score": [1.0, 2.0], "distance": [0, 1]})
    rows = rows.with_columns(last_inlink_day=0, status=2)
    calls = {
        "sort_value": lambda scorings: scorings.sort_value(rows),
        "share": lambda scorings: scorings.share(rows),
        "judged": lambda scorings: scorings.judged(rows, NOW),
    }
    for name, call in calls.items():
        made = type("Mine", (Scoring,), {"name": "mine", "__module__": "my_package", name: step})
        chosen = chosen_scorings(ScoringOptions(scoring=("orphan", "mine")), {"mine": made})
        with pytest.raises(
            ValueError, match=f"^scoring 'mine' of module my_package: {name}: {message}$"
        ):
            call(chosen)


def no_scoring():
    """A function, not a class."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (no_scoring, "TypeError: no_scoring.. takes 0 positional arguments but 1 was given$"),
        (lambda options: options, "must be a class derived from Scoring, got <function"),
    ],
)
def test_invalid_scorings_are_named(make, message):
    with pytest.raises(ValueError, match=f"^scoring 'mine' of module {__name__}:? ?{message}"):
        chosen_scorings(ScoringOptions(scoring=("mine",)), {"mine": make})


class Topic(Scoring):
    """Passes on the topic of the best-ranked page; here no page has a rank."""

    name = "topic"
    passed = (
        CarriedColumn(
            pa.field("passed_topic", pa.large_string()),
            pl.col("passed_topic").sort_by("passed_rank", maintain_order=True).first(),
        ),
        CarriedColumn(pa.field("passed_rank", pa.float64()), pl.col("passed_rank").min()),
    )

    def share(self, pages):
        rank = pl.lit(None, pl.Float64)
        return pages.with_columns(passed_topic="key", passed_rank=rank)

    def arrived(self, rows, now):
        topic = pl.coalesce("batch_id", "passed_topic")
        return rows.with_columns(batch_id=topic, score=pl.col("passed_rank").fill_null(7.0))


@pytest.mark.parametrize("files", [[{"a": ["c"], "b": ["c"]}], [{"a": ["c"]}, {"b": ["c"]}]])
def test_columns_of_a_plug_in_that_have_no_value_are_null_in_all_its_steps(files):
    web = ScoredWeb()
    web.scorings = Scorings((Topic(ScoringOptions()),))
    web.inject("a", "b")
    web.update(*(web.changes(pages, order) for order, pages in enumerate(files)))
    (row,) = web.rows.filter(key=key("c")).to_dicts()
    assert (row["batch_id"], row["score"]) == (key("a"), 7.0)
