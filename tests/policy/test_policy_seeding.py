import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.components.schema import SEEDS, STATE, Status
from nutbeam.policy.scoring.scoring import Scoring, ScoringOptions
from nutbeam.policy.scoring.scorings import Scorings
from nutbeam.policy.seeding import SeedOptions, SeedRules, inject_seeds

NOW = 1_700_000_000_000
KNOWN = {
    "key": "com.example:http/b",
    "status": int(Status.DB_FETCHED),
    "fetch_time": NOW + 5,
    "fetch_interval": 100,
    "retries": 1,
    "score": 3.0,
    "signature": b"s",
    "distance": 4,
    "metadata": [("kept", "old"), ("changed", "old")],
}


def seed(key="com.example:http/b", order=0, **columns):
    return {"key": key, "order": order, **columns}


def inject(rows, seeds, **options):
    kept, counts = inject_seeds(
        frame_of(STATE, *rows), frame_of(SEEDS, *seeds), SeedRules(NOW, SeedOptions(**options))
    )
    assert kept.schema == frame_of(STATE).schema
    return kept.to_dicts(), counts


def test_a_new_url_is_due_at_once_with_the_defaults():
    rows, counts = inject([], [seed()], injected_score=0.5, fetch_interval=60)
    assert {name: value for name, value in rows[0].items() if value is not None} == {
        "key": "com.example:http/b",
        "status": Status.DB_UNFETCHED,
        "fetch_time": NOW,
        "fetch_interval": 60,
        "retries": 0,
        "score": 0.5,
        "distance": 0,
    }
    assert counts == {"injected": 1, "added": 1}


def test_a_new_url_takes_the_values_of_its_line():
    line = seed(score=2.5, fetch_interval=7, fixed_interval=7, metadata=[("topic", "x")])
    rows, _ = inject([], [line])
    assert (rows[0]["score"], rows[0]["fetch_interval"], rows[0]["fixed_interval"]) == (2.5, 7, 7)
    assert rows[0]["metadata"] == {"topic": "x"}


SEED = KNOWN | {"distance": 0}


def test_a_known_url_becomes_a_seed_and_the_rest_of_its_row_stays():
    line = seed(score=9.0, fetch_interval=7, metadata=[("changed", "new")])
    other = KNOWN | {"key": "com.example:http/c"}
    rows, counts = inject([KNOWN, other], [line])
    assert rows == frame_of(STATE, SEED, other).to_dicts()
    assert counts == {"injected": 1, "known": 1}


def test_the_last_of_several_lines_for_a_url_counts():
    lines = [seed(order=2, score=2.0), seed(order=3, score=3.0), seed(order=1, score=1.0)]
    rows, counts = inject([], lines)
    assert [row["score"] for row in rows] == [3.0]
    assert counts == {"injected": 1, "added": 1, "duplicate_lines": 2}


def test_rows_come_back_in_key_order():
    rows, counts = inject([KNOWN], [seed(f"com.example:http/{path}") for path in "dbca"])
    assert [row["key"][-1] for row in rows] == ["a", "b", "c", "d"]
    assert counts == {"injected": 4, "known": 1, "added": 3}


def test_overwriting_forgets_the_known_row():
    rows, counts = inject([KNOWN], [seed(score=2.0)], overwrite_known=True)
    expected, _ = inject([], [seed(score=2.0)])
    assert rows == expected
    assert counts == {"injected": 1, "known": 1}


def test_updating_puts_the_line_over_the_known_row():
    line = seed(score=2.0, fetch_interval=7, fixed_interval=7, metadata=[("changed", "new")])
    rows, _ = inject([KNOWN], [line], update_known=True)
    expected = frame_of(
        STATE,
        SEED
        | {
            "score": 2.0,
            "fetch_interval": 7,
            "fixed_interval": 7,
            "metadata": [("kept", "old"), ("changed", "new")],
        },
    )
    assert rows == expected.to_dicts()


class Marking(Scoring):
    """Marks the rows that it is shown."""

    def renewed(self, rows):
        return rows.with_columns(score=pl.lit(99.0))


def test_scorings_see_only_the_seeds_of_the_rows_that_are_written_again():
    """A piece of the table has other rows, too."""
    others = [KNOWN | {"key": f"com.example:http/{name}"} for name in "acd"]
    rows, _ = inject_seeds(
        frame_of(STATE, others[0], KNOWN, *others[1:]), frame_of(SEEDS, seed()), 
        SeedRules(NOW, SeedOptions(update_known=True), Scorings((Marking(ScoringOptions()),))),
    )  # fmt: skip
    assert rows["score"].to_list() == [3.0, 99.0, 3.0, 3.0]
    assert rows["distance"].to_list() == [4, 0, 4, 4]


def test_updating_leaves_columns_alone_that_the_line_does_not_set():
    rows, _ = inject([KNOWN], [seed()], update_known=True, injected_score=0.3, fetch_interval=60)
    assert rows == frame_of(STATE, SEED).to_dicts()


def test_values_of_a_line_count_even_if_they_are_the_defaults():
    line, defaults = (
        {"score": 0.3, "fetch_interval": 60},
        {"injected_score": 0.3, "fetch_interval": 60},
    )
    (row,), _ = inject([KNOWN], [seed(**line)], update_known=True, **defaults)
    assert (row["score"], row["fetch_interval"]) == (pytest.approx(0.3), 60)


def test_updating_gives_metadata_to_a_row_that_has_none():
    bare = KNOWN | {"metadata": None}
    other = KNOWN | {"key": "com.example:http/z"}
    rows, _ = inject([bare, other], [seed(metadata=[("a", "b")])], update_known=True)
    assert rows[0]["metadata"] == {"a": "b"}
    assert rows[1] == frame_of(STATE, other).to_dicts()[0]


def test_updating_adds_new_urls_too():
    rows, counts = inject([KNOWN], [seed("com.example:http/new")], update_known=True)
    assert len(rows) == 2
    assert counts == {"injected": 1, "added": 1}


def test_no_seeds_and_no_rows():
    rows, counts = inject_seeds(frame_of(STATE), frame_of(SEEDS), SeedRules(NOW, SeedOptions()))
    assert (len(rows), counts) == (0, {})


def test_overwriting_and_updating_contradict_each_other():
    with pytest.raises(ValueError, match=r"contradict each other"):
        SeedOptions(overwrite_known=True, update_known=True)


def test_seeds_give_the_same_rows_in_any_number_of_files():
    lines = [seed(f"com.example:http/{n % 7}", order=n, score=float(n)) for n in range(30)]
    whole, _ = inject_seeds(frame_of(STATE), frame_of(SEEDS, *lines), SeedRules(NOW, SeedOptions()))
    parts = pl.concat([frame_of(SEEDS, *lines[20:]), frame_of(SEEDS, *lines[:20])])
    again, _ = inject_seeds(frame_of(STATE), parts, SeedRules(NOW, SeedOptions()))
    assert whole.equals(again)


def test_urls_that_are_repeated_in_no_order_are_rows_in_key_order():
    keys = ["com.b:http/", "com.a:http/", "com.b:http/", "com.a:http/x"]
    rows, counts = inject([], [seed(key, order) for order, key in enumerate(keys)])
    assert [row["key"] for row in rows] == ["com.a:http/", "com.a:http/x", "com.b:http/"]
    assert counts == {"injected": 3, "added": 3, "duplicate_lines": 1}
