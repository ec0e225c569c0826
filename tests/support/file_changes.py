"""update's decisions for tests: the changes of one file as one frame, and rows after an update."""

import dataclasses
from typing import NamedTuple

import polars as pl

from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.page_facts import (
    PageFacts,
    TableFacts,
    in_file,
    with_unique_rows,
)
from nutbeam.policy.components.schema import CHANGES, FETCHLIST, STATE, conform, empty, to_frame
from nutbeam.policy.schedules.visits import default_schedule
from nutbeam.policy.scoring.scorings import OPIC
from nutbeam.policy.updating import status
from nutbeam.policy.updating.page_changes import derive_changes
from nutbeam.policy.updating.range_facts import RangeFacts
from nutbeam.policy.updating.update_rules import UpdateRules, UpdateTableOptions


class Earlier(NamedTuple):
    """Rows of the pages from before the fetch; see ``PageFacts``."""

    fetch_list_rows: pl.DataFrame = empty(FETCHLIST)
    document_rows: pl.DataFrame = empty(DOCUMENTS)
    unrepresented: tuple[str, ...] = ()
    followed_rows: pl.DataFrame = empty(STATE)
    state_rows: pl.DataFrame = empty(STATE)


NOTHING = Earlier()


def rules_of(options, scorings=OPIC, schedule=default_schedule):
    """Returns the rules of an update with some of its options; others have their defaults."""
    names = {field.name for field in dataclasses.fields(UpdateTableOptions)}
    values = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return UpdateRules(UpdateTableOptions(**values), scorings, schedule)


def changes_of(pages, documents, origin, seeds, options, scorings=OPIC, before=NOTHING):
    """Returns the CHANGES rows of pages and their documents, and counts.

    The pages file has the same position as the links, and is named after it.
    """
    facts = PageFacts(
        origin,
        in_file(pages, f"pages/{origin.order}", origin.order),
        documents,
        before.fetch_list_rows,
        before.followed_rows,
        before.document_rows,
        before.state_rows,
        TableFacts(seeds),
    )
    rules = rules_of(options, scorings)
    changes, counts = derive_changes(with_unique_rows(facts), rules, before.unrepresented)
    schema = scorings.changes(CHANGES)
    return pl.concat([to_frame(conform(part, schema)) for part in changes]), counts


def update_state(rows, changes, now, options, scorings=OPIC, schedule=default_schedule, **facts):
    """Returns rows of the state after changes; see the product's function."""
    rules = rules_of(options, scorings, schedule)
    return status.update_state(rows, changes, RangeFacts(now, **facts), rules)
