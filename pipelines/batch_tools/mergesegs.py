"""mergesegs: merges batches as Nutch's ``mergesegs`` merges segments; it is ``batches merge``."""

from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ..base.command import Invocation
from .batch_addresses import BATCHES, TARGET
from .batches import Options as BatchesOptions
from .batches import run_verb

ARGUMENTS = (TARGET, BATCHES)


@dataclass(frozen=True)
class Options(BatchesOptions):
    """Options of mergesegs."""

    all_of: tuple[str, ...] = option(
        (), "TABLE/batches: all batches of a table.", nutch="mergesegs -dir", group="batch tools"
    )


def run(invocation: Invocation) -> int:
    words = [*invocation.arguments[BATCHES.name], *invocation.options.all_of]
    return run_verb(invocation, "merge", words)
