"""The date of a document: which field counts, and that an index keeps it when shards are merged."""

import json

import polars as pl
import pytest

from nutbeam.io.indexing.shard_documents import restored_rows, searched_rows
from nutbeam.web.pages.document_dates import DocumentDate, document_date

DAY = 86_400_000
NOW = 20_000 * DAY


@pytest.mark.parametrize(
    ("fields", "date"),
    [
        ({"published": "2001-02-03", "lastModified": 5, "tstamp": NOW}, (981_158_400_000, "published")),
        ({"article:published_time": "2001-02-03T01:00:00+01:00"}, (981_158_400_000, "published")),
        ({"published": ["2001-02-03", "2002-02-03"]}, (981_158_400_000, "published")),
        ({"published": "yesterday", "lastModified": 5}, (5, "modified")),
        ({"published": "2099-01-01", "tstamp": NOW}, (NOW, "fetched")),  # it would be first for ever
        ({"published": "2099-01-01"}, (4_070_908_800_000, "published")),  # nobody knows better
        ({"lastModified": NOW + 2 * DAY, "tstamp": NOW}, (NOW, "fetched")),
        ({"lastModified": NOW + DAY, "tstamp": NOW}, (NOW + DAY, "modified")),  # a clock that is ahead
        ({"date": 7, "tstamp": NOW}, (7, "modified")),
        ({"date": NOW, "tstamp": NOW}, (NOW, "fetched")),
        ({"date": float("nan"), "tstamp": float("inf")}, None),
        ({"published": "9" * 5_000, "date": None, "tstamp": ""}, None),
        ({"published": {"a": 1}, "date": True, "tstamp": []}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_the_first_credible_field_counts(fields, date):
    assert document_date(fields) == (None if date is None else DocumentDate(*date))


def test_merged_shards_keep_the_date_of_each_document():
    documents = pl.DataFrame(
        {
            "id": ["http://a.com/1", "http://a.com/2", "http://a.com/3"],
            "published": ["2001-02-03", None, "soon"],
            "lastModified": [5, 6, None],
            "tstamp": [NOW, NOW, None],
        }
    )
    rows = searched_rows(documents)
    assert rows.get_column("date").to_list() == [981_158_400_000, 6, None]
    stored = rows.select("title", "content", "anchor", "document").to_dicts()
    assert restored_rows(stored).get_column("date").to_list() == rows.get_column("date").to_list()
    assert json.loads(stored[0]["document"])["published"] == "2001-02-03"
