"""solrclean: clean, with the writer solr. Nutch's older command."""

from ...policy.indexing.index_options import IndexWriterOptions
from ...web.base.dataclass import dataclass
from ...web.base.options import shared_option
from ..base.command import TABLE, Invocation
from . import clean

ARGUMENTS = (TABLE,)


@dataclass(frozen=True)
class Options(clean.Options):
    """Options of solrclean."""

    writer: str = shared_option(IndexWriterOptions, "writer", default="solr")


def run(invocation: Invocation) -> int:
    return clean.run(invocation)
