"""solrindex: index, with the writer solr. Nutch's older command."""

import dataclasses

from ...policy.indexing.index_options import IndexWriterOptions
from ...web.base.options import shared_option
from ..base.command import TABLE, Invocation
from . import index

ARGUMENTS = (TABLE,)


@dataclasses.dataclass(frozen=True)
class Options(index.Options):
    """Options of solrindex."""

    writer: str = shared_option(IndexWriterOptions, "writer", default="solr")


def run(invocation: Invocation) -> int:
    return index.run(invocation)
