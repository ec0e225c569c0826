"""The changes of one file as one frame."""

import polars as pl

from nutbeam.policy import links
from nutbeam.policy.components.schema import CHANGES, conform, to_frame
from nutbeam.policy.scoring.scorings import OPIC


def changes_of(pages, documents, origin, seeds, options, scorings=OPIC, *args, **known):
    """Does the same as the product's function, but returns CHANGES rows.

    The pages file has the same position as the links, and is named after it.
    """
    pages = links.in_file(pages, f"pages/{origin.order}", origin.order)
    found, counts = links.changes_of(
        pages, documents, origin, seeds, options, scorings, *args, **known
    )
    schema = scorings.changes(CHANGES)
    return pl.concat([to_frame(conform(part, schema)) for part in found]), counts
