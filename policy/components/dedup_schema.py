"""Declares the rows that dedup compares, and its changes."""

import pyarrow as pa

from .schema import STATE, TEXT, columns

# Rows that dedup compares.
SIGNATURES = pa.schema(
    [
        *columns(STATE, "key", "status", "score", "last_fetch_time"),
        ("url_length", pa.int32()),
        ("https", pa.bool_()),
        ("group", TEXT),  # signature, with host or domain if pages are only compared within these
        (
            "twins",
            TEXT,
        ),  # host or domain, and URL without its scheme; null: the scheme has no effect
        ("ranked_as", TEXT),  # the key that decides last: that of the https page, or its own
        ("follows", pa.bool_()),  # whether it comes right after the page ``ranked_as``
        ("returned", pa.bool_()),  # a duplicate that is in question; pages that stay come first
        ("scope", pa.uint64()),  # hash of the host or domain
        ("hash", pa.uint64()),  # SimHash; null: only pages with an equal signature are duplicates
    ]
)

# Pairs of near hashes; and pages with the key of the page that stays, which may be their own.
NEAR_PAIRS = pa.schema([("scope", pa.uint64()), ("hash", pa.uint64()), ("other", pa.uint64())])
SETTLED = pa.schema(
    [*columns(SIGNATURES, "key", "status", "group"), ("winner", TEXT), ("leads", pa.bool_())]
)

# Parts of the table that a batch calls into question: keys of pages near its pages, and hashes of
# duplicates whose page may not stay.
QUESTIONED = pa.schema([*columns(STATE, "key", "signature"), ("hash", pa.uint64())])

# The changes of dedup: duplicates with the page that stays, and pages that are no longer
# duplicates.
# ``near``: their contents are not equal; without ``duplicate_of``: the page has near duplicates.
VERDICTS = pa.schema([*columns(STATE, "key", "duplicate_of"), ("near", pa.bool_())])
