"""Jobs whose steps are interleaved: each runs in a thread of its own, one at a time.

A job stops at each gate, before a step that reads the table, writes a file,
pins or commits, until it is let on. So what runs is the jobs as they are, and
who comes first is not left to chance.
"""

import contextlib
import threading

import pytest

from nutbeam.io.snapshots import commit as written
from nutbeam.io.snapshots import hold, operations
from nutbeam.io.table.bigtable_web_table import BigtableWebTable
from nutbeam.io.table.folder_table import FolderTable
from nutbeam.io.upkeep import over_purges, purge
from nutbeam.io.upkeep import rollback as history
from nutbeam.pipelines import compact, dedup, generate, inject, update
from nutbeam.pipelines.base.command import Invocation
from nutbeam.pipelines.command_line.cli import load
from nutbeam.pipelines.generating import survey
from nutbeam.pipelines.updating import file_changes
from nutbeam.transforms import apply_changes, tickets
from nutbeam.transforms import operations as steps
from nutbeam.transforms.wiring import in_process

# What functions of ours are called by, each at a step of some job.
GATES = [
    *((tickets, name) for name in ("begin", "next_batch")),
    (steps, "commit"),
    (operations, "create_exclusive"),
    *((written, name) for name in ("store_files", "store_manifest")),
    (apply_changes, "plan_ranges"),
    *(
        (kind, name)
        for kind in (FolderTable, BigtableWebTable)
        for name in ("read", "resolve", "edit")
    ),
    (inject, "read_blocklist"),
    (survey, "put_aside"),
    *((generate, name) for name in ("take_up", "write_file")),
    (update, "batch_component"),
    (file_changes, "read_page_facts"),
    (dedup, "batch_component"),
    *((compact, name) for name in ("plan_folds", "fold", "delete_expired", "commit")),
    *((purge, name) for name in ("update_blocklist", "rebase", "commit_once")),
    (over_purges, "commit_once"),
    *((history, name) for name in ("begin", "store_manifest")),
]


class Running:
    """A job that is under way, until it is ``done``.

    Args:
        name: What it is called, in messages.
        work: Does it.

    Attributes:
        at: The gate at which it waits.
        done: Whether it has come to its end.
        error: What it has raised.
        result: What it has returned.
    """

    _now = None  # who runs, of all

    def __init__(self, name, work):
        self.name, self.at = name, "start"
        self.done, self.error, self.result = False, None, None
        self._on, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._free = False
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def advance(self, gates=1):
        """Lets it on, up to the so-many-th next gate."""
        for _ in range(gates):
            if not self.done:
                Running._now = self
                self._on.release()
                self._stopped.acquire()
                Running._now = None

    def finish(self):
        """Lets it on to its end."""
        self._free = True
        self.advance()
        assert self.done

    @staticmethod
    def gate(name):
        """Stops the running thread until it may go on."""
        me = Running._now
        if me is not None and not me._free:
            me.at = name
            me._stopped.release()
            me._on.acquire()

    def _run(self, work):
        self._on.acquire()
        try:
            self.result = work()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        self.done = True
        self._stopped.release()

    def __repr__(self):
        return f"{self.name} at {self.at}"


# Who waits for another job stops here: it must be let on until that one is through.
WAITS = [(hold, "pause_in_hold"), (purge, "pause_in_hold")]


@contextlib.contextmanager
def gates(waits=False):
    """Puts the gates in their places.

    Args:
        waits: Whether jobs that begin wait for a purge; else that must do without.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not waits:
            patch.setattr(hold, "HOLD_TIMES", hold.HOLD_TIMES._replace(most=0.0))
        for owner, name in [*GATES, *(WAITS if waits else [])]:
            real = getattr(owner, name)

            def gated(*args, _real=real, _name=f"{owner.__name__}.{name}", **kwargs):
                Running.gate(_name)
                return _real(*args, **kwargs)

            patch.setattr(owner, name, gated)
        # A job is at one gate at a time.
        patch.setattr(in_process, "elements_at_once", lambda spare: 1)
        yield


def launch(job, table, arguments=None, **options):
    """Runs a command as the command line does, in this thread; returns its exit code.

    Raises:
        UserError: As the command raises it.
    """
    module = load(job)
    known = {"table": str(table), **(arguments or {})}
    return module.run(
        Invocation(job, known, module.Options(**options), [], "json", str(table), False)
    )
