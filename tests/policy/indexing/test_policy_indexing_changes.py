"""What changes in an index, by rows of the state and of the journal."""

import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.components.index_schema import INDEXED, STATE_READ
from nutbeam.policy.components.schema import STATE, ParseStatus, Status
from nutbeam.policy.indexing.index_decisions import (
    HELD,
    REFUSED,
    IndexDecisionOptions,
    counts_of,
    decide_by_documents,
    decide_by_rows,
    journal_rows,
    lost_pages,
)
from nutbeam.policy.indexing.index_options import IndexWriterOptions, routes_of

KEY = "com.a:http/"
OLD, NEW = "batches/1/documents/old", "batches/2/documents/new"


def decided(status, document=NEW, journal=None, *, full=False, options=None, **columns):
    """Returns (action, reason) of one page; ``journal`` is its document in the journal."""
    row = {"key": KEY, "status": int(status), "document": document, "parse_status": 1,
           "signature": b"1", **columns}  # fmt: skip
    known = {"key": KEY, "document": journal, "writers": ["w"], "signature": b"1"}
    known = () if journal is None else (known,)
    rows = frame_of(STATE, row).select(STATE_READ)
    options = options or IndexDecisionOptions()
    return (
        decide_by_rows(rows, frame_of(INDEXED, *known), options, full=full)
        .select("action", "reason")
        .row(0)
    )


@pytest.mark.parametrize("parsed", [ParseStatus.FAILED, ParseStatus.NOTPARSED])
@pytest.mark.parametrize("full", [False, True])
def test_a_text_that_could_not_be_parsed_is_in_no_index(parsed, full):
    same = {"parse_status": int(parsed), "full": full}
    for document in (NEW, OLD):
        found = decided(Status.DB_FETCHED, document, OLD, **same)
        assert found == ("delete", "deleted_not_parsed")
    assert decided(Status.DB_FETCHED, NEW, None, **same) == ("nothing", "skipped_not_parsed")


def test_while_a_body_waits_to_be_parsed_the_older_text_counts():
    waits = {"parse_status": None}
    assert decided(Status.DB_FETCHED, OLD, OLD, **waits) == ("nothing", "unchanged")
    assert decided(Status.DB_FETCHED, OLD, OLD, full=True, **waits) == ("add", "indexed")


def test_a_document_that_was_not_parsed_is_not_added():
    rows = pl.DataFrame({"known": [True, False], "writers": [["w"], []], "action": "add",
                         "reason": "indexed"})  # fmt: skip
    said = pl.DataFrame({"directives": [[], []], "parse_status": 2, "dropped_by": None},
                        schema_overrides={"directives": pl.List(pl.String)})  # fmt: skip
    found = decide_by_documents(rows, said, IndexDecisionOptions())
    assert found.select("action", "reason").rows() == [
        ("delete", "deleted_not_parsed"), ("nothing", "skipped_not_parsed"),
    ]  # fmt: skip


@pytest.mark.parametrize("status", [Status.DB_FETCHED, Status.DB_NOTMODIFIED])
@pytest.mark.parametrize("skip", [False, True])
def test_a_page_is_sent_again_if_another_url_stands_for_it(status, skip):
    options = IndexDecisionOptions(skip_notmodified=skip)
    shown = "http://a.com/home"
    found = decided(status, OLD, OLD, options=options, repr_url=shown)
    assert found == ("add", "indexed")


@pytest.mark.parametrize(
    ("status", "document", "journal", "wanted"),
    [
        (Status.DB_FETCHED, NEW, None, ("add", "indexed")),
        (Status.DB_FETCHED, NEW, OLD, ("add", "indexed")),
        (Status.DB_FETCHED, OLD, OLD, ("nothing", "unchanged")),
        (Status.DB_NOTMODIFIED, OLD, OLD, ("nothing", "unchanged")),
        (Status.DB_NOTMODIFIED, OLD, None, ("add", "indexed")),
        # A failure that may pass: the text is that of the last fetch.
        (Status.DB_UNFETCHED, OLD, OLD, ("nothing", "unchanged")),
        (Status.DB_UNFETCHED, None, None, ("nothing", "unknown")),
        (Status.DB_UNFETCHED, None, OLD, ("delete", "deleted_no_content")),
        (Status.DB_GONE, OLD, OLD, ("delete", "deleted_gone")),
        (Status.DB_GONE, None, OLD, ("delete", "deleted_gone")),
        (Status.DB_GONE, OLD, None, ("nothing", "unknown")),
        (Status.DB_ORPHAN, OLD, OLD, ("delete", "deleted_gone")),
        (Status.DB_REDIR_PERM, OLD, OLD, ("delete", "deleted_redirects")),
        (Status.DB_REDIR_TEMP, OLD, OLD, ("delete", "deleted_redirects")),
        (Status.DB_DUPLICATE, OLD, OLD, ("delete", "deleted_duplicates")),
        (Status.DB_PARSE_FAILED, OLD, OLD, ("delete", "deleted_failed_parse")),
    ],
)
def test_decisions(status, document, journal, wanted):
    assert decided(status, document, journal) == wanted


def test_a_full_index_adds_unchanged_pages():
    assert decided(Status.DB_FETCHED, OLD, OLD, full=True) == ("add", "indexed")


def test_usage_and_options():
    assert decided(Status.DB_FETCHED, NEW, OLD, usage="search=n") == ("delete", "deleted_usage")
    kept = IndexDecisionOptions(delete_gone=False)
    assert decided(Status.DB_GONE, OLD, OLD, options=kept) == ("nothing", "skipped_not_parsed")
    # Its text has left the table; what is gone stays all the same.
    assert decided(Status.DB_GONE, None, OLD, options=kept)[0] == "nothing"
    assert decided(Status.DB_DUPLICATE, None, OLD, options=kept)[0] == "nothing"
    assert decided(Status.DB_UNFETCHED, None, OLD, options=kept)[0] == "delete"


def test_only_a_text_that_the_index_has_is_skipped_because_it_has_not_changed():
    skip = IndexDecisionOptions(skip_notmodified=True)
    same = Status.DB_NOTMODIFIED
    assert decided(same, NEW, OLD, options=skip) == ("nothing", "skipped_not_modified")
    assert decided(same, NEW, OLD, options=skip, full=True) == ("add", "indexed")
    assert decided(same, NEW, None, options=skip) == ("add", "indexed")
    # It had changed before, and no run has sent that.
    assert decided(same, NEW, OLD, options=skip, signature=b"2") == ("add", "indexed")


def test_pages_that_left_the_table():
    journal = frame_of(INDEXED, {"key": "com.a:http/1", "writers": ["w"]}, {"key": "com.a:http/2"})
    found = lost_pages(journal, pl.DataFrame({"key": ["com.a:http/2"]}), "deleted_unknown")
    assert found.select("key", "writers", "action").rows() == [("com.a:http/1", ["w"], "delete")]
    assert counts_of(found) == {"deleted_unknown": 1}


def test_filters_delete_only_documents_that_the_index_may_have():
    rows = pl.DataFrame({"known": [True, False, False], "writers": [["w"], [], ["w"]],
                         "action": "add", "reason": "indexed"})  # fmt: skip
    said = pl.DataFrame({"directives": [None] * 3, "dropped_by": ["expr"] * 3, "parse_status": 1},
                        schema_overrides={"directives": pl.List(pl.String)})  # fmt: skip
    changed = decide_by_documents(rows, said, IndexDecisionOptions())
    assert changed.get_column("action").to_list() == ["delete", "nothing", "delete"]
    assert changed.get_column("reason")[2] == "deleted_unfinished"
    kept = decide_by_documents(rows, said, IndexDecisionOptions(delete_skipped=False))
    assert kept.get_column("action").to_list() == ["nothing", "nothing", "delete"]


def test_journal_rows():
    rows = frame_of(STATE, {"key": "a", "document": NEW}, {"key": "b", "document": NEW})
    sent = rows.with_columns(action=pl.lit("add"))
    holders = {"x": pl.Series([True, False]), "y": pl.Series([True, False])}
    found = journal_rows(sent, holders, 7)
    assert found.select("key", "state", "writers", "time", "deleted").rows() == [
        ("a", HELD, ["x", "y"], 7, None),
        ("b", REFUSED, [], 7, None),
    ]


def test_writers_of_options():
    with pytest.raises(ValueError, match=r"--writer_parameters must have name=value, got 'path'"):
        routes_of(IndexWriterOptions(writer_parameters=("path",)))
    with pytest.raises(ValueError, match=r"--exchanges needs --index_writers, got 'x\.xml'"):
        routes_of(IndexWriterOptions(exchanges="x.xml"))
    with pytest.raises(ValueError, match="is for --writer"):
        routes_of(IndexWriterOptions(index_writers="a.toml", writer_parameters=("a=b",)))
