"""The fields of nutbeam's documents on search servers, with their types."""

from collections.abc import Mapping
from typing import Any

WORDS, KEYWORD, DATE, LONG, FLOAT = "text", "keyword", "date", "long", "float"

# Type of each field, and whether it may have several values. Other fields are texts.
STANDARD_FIELDS: Mapping[str, tuple[str, bool]] = {
    "id": (KEYWORD, False),
    "url": (KEYWORD, False),
    "host": (KEYWORD, False),
    "domain": (KEYWORD, False),
    "title": (WORDS, False),
    "content": (WORDS, False),
    "anchor": (WORDS, True),
    "cache": (KEYWORD, False),
    "segment": (KEYWORD, False),
    "digest": (KEYWORD, False),
    "boost": (FLOAT, False),
    "tstamp": (DATE, False),
    "date": (DATE, False),
    "lastModified": (DATE, False),
    "contentLength": (LONG, False),
    "type": (KEYWORD, True),
    "lang": (KEYWORD, False),
    "outlinks": (KEYWORD, True),
    "inlinks": (KEYWORD, True),
    "outlink_count": (LONG, False),
    "inlink_count": (LONG, False),
    "subcollection": (KEYWORD, True),
}

# The field of documents in Solr with the number of the operation that wrote them.
VERSION_FIELD = "index_version"
# Fields that only documents of nutbeam have, if a core has documents of other programs, too.
MARKING_FIELDS = ("segment", "digest")
# A full rebuild in Solr needs one of these fields, to find the documents of earlier operations.
REBUILD_FIELDS = (VERSION_FIELD, *MARKING_FIELDS)
# A longer term would be refused by Lucene, and the document with it: 32,766 bytes.
_LONGEST_KEYWORD = 8_191


def index_body(shards: int | None = None, replicas: int | None = None) -> dict[str, Any]:
    """Returns the settings and mappings of a new index in OpenSearch and Elasticsearch.

    Args:
        shards: Number of shards; None leaves it to the server.
        replicas: Copies of each shard; None leaves it to the server.

    >>> index_body(replicas=0)["settings"]
    {'number_of_replicas': 0}
    """
    settings = {"number_of_shards": shards, "number_of_replicas": replicas}
    return {
        "settings": {name: value for name, value in settings.items() if value is not None},
        "mappings": {
            "_meta": {"made_by": "nutbeam"},
            "date_detection": False,
            "properties": {name: _property(kind) for name, (kind, _) in STANDARD_FIELDS.items()},
        },
    }


def _property(kind: str) -> dict[str, Any]:
    if kind == KEYWORD:
        return {"type": kind, "ignore_above": _LONGEST_KEYWORD}
    return {"type": kind}
