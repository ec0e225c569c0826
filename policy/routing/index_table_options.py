"""Options of an index: which pages it gets, their documents, and the writers of these."""

import dataclasses

from ..indexing.index_decision import IndexDecisionOptions
from ..indexing.index_options import IndexFilterOptions
from ..inlinks.invert_options import BestOptions
from ..scoring.scoring_options import ScoringOptions
from .index_writer_options import IndexWriterOptions


@dataclasses.dataclass(frozen=True)
class IndexMakingOptions(IndexFilterOptions, IndexDecisionOptions, ScoringOptions, BestOptions):
    """Options of which pages an index gets, and of the documents that are made of them."""


@dataclasses.dataclass(frozen=True)
class IndexTableOptions(IndexMakingOptions, IndexWriterOptions):
    """Options of index, without those of launching."""
