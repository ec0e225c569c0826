"""Which tablets are surveyed together."""

import pytest

from nutbeam.pipelines.generating import survey


@pytest.mark.parametrize(("tablets", "groups"), [(0, 0), (3, 3), (1_024, 1_024), (10_000, 1_024)])
def test_tablets_are_in_few_groups_of_like_size(monkeypatch, tablets, groups):
    monkeypatch.setattr(survey, "tablets_of_state", lambda operation: iter(range(tablets)))
    items = [group.tablets for group in survey.tablet_groups("operation")]
    assert [number for item in items for number in item] == list(range(tablets))
    assert len(items) == groups
    assert {len(item) for item in items} <= {
        tablets // max(groups, 1),
        tablets // max(groups, 1) + 1,
    }
