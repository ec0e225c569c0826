"""The fields of nutbeam's documents on search servers: their types, and what a Solr schema lacks."""

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

from ..base.dataclass import dataclass

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
# Solr's types of fields by what they are for, best first: of its own configset, then by class.
_SOLR_TYPES: Mapping[str, tuple[tuple[str, ...], str]] = {
    WORDS: (("text_general", "text"), "TextField"),
    KEYWORD: (("string",), "StrField"),
    DATE: (("pdate", "date"), "DatePointField"),
    LONG: (("plong", "long"), "LongPointField"),
    FLOAT: (("pfloat", "float"), "FloatPointField"),
}
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


@dataclass(frozen=True)
class SolrSchema:
    """A schema.

    Attributes:
        key: Name of its unique key.
        fields: Type of each field.
        patterns: Names of dynamic fields, such as ``*_s``, with their types.
        classes: Class of each type.
    """

    key: str
    fields: Mapping[str, str]
    patterns: Mapping[str, str]
    classes: Mapping[str, str]

    def type_of(self, field: str) -> str | None:
        """Returns the type of a field; None: the schema does not have the field."""
        if field in self.fields:
            return self.fields[field]
        matching = (p for p in self.patterns if fnmatch.fnmatchcase(field, p))
        best = max(matching, key=len, default=None)
        return None if best is None else self.patterns[best]

    def dates(self, fields: Iterable[str]) -> frozenset[str]:
        """Returns which fields are times."""
        return frozenset(
            name
            for name in fields
            if self.classes.get(self.type_of(name) or "", "").rpartition(".")[2].startswith("Date")
        )

    def lacking(self) -> list[dict[str, Any]]:
        """Returns the fields to add, as the schema API takes them."""
        wanted = {**STANDARD_FIELDS, VERSION_FIELD: (LONG, False)}
        return [
            {
                "name": name,
                "type": self._type_for(kind),
                "stored": True,
                "indexed": True,
                "multiValued": several,
            }
            for name, (kind, several) in wanted.items()
            if name not in self.fields
        ]

    def _type_for(self, kind: str) -> str:
        names, wanted = _SOLR_TYPES[kind]
        for name in names:
            if name in self.classes:
                return name
        for name, class_name in self.classes.items():
            if class_name.rpartition(".")[2] == wanted:
                return name
        return names[0]


def read_schema(record: Mapping[str, Any]) -> SolrSchema:
    """Returns the schema in an answer of ``/schema``.

    Raises:
        ValueError: It is none.

    >>> read_schema({"schema": {"uniqueKey": "id", "fields": [{"name": "id", "type": "string"}],
    ...     "dynamicFields": [{"name": "*_dt", "type": "pdate"}],
    ...     "fieldTypes": [{"name": "pdate", "class": "solr.DatePointField"}]}}).dates(["a_dt", "b"])
    frozenset({'a_dt'})
    """
    schema = record.get("schema") or {}
    if "fields" not in schema:
        raise ValueError("the answer has no schema")
    return SolrSchema(
        str(schema.get("uniqueKey", "")),
        _values_by_name(schema.get("fields"), "type"),
        _values_by_name(schema.get("dynamicFields"), "type"),
        _values_by_name(schema.get("fieldTypes"), "class"),
    )


def tolerant_chain(record: Mapping[str, Any]) -> str:
    """Returns the name of the chain of update processors that tolerates errors; empty: none does.

    >>> chains = [{"name": "a", "": [{"class": "solr.TolerantUpdateProcessorFactory"}]}]
    >>> tolerant_chain({"config": {"updateRequestProcessorChain": chains}})
    'a'
    """
    config = record.get("config")
    chains = config.get("updateRequestProcessorChain") if isinstance(config, Mapping) else None
    for chain in chains if isinstance(chains, list) else ():
        steps = chain.get("") if isinstance(chain, Mapping) else None
        for step in steps if isinstance(steps, list) else ():
            if isinstance(step, Mapping) and "TolerantUpdate" in str(step.get("class")):
                return str(chain.get("name") or "")
    return ""


def _values_by_name(records: Any, value: str) -> dict[str, str]:
    entries = (record for record in records or () if isinstance(record, Mapping))
    return {str(record.get("name", "")): str(record.get(value, "")) for record in entries}
