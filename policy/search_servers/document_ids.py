"""Ids of documents on search servers: the URL, or its digest where the URL is long."""

import hashlib

import polars as pl

# Elasticsearch and OpenSearch refuse a whole request for one longer id.
MAX_ID_BYTES = 512


def document_id(url: str) -> str:
    """Returns the id of the document of a URL.

    >>> document_id("http://example.com/")
    'http://example.com/'
    >>> document_id("http://example.com/" + "a" * 512)[:20]
    'sha256:9f61883a4bb57'
    """
    data = url.encode("utf-8", "surrogatepass")
    if 0 < len(data) <= MAX_ID_BYTES:
        return url
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def document_ids(urls: pl.Series) -> list[str]:
    """Returns the ids of a column of URLs; writers, deletes and dedup all use it."""
    if not (urls.str.len_bytes() > MAX_ID_BYTES).any() and not (urls == "").any():
        return urls.to_list()
    return [document_id(url) for url in urls]
