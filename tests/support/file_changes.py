"""The changes of one file as one frame."""

import polars as pl

from nutbeam.policy import links
from nutbeam.policy.components.schema import CHANGES, conform, to_frame
from nutbeam.policy.scoring.scorings import OPIC


def changes_of(pages, documents, origin, seeds, options, scorings=OPIC, *args, **known):
    """Does the same as the product's function, but returns CHANGES rows."""
    found, counts = links.changes_of(
        pages, documents, origin, seeds, options, scorings, *args, **known
    )
    schema = scorings.changes(CHANGES)
    return pl.concat([to_frame(conform(part, schema)) for part in found]), counts
