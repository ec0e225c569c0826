"""Decides about the pages of a candidate: which of them an index run adds, keeps or deletes."""

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from ..components.index_schema import (
    ADD,
    DELETE,
    CandidateFacts,
    CandidateKind,
    CandidateRows,
    JournalRows,
    to_candidates,
)
from ..components.kinds import KINDS
from .index_decisions import (
    PURGED_REASON,
    UNFINISHED_REASON,
    IndexDecisionOptions,
    decide_by_rows,
    forget_unsent_pages,
    lost_pages,
)

# Deletes of one part of the work, and what they need: so a part has at most some 40 MB.
_DELETES_IN_PART = 20_000
_OF_DELETES = ("key", "document", "signature", "known", "writers", "action", "reason")
# Pages that are sent again with the same text: a run that lost may have sent an older one after it,
# or a writer has refused it.
AGAIN_REASON = "sent_again"
# Pages that an index does not have any more, because it was built again for one batch.
OTHER_BATCH_REASON = "deleted_other_batch"
UNKNOWN_REASON = "deleted_unknown"


class IndexRules(NamedTuple):
    """The rules of an index run.

    Attributes:
        options: Which pages are added or deleted.
        full: Whether the index is built from the beginning, so that it has nothing yet.
        cleans: Whether pages are only deleted.
        batch: The batch whose pages are indexed; empty: all pages.
        outside: Names of the writers that do not write into the table.
    """

    options: IndexDecisionOptions
    full: bool = False
    cleans: bool = False
    batch: str = ""
    outside: tuple[str, ...] = ()


def decide_candidates(facts: CandidateFacts, rules: IndexRules) -> Iterator[CandidateRows]:
    """Yields decisions about pages."""
    decide = {
        CandidateKind.CHANGED: _decide_changed,
        CandidateKind.REMOVED: _decide_removed,
        CandidateKind.INDEXED: _decide_indexed,
        CandidateKind.UNFINISHED: _decide_unfinished,
        CandidateKind.REFUSED: _decide_refused,
        CandidateKind.PURGED: _decide_purged,
    }[facts.kind]
    for decided in decide(facts, rules):
        if rules.full:  # an index that is built from the beginning has nothing to delete
            decided = forget_unsent_pages(decided)
            nobody = pl.lit([], pl.List(pl.String))
            writers = pl.when(pl.col("action") == DELETE).then(nobody).otherwise("writers")
            decided = decided.with_columns(writers=writers)
        yield decided


def _decide_changed(facts: CandidateFacts, rules: IndexRules) -> Iterator[CandidateRows]:
    rows, journal = facts.state_rows, facts.journal_rows
    if rules.batch:
        rows = rows.filter(_is_of_batch(rules.batch))
        other_pages = journal.join(rows, on="key", how="anti")
        journal = journal.join(rows, on="key", how="semi")
        if rules.full:
            yield to_candidates(lost_pages(other_pages, rows, OTHER_BATCH_REASON))
    yield _decide_rows(rows, journal, rules)


def _decide_removed(facts: CandidateFacts, _: IndexRules) -> Iterator[CandidateRows]:
    yield to_candidates(lost_pages(facts.journal_rows, facts.state_rows, UNKNOWN_REASON))


def _decide_indexed(facts: CandidateFacts, rules: IndexRules) -> Iterator[CandidateRows]:
    decided = _decide_rows(facts.state_rows, facts.journal_rows, rules._replace(full=False))
    yield decided.filter(pl.col("action") == DELETE)


def _decide_unfinished(facts: CandidateFacts, rules: IndexRules) -> Iterator[CandidateRows]:
    """Yields what corrects the pages of unfinished runs, which any writer may hold.

    Pages to be added go to the documents with the names of all writers, so that those delete them
    that do not get them; also pages that have not changed, because a run that did not commit may have
    sent another text, or another URL that represented the page at that time. The others are deleted.
    """
    sent, names = facts.sent_rows, pl.lit(list(rules.outside), pl.List(pl.String))
    decided = decide_by_rows(facts.state_rows, facts.journal_rows, rules.options)
    decided = decided.join(sent, on="key", how="left").with_columns(outside=names)
    decided = _add_again(decided, ~pl.col("committed"))
    adds = decided.filter(pl.col("action") == ADD)
    if not rules.cleans:
        writers = pl.concat_list("writers", "outside").list.unique(maintain_order=True)
        yield to_candidates(adds.with_columns(writers=writers))
    # The journal's writers delete these pages as its other pages.
    known_deletes = decided.filter(pl.col("known") & (pl.col("action") == DELETE))
    outside_deletes = known_deletes.select(
        "key", writers=pl.col("outside").list.set_difference("writers")
    )
    indexed_keys = pl.concat([facts.journal_rows.select("key"), adds.select("key")])
    unknown = sent.select("key").join(indexed_keys, on="key", how="anti")
    yield to_candidates(
        pl.concat([unknown.with_columns(writers=names), outside_deletes]).with_columns(
            known=pl.lit(False), action=pl.lit(DELETE), reason=pl.lit(UNFINISHED_REASON)
        )
    )


def _decide_refused(facts: CandidateFacts, rules: IndexRules) -> Iterator[CandidateRows]:
    """Yields the pages with dead letters whose text is the one that was refused, to be added.

    Other candidates have those that have changed since then, or must go.
    """
    rows = facts.state_rows.filter(_is_of_batch(rules.batch)) if rules.batch else facts.state_rows
    decided = _add_again(decide_by_rows(rows, facts.journal_rows, rules.options), pl.lit(True))
    yield to_candidates(decided.filter(pl.col("reason") == AGAIN_REASON))


def _decide_purged(facts: CandidateFacts, rules: IndexRules) -> Iterator[CandidateRows]:
    """Yields deletes for the writers outside the table; those inside it were purged, too.

    Pages that a purged URL represented are added again.
    """
    indexed_keys = pl.concat([facts.journal_rows.select("key"), facts.kept_keys])
    yield to_candidates(lost_pages(facts.earlier_rows, indexed_keys, PURGED_REASON))
    hidden = facts.journal_rows.filter(KINDS["indexed"].counting & pl.col("repr_url").is_null())
    rows = facts.state_rows.join(hidden, on="key", how="semi")
    again = _add_again(decide_by_rows(rows, hidden, rules.options), pl.lit(True))
    yield to_candidates(again.filter(pl.col("reason") == AGAIN_REASON))


def _decide_rows(rows: pl.DataFrame, journal: JournalRows, rules: IndexRules) -> CandidateRows:
    """Returns the decisions about rows of the state, and deletes of the pages that have none."""
    decided = decide_by_rows(rows, journal, rules.options, full=rules.full)
    gone = lost_pages(journal, rows, UNKNOWN_REASON)
    return to_candidates(pl.concat([decided, gone], how="diagonal"))


def _add_again(decided: pl.DataFrame, chosen: pl.Expr) -> pl.DataFrame:
    """Returns decisions in which the chosen pages are added, though they have not changed."""
    again = pl.col("known") & (pl.col("reason") == "unchanged") & chosen
    return decided.with_columns(
        action=pl.when(again).then(pl.lit(ADD)).otherwise("action"),
        reason=pl.when(again).then(pl.lit(AGAIN_REASON)).otherwise("reason"),
    )


def _is_of_batch(batch: str) -> pl.Expr:
    of_document = pl.col("document").str.starts_with(f"batches/{batch}/")
    return (of_document | (pl.col("batch_id") == batch)).fill_null(False)


def divide_by_part(
    item: int, decided: CandidateRows, earlier_deletes: int = 0
) -> Iterator[tuple[str, CandidateRows]]:
    """Divides decisions into parts of the work: a file of documents each, or some deletes.

    Args:
        item: Number of the candidate.
        decided: Decisions about some of its pages.
        earlier_deletes: Number of deletes among the decisions that were made before.

    Yields:
        (name of a part, its rows).
    """
    adds = decided.filter(pl.col("action") == ADD)
    for (document,), rows in adds.group_by("document", maintain_order=True):
        yield str(document), rows
    deletes = decided.filter(pl.col("action") == DELETE).with_row_index("part", earlier_deletes)
    deletes = deletes.with_columns(pl.col("part") // _DELETES_IN_PART)
    for (part,), rows in deletes.group_by("part", maintain_order=True):
        narrow = to_candidates(rows.select(_OF_DELETES))
        yield f"deletes/{item}-{part}", narrow
