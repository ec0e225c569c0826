"""Options of what becomes of pages in an index, and where they are written."""

import dataclasses

from ..indexing.index_decision import IndexDecisionOptions
from ..indexing.index_options import IndexFilterOptions
from ..inlinks.invert_options import BestOptions
from ..scoring.scoring_options import ScoringOptions
from .index_writer_options import IndexWriterOptions


@dataclasses.dataclass(frozen=True)
class IndexMakingOptions(IndexFilterOptions, IndexDecisionOptions, ScoringOptions, BestOptions):
    """Options of what pages become in an index, and which of them it gets."""


@dataclasses.dataclass(frozen=True)
class IndexTableOptions(IndexMakingOptions, IndexWriterOptions):
    """Options of index, without those of launching."""
