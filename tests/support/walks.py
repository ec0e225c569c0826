"""Counts what a reader passes who follows a piece of work: places, rooms, and climbs back up.

A place is a module, counted where a real run first enters it; what only ``web`` calls in ``web`` is no
place, because it knows a URL and no batch. Nor are the modules that make dataclasses and mappings: one uses
these without reading them. A climb is a place in a higher room than the place before it, in the order
pipelines, transforms, io, policy, web.

As a program it prints one walk in a process of its own, so that no cache hides a place.
"""

import inspect
import itertools
import sys
from pathlib import Path
from typing import NamedTuple

from package_files import PACKAGE, ROOMS

from nutbeam.io.snapshots.operations import begin
from nutbeam.io.updating.page_facts import PageFiles
from nutbeam.pipelines import update
from nutbeam.pipelines.indexing import index
from nutbeam.pipelines.updating.file_changes import changes_of_pages
from nutbeam.policy.components.schema import to_frame
from nutbeam.policy.updating.update_rules import UpdateRules
from nutbeam.transforms.wiring.plugin_groups import scorings_of

_AS_IN_PYTHON = ("web/base/dataclass.py", "web/base/mappings.py")


class Step(NamedTuple):
    """A place on a walk.

    Attributes:
        module: Path of the module below the package.
        function: The function that is entered first.
        climbs: Whether its room is higher than that of the place before.
    """

    module: str
    function: str
    climbs: bool

    @property
    def folder(self):
        return str(Path(self.module).parent)

    def __str__(self):
        return f"{'^' if self.climbs else ' '} {self.module} {self.function}"


def steps_of(work):
    """Calls a function; returns the places that it passes, in the order of their first entry."""
    functions = {}

    def note_call(frame, event, _):
        module = _module_of(frame)
        if event == "call" and module is not None and module not in functions:
            caller = frame.f_back
            while caller is not None and _module_of(caller) is None:
                caller = caller.f_back
            if caller is None or not module.startswith("web/") or _room_of(_module_of(caller)) < 4:
                functions[module] = frame.f_code.co_name

    sys.setprofile(note_call)
    try:
        work()
    finally:
        sys.setprofile(None)
    rooms = [_room_of(module) for module in functions]
    climbs = [False, *(room < previous for previous, room in itertools.pairwise(rooms))]
    return [Step(*each, up) for each, up in zip(functions.items(), climbs, strict=True)]


def _module_of(frame):
    """Returns the path of a function's module below the package; None if it is not in a room."""
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # the body of a module or a class
        return None
    below = frame.f_code.co_filename.removeprefix(f"{PACKAGE}/")
    return below if below.partition("/")[0] in ROOMS and below not in _AS_IN_PYTHON else None


def _room_of(module):
    return ROOMS.index(module.partition("/")[0])


def walk_of_update(table, now, batch):
    """Returns the places of the first file of pages of a batch through updatedb."""
    options, operation = update.Options(), begin(table, "update", "walk", batch, now)
    pages = next(item for item in update._items(operation) if isinstance(item, PageFiles))
    rules = UpdateRules(options, scorings_of(options))
    return steps_of(lambda: list(changes_of_pages(pages, rules)))


def walk_of_index(table, now):
    """Returns the places of the pages of a tablet into an index of this machine."""
    options, operation = index.Options(), begin(table, "index", "walk", None, now)
    item = next(iter(index._candidates(operation, options)))

    def work():
        for element in list(index._decide(item, options)):
            if isinstance(element, tuple):
                name, chunk = element
                list(index._write(name, to_frame(chunk), operation, options))

    return steps_of(work)


def main(job, table, now, *batch):
    walk = walk_of_update if job == "updatedb" else walk_of_index
    print(*walk(table, int(now), *batch), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
