"""URLs of a batch that become one: which of them counts (mergesegs)."""

import itertools

import pyarrow as pa
import pytest

from nutbeam.policy.batch_tools.merged_batches import KeyRules, admit_rows, find_superseded
from nutbeam.policy.components.batch_rows import BatchRows
from nutbeam.policy.components.blocklist import Blocklist
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import FETCHLIST, PAGES, to_frame
from nutbeam.web.exchange.status import FETCH_GONE, FETCH_SUCCESS
from nutbeam.web.rules.url_options import UrlOptions
from nutbeam.web.rules.url_rules import UrlRules

PLAIN, SESSION = "com.a:http/", f"com.a:http/?PHPSESSID={'a' * 32}"
OTHER = f"com.a:http/?PHPSESSID={'b' * 32}"
RULES = KeyRules(UrlRules(UrlOptions()), False, Blocklist())
STATUS = {PLAIN: FETCH_GONE, SESSION: FETCH_SUCCESS}


def frame(schema, *records):
    return to_frame(pa.Table.from_pylist([dict(record) for record in records], schema))


def piece(*keys):
    """Rows of one file of pages; a URL without a fetch status was only listed."""
    return BatchRows(
        frame(FETCHLIST, *({"key": key, "score": len(key)} for key in keys)),
        frame(PAGES, *({"key": k, "fetch_status": STATUS[k]} for k in keys if k in STATUS)),
        frame(DOCUMENTS, *({"key": k, "text": "of the session"} for k in keys if k == SESSION)),
    )


@pytest.mark.parametrize("order", list(itertools.permutations((PLAIN, SESSION, OTHER))))
@pytest.mark.parametrize("files", [1, 3])
def test_a_url_that_several_become_has_page_and_text_of_the_one_that_was_fetched(order, files):
    """Whatever the order, and whether they are in one file of pages or in several."""
    pieces = [piece(*order)] if files == 1 else [piece(key) for key in order]
    superseded = find_superseded(pieces, RULES)
    admitted = [admit_rows(one, RULES, superseded)[0] for one in pieces]
    listed, pages, documents = (
        [row for rows in admitted for row in rows[at].rows(named=True)] for at in range(3)
    )
    assert [(row["key"], row["score"]) for row in listed] == [(PLAIN, len(SESSION))]
    assert [(row["key"], row["fetch_status"]) for row in pages] == [(PLAIN, FETCH_SUCCESS)]
    assert [(row["key"], row["text"]) for row in documents] == [(PLAIN, "of the session")]
