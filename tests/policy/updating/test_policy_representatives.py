"""Which pages lose the URL that represents them; in chains of redirects, which are read hop by hop."""

import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.page_facts import (
    COLUMNS_OF_PAGES,
    DOCUMENT_COLUMNS,
    FETCH_LIST_COLUMNS,
    BatchOrigin,
    PageFacts,
)
from nutbeam.policy.components.schema import FETCHLIST, PAGES
from nutbeam.policy.updating.redirects import begin_chains, follow_chains, keys_to_read
from nutbeam.policy.updating.update_rules import UpdateRules, UpdateTableOptions
from nutbeam.web.exchange.status import FAILED, MOVED, NOTFOUND, NOTMODIFIED, SUCCESS
from nutbeam.web.urls.row_keys import to_key

HOST = "http://a.com"
PAGE = f"{HOST}/page"
ANSWERS = {"key": pl.String, "protocol_status": pl.UInt8, "protocol_message": pl.String,
           "document": pl.String, "refresh": pl.String, "has_text": pl.Boolean}  # fmt: skip


def moved(path):
    return {"protocol_status": MOVED, "protocol_message": f"{HOST}{path}"}


def with_page(**columns):
    return {"protocol_status": SUCCESS, "document": "d", "has_text": True, **columns}


def follow(table, pages=(), documents=(), **options):
    """Returns whether no URL represents the page any more, and the paths that were read at each hop.

    The page is represented by ``/``. ``table`` has the answers of URLs by path.
    """
    facts = PageFacts(
        BatchOrigin(0, "b"),
        frame_of(PAGES, *({**page, "key": to_key(f"{HOST}{page['key']}")} for page in pages))
        .select(COLUMNS_OF_PAGES),
        frame_of(DOCUMENTS, *documents).select(DOCUMENT_COLUMNS),
        frame_of(FETCHLIST, {"key": to_key(PAGE), "repr_url": f"{HOST}/"})
        .select(FETCH_LIST_COLUMNS),
    )  # fmt: skip
    rules = UpdateRules(UpdateTableOptions(scope="any", **options))
    rows = {to_key(f"{HOST}{path}"): row for path, row in table.items()}
    chains, read = begin_chains(facts), []
    while chains.next_keys:
        keys = keys_to_read(chains, facts)
        read.append([key.removeprefix("com.a:http") for key in keys])
        answers = [dict.fromkeys(ANSWERS) | rows[key] | {"key": key} for key in keys if key in rows]
        answer_rows = pl.DataFrame(answers, schema=ANSWERS)
        answer_rows = answer_rows.with_columns(pl.col("has_text").fill_null(False))
        chains = follow_chains(chains, answer_rows, facts, rules)
    return chains.unrepresented == {to_key(PAGE)}, read


@pytest.mark.parametrize(
    ("table", "lost", "hops"),
    [
        ({"/": moved("/page")}, False, 1),
        ({"/": moved("/x"), "/x": moved("/page")}, False, 2),
        ({"/": moved("/x"), "/x": with_page()}, True, 2),  # a page of its own
        ({"/": moved("/x"), "/x": with_page(refresh=PAGE)}, False, 2),
        ({"/": {"protocol_status": NOTFOUND}}, True, 1),
        ({"/": {"protocol_status": FAILED}}, False, 1),  # it may pass
        ({"/": {}}, False, 1),  # it was never tried
        ({}, True, 1),  # it was removed from the table
        ({"/": moved("/new")}, False, 2),  # the table gets its target with this update
        ({"/": with_page(has_text=False)}, False, 1),  # its document was deleted
        ({"/": {"protocol_status": SUCCESS}}, True, 1),  # a page without a document
        ({"/": moved("/x"), "/x": moved("/y"), "/y": moved("/x")}, False, 20),  # a circle
    ],
)
def test_a_page_loses_its_representative_url_if_that_leads_elsewhere(table, lost, hops):
    unrepresented, read = follow(table)
    assert (unrepresented, len(read)) == (lost, hops)


def test_answers_of_the_file_count_and_are_not_read():
    pages = [{"key": "/", "protocol_status": MOVED, "redirect": f"{HOST}/x"}]
    assert follow({"/": moved("/page"), "/x": with_page()}, pages) == (True, [[], ["/x"]])


def test_a_304_of_the_file_stands_for_the_document_in_the_table():
    pages = [{"key": "/", "protocol_status": NOTMODIFIED}]
    table = {"/": {"protocol_status": NOTFOUND, "document": "d", "has_text": True, "refresh": PAGE}}
    assert follow(table, pages) == (False, [["/"]])


def test_a_redirect_that_the_rules_refuse_leads_nowhere():
    assert follow({"/": moved("/page")}, exclude=("page$",)) == (True, [["/"]])
