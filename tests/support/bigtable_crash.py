"""A process that commits to a table in Bigtable and kills itself at a given step.

``python bigtable_crash.py ADDRESS STEP``: as test_io_bigtable_commit.py starts it.
"""

import os
import signal
import sys

from committing import HALF, changes_of, record_of, write_changes

from nutbeam.io.bigtable.cell_layout import cell_kind
from nutbeam.io.bigtable.cells import encode
from nutbeam.io.bigtable.snapshot_log import open_log
from nutbeam.io.storage.place_addresses import place_of

STEPS = ("written", "committed", "row of a file", "first file", "applied", "done")


def main(address, step):
    def die_at(name):
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    log = open_log(address)
    head = log.roll_forward()
    snapshot = head.snapshot + 1
    changes = write_changes(place_of(log.settings().files), changes_of(snapshot))
    die_at("written")
    head = log.propose(head, record_of(snapshot), changes, "attempt")
    die_at("committed")
    for at, change in enumerate(log.changes(head)):
        if step == "row of a file":
            rows = next(iter(log.rows_of(change)))
            kind = cell_kind(change.component)
            log.table.write(kind, encode(rows.slice(0, HALF), kind), snapshot)
            die_at("row of a file")
        log.apply(change, snapshot)
        if at == 0:
            die_at("first file")
    die_at("applied")
    log.finish(head)
    die_at("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
