"""URLs of a batch that become one: which of them counts (nutch.md 1.3, mergesegs)."""

import pyarrow as pa
import pytest

from nutbeam.policy.batch_tools.merged_batches import KeyRules, admit_rows
from nutbeam.policy.components.batch_rows import BatchRows
from nutbeam.policy.components.blocklist import Blocklist
from nutbeam.policy.components.schema import DOCUMENTS, FETCHLIST, PAGES, to_frame
from nutbeam.web.exchange.status import FETCH_GONE, FETCH_SUCCESS
from nutbeam.web.rules.url_options import UrlOptions
from nutbeam.web.rules.url_rules import UrlRules

PLAIN, SESSION = "com.a:http/", f"com.a:http/?PHPSESSID={'a' * 32}"


def frame(schema, *records):
    return to_frame(pa.Table.from_pylist([dict(record) for record in records], schema))


@pytest.mark.parametrize("order", [(PLAIN, SESSION), (SESSION, PLAIN)])
def test_a_url_that_two_become_has_page_and_text_of_the_one_that_was_fetched(order):
    fetched = {PLAIN: FETCH_GONE, SESSION: FETCH_SUCCESS}
    rows = BatchRows(
        frame(FETCHLIST, *({"key": key, "score": len(key)} for key in order)),
        frame(PAGES, *({"key": key, "fetch_status": fetched[key]} for key in order)),
        frame(DOCUMENTS, {"key": SESSION, "text": "of the session"}),
    )
    listed, pages, documents = admit_rows(
        rows, KeyRules(UrlRules(UrlOptions()), False, Blocklist())
    )[0]
    assert listed.select("key", "score").rows() == [(PLAIN, len(SESSION))]
    assert pages.select("key", "fetch_status").rows() == [(PLAIN, FETCH_SUCCESS)]
    assert documents.select("key", "text").rows() == [(PLAIN, "of the session")]
