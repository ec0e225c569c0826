"""next: runs the phase that is next in line, as the table itself says.

It keeps no state of its own, so cron or an orchestrator may call it.
"""

import dataclasses
from typing import Any

from ..io.address import open_table
from ..io.manifest import Manifest
from . import crawl, dedup, fetch, generate, parse, update
from .command import TABLE, Invocation
from .job import run_job

ARGUMENTS = (TABLE,)
FOLLOWING = {"generated": fetch, "fetched": parse, "parsed": update}


@dataclasses.dataclass(frozen=True)
class Options(crawl.RoundOptions):
    """Options of next: those of whatever phase it is."""


def run(invocation: Invocation) -> int:
    module, name, batch = next_phase(open_table(str(invocation.table)))

    # Of the options only those of that job, so that just they are checked.
    names = {field.name for field in dataclasses.fields(module.Options)}
    given = {n: v for n, v in vars(invocation.options).items() if n in names}
    invocation = dataclasses.replace(invocation, options=module.Options(**given))
    return run_job(invocation, module.build, name, batch)


def next_phase(manifest: Manifest) -> tuple[Any, str, str | None]:
    """Returns (module, job, batch): what is to be done next on a table.

    The oldest batch that is under way comes first; after an update duplicates
    are sought; else a new batch is chosen.
    """
    waiting = [(b.created, name) for name, b in manifest.batches.items() if b.phase in FOLLOWING]
    if waiting:
        batch = min(waiting)[1]
        module = FOLLOWING[manifest.batches[batch].phase]
        return module, module.__name__.rpartition(".")[2], batch
    undone = manifest.without_dedup()
    if undone:
        return dedup, "dedup", undone[0]
    return generate, "generate", None
