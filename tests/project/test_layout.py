import ast
import functools
import itertools
import re
import sys
import warnings
from collections import Counter
from graphlib import CycleError, TopologicalSorter

import pytest
from here import ROOT
from package_files import (
    FILES,
    PACKAGE,
    ROOMS,
    classes_asked,
    dotted,
    imported,
    imports_by_made_name,
    nodes,
    parsed,
    repeated_names,
)

from nutbeam.io.indexing.writer_kinds import BUILT_IN_WRITERS
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.web.parsers.dispatch import MODULES_OF_PARSERS

# The folders of each room, from the top down: a module imports only from its own folder and from later
# ones. "" is the room itself. A folder's modules may import one another.
FOLDERS = {
    "pipelines": (
        *("reference_pages", "api", "command_line", "as_in_nutch", "nutch"),
        *("", "sitemaps", "hosting", "graph", "model_context", "watching", "searching", "indexing"),
        *("archives", "fetching", "reporting", "figures", "doctor"),
        *(
            "upkeep",
            "batch_tools",
            "querying",
            "views",
            "updating",
            "generating",
            "checkers",
            "outputs",
        ),
        *("metrics", "launch", "running", "nutch_conf", "base"),
    ),
    "io": (
        *("upkeep", "nutch", "archives", "graph", "indexing", "reading", "updating", "batches"),
        "parsing",
        "rows",
        *("snapshots", "table", "bigtable", "tablets", "storage", "disk"),
    ),
    "web": (
        *(
            "simweb",
            "rules",
            "extracting",
            "parsers",
            "office",
            "replay",
            "archive_reading",
            "archives",
        ),
        *(
            "html",
            "values",
            "pages",
            "structured",
            "normalizers",
            "filters",
            "rule_files",
            "patterns",
        ),
        *("nutch_text", "hadoop", "indexing", "engine", "robots", "clients", "exchange", "content"),
        *("network", "urls", "tls", "plugins", "base"),
    ),
    "policy": (
        *(
            "nutch",
            "archives",
            "batch_tools",
            "watching",
            "chunking",
            "searching",
            "reporting",
            "indexing",
            "graph",
            "inlinks",
            "updating",
        ),
        "parsing",
        "extracting",
        *("sitemaps", "structured", "estimating", "hosting", "dedup", "generating", "metrics", ""),
        *("scoring", "components", "schedules", "expressions", "base"),
    ),
    "transforms": ("archives", "graph", "indexing", "near_pages", "", "elements", "wiring"),
}
MODULES = 16  # of a folder; more are a warning
FRAME = re.compile(r"\bpl\.(?:Data|Lazy)Frame\b|\bpa\.Table\b|\b[A-Z]\w*Rows\b")
BARE_FRAMES = 0.4  # of the frames in signatures of policy, those whose rows have no name
WITHOUT_BEAM = ("policy", "web")
# Modules of ours that others import by a name that they put together.
BY_NAME = {
    "pipelines/command_line/cli.py": {command.file for command in COMMANDS.values()},
    "io/indexing/writer_kinds.py": {
        f"nutbeam.io.indexing.{module}" for module, _ in BUILT_IN_WRITERS.values()
    },
    "web/parsers/dispatch.py": {f"nutbeam.web.{module}" for module in MODULES_OF_PARSERS},
}
# What these import is given to them: packages that are no part of ours, or the module of a job.
IMPORTS_WHAT_IS_GIVEN = {
    "io/storage/store_clients.py",
    "pipelines/running/job_failures.py",
    "pipelines/launch/runner_checks.py",
    "pipelines/running/arrival.py",
    "pipelines/running/beam_import.py",
    "pipelines/running/one_worker.py",
    "web/base/imports.py",
}
# Public names that several modules may define: the beginnings of these modules' paths, and why.
SAME_NAMES = {
    **dict.fromkeys(
        ("ARGUMENTS", "FORMATS", "Options", "run"), (("pipelines/",), "each command has them")
    ),
    "build": (("pipelines/",), "each job has it"),
    "crawl": (("pipelines/",), "nutbeam.crawl, for programs, and the rounds of the command crawl"),
    **dict.fromkeys(
        ("read", "read_chunks"),
        (("pipelines/",), "readers.py has those of programs, with errors in words of Python"),
    ),
    "main": (
        ("pipelines/", "io/parsing/parse_worker.py", "web/simweb/worker.py"),
        "each module that is run as a program has it",
    ),
    **dict.fromkeys(
        ("names",),
        (
            ("io/storage/files.py", "io/storage/stores.py"),
            "files.py has that of all places, stores.py that of stores",
        ),
    ),
}

# Questions about a word of the command line, and the modules that may ask them. Of a table they are
# not asked: WebTable has what differs.
ASKED_OF_WORDS = {
    "storage.address_kinds.is_place": {
        # A seed is a URL or a place.
        "io/batches/seeds.py",
        # Two spellings of a folder are one; the address of a table in Bigtable has one.
        "io/storage/place_addresses.py",
        "pipelines/checkers/reasons.py",
        "pipelines/checkers/checking.py",
        "pipelines/launch/shipped_seeds.py",
        "pipelines/views/summary.py",
        # `nutbeam table` takes no place: which error fits.
        "pipelines/views/table.py",
    },
    "bigtable.address.is_bigtable": {"io/table/opening.py"},
}


def room(path):
    return path.relative_to(PACKAGE).parts[0]


def folder(path):
    """Returns the folder of a module in its room, such as "storage"; "" is the room itself."""
    parts = path.relative_to(PACKAGE).parts
    return parts[1] if len(parts) > 2 else ""


MODULE_FILES = {
    ".".join(("nutbeam", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in FILES
}


@functools.cache
def targets(path):
    """Returns the files of ours that a file imports, or imports something of; late imports, too."""
    words = [name.split(".") for name in imported(path) | BY_NAME.get(label(path), set())]
    starts = {".".join(name[:end]) for name in words for end in range(3, len(name) + 1)}
    return {MODULE_FILES[name] for name in starts & MODULE_FILES.keys()} - {path}


def label(path):
    return str(path.relative_to(PACKAGE))


def test_io_is_not_a_regular_package():
    # With it, PYTHONPATH=. stops Python up to 3.10, and 3.11+ under a debugger.
    assert not [path for path in FILES if path.name == "__init__.py"]


def test_every_room_has_its_folders_and_no_other():
    found = {place: {folder(path) for path in FILES if room(path) == place} for place in ROOMS}
    assert found == {place: set(folders) for place, folders in FOLDERS.items()}


def test_the_tree_in_the_docs_is_the_declared_one():
    page = ROOT / "docs" / "architecture.md"
    if not page.exists():
        pytest.skip("docs/ is not part of the wheel")
    tree = page.read_text("utf-8").partition("\npackage/ ")[2].partition("\n```")[0]
    shown: dict[str, list[str]] = {}
    for line in tree.splitlines():
        if found := re.match(r"(\w+)/$", line):
            shown[found[1]] = []
        elif found := re.match("[├└]─ (?:(\\w+)/|\\*\\.py) ", line):
            shown[list(shown)[-1]].append(found[1] or "")
    assert shown == {place: list(folders) for place, folders in FOLDERS.items()}


@pytest.mark.long
def test_a_module_that_is_a_program_calls_it_at_its_end():
    early = [
        label(path)
        for path in FILES
        for node in parsed(path).body[:-1]
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
    ]
    assert early == []


def test_a_folder_with_many_modules_is_named_in_a_warning():
    sizes = Counter((room(path), folder(path)) for path in FILES if path.name != "__main__.py")
    assert sizes.total() > 400
    for (room_name, folder_name), modules in sorted(sizes.items()):
        if modules > MODULES:
            place = f"{room_name}/{folder_name}".rstrip("/")
            warnings.warn(f"{place} has {modules} modules: can it be divided?", stacklevel=1)


def test_arrows_between_folders_of_a_room_point_down():
    upward = []
    for path in FILES:
        order = FOLDERS[room(path)]
        allowed = order[order.index(folder(path)) :]
        same = [other for other in targets(path) if room(other) == room(path)]
        upward += [(label(path), label(other)) for other in same if folder(other) not in allowed]
    assert upward == []


def test_no_files_import_one_another_in_a_circle():
    sorter = TopologicalSorter({path: targets(path) for path in FILES})
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(map(label, error.args[1])))


def test_frozen_dataclasses_are_those_that_are_made_quickly():
    line = re.compile(r"^ *@dataclasses\.dataclass\(frozen=True\)$", re.MULTILINE)
    slow = [label(path) for path in FILES if line.search(path.read_text("utf-8"))]
    assert slow == [], "take dataclass from web/base/dataclass.py"


def test_all_that_build_pipelines_of_chunks_load_their_coder():
    """Without it Beam would pickle chunks, without a word."""
    coder = MODULE_FILES["nutbeam.transforms.wiring.chunk_coder"]
    reached = {}
    for path in TopologicalSorter({path: targets(path) for path in FILES}).static_order():
        reached[path] = {path}.union(*(reached[target] for target in targets(path)))
    chunks = MODULE_FILES["nutbeam.transforms.elements.chunks"]
    without = [
        label(path)
        for path in FILES
        if "PCollection" in path.read_text("utf-8")
        and chunks in reached[path]
        and coder not in reached[path]
        and folder(path) != "elements"  # of which transforms are made
    ]
    assert without == []


def test_arrows_between_rooms_point_down():
    upward = []
    for path in FILES:
        allowed = ROOMS[ROOMS.index(room(path)) :]
        ours = [name for name in imported(path) if name.startswith("nutbeam.")]
        upward += [(label(path), name) for name in ours if name.split(".")[1] not in allowed]
    assert upward == []


def test_policy_and_web_know_no_beam():
    knowing = [
        label(path)
        for path in FILES
        if room(path) in WITHOUT_BEAM
        for name in imported(path)
        if name.split(".")[0] == "apache_beam"
    ]
    assert knowing == []


def test_io_imports_no_decisions():
    deciding = {
        label(path)
        for path in FILES
        for name in imported(path)
        if room(path) == "io" and name.startswith("nutbeam.policy.")
        if not name.startswith("nutbeam.policy.components.")
    }
    assert not deciding


def test_a_decision_has_at_most_four_parameters():
    longer = []
    for path in PACKAGE.glob("policy/**/*.py"):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef) and node.name != "__init__":
                named = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                parameters = [each.arg for each in named if each.arg not in ("self", "cls")]
                if len(parameters) > 4:
                    longer.append((path.name, node.name, parameters))
    assert not longer


def test_signatures_of_decisions_name_the_rows_of_frames():
    """They have a type alias, such as ``StateRows``; functions for rows of any kind cannot."""
    written: Counter[bool] = Counter()
    for path in PACKAGE.glob("policy/**/*.py"):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                named = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                types = [each.annotation for each in named] + [node.returns]
                text = " ".join(ast.unparse(each) for each in types if each is not None)
                written.update(word.endswith("Rows") for word in FRAME.findall(text))
    assert written.total() > 500
    assert written[False] <= BARE_FRAMES * written.total()


def test_modules_imported_by_a_computed_name_are_listed():
    found = {label(path) for path in FILES if imports_by_made_name(path)}
    assert found == set(BY_NAME) | IMPORTS_WHAT_IS_GIVEN
    known = {label(path) for path in FILES}
    for name in itertools.chain.from_iterable(BY_NAME.values()):
        assert name.removeprefix("nutbeam.").replace(".", "/") + ".py" in known


def test_imports_are_read_as_python_reads_them(tmp_path):
    file = tmp_path / "web" / "simweb" / "server.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "import io, apache_beam as beam\nfrom . import a\nfrom .site import Site\n"
        "from ..urls import parse\ndef late():\n    from ...io.commit import c\n"
    )
    assert imported(file, tmp_path) == {
        "io",
        "apache_beam",
        "nutbeam.web.simweb.a",
        "nutbeam.web.simweb.site.Site",
        "nutbeam.web.urls.parse",
        "nutbeam.io.commit.c",
    }


def test_no_module_in_io_is_named_after_a_standard_one():
    names = {path.stem for path in (PACKAGE / "io").rglob("*.py")}
    assert names & sys.stdlib_module_names == set()


SMUGGLED = """
import importlib
from .. import engine
from . import table
def late(value, place):
    engine.drivers.run()
    importlib.import_module("nutbeam.io.storage.files")
    importlib.import_module(f"nutbeam.{place}")
    match value:
        case BigtableWebTable():
            pass
    return isinstance(value, table.BigtableTable) or type(place).__name__ == "StorePlace"
"""


def test_imports_and_questions_are_found_in_any_form(tmp_path):
    file = tmp_path / "web" / "base" / "smuggler.py"
    file.parent.mkdir(parents=True)
    file.write_text(SMUGGLED)
    found = imported(file, tmp_path)
    assert {"nutbeam.web.engine.drivers.run", "nutbeam.io.storage.files"} <= found
    assert imports_by_made_name(file) == ["f'nutbeam.{place}'"]
    assert {"BigtableWebTable", "BigtableTable", "StorePlace"} <= set(classes_asked(file))


def test_only_row_checks_tests_for_a_bigtable_class():
    asking = [label(p) for p in FILES for name in classes_asked(p) if name.startswith("Bigtable")]
    assert asking == ["io/upkeep/row_checks.py"]


@pytest.mark.parametrize("question", ASKED_OF_WORDS)
def test_only_listed_modules_check_the_kind_of_an_address(question):
    asking = {label(path) for path in FILES if f"nutbeam.io.{question}" in imported(path)}
    assert asking == ASKED_OF_WORDS[question]


def test_no_module_tests_the_kind_of_a_place():
    places = {"LocalPlace", "StorePlace", "StoreName", "Path", "PosixPath"}
    assert [label(path) for path in FILES if places & set(classes_asked(path))] == []


def test_only_one_module_reads_the_wall_clock():
    """Others ask it, so that years can be run in minutes."""
    clock = re.compile(r"\b(time\.time(_ns)?|datetime\.(now|utcnow)|date\.today)$")
    reading = {
        label(path)
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and clock.search(".".join(dotted(node)))
    }
    assert reading == {"web/base/clock.py"}


def test_a_public_name_means_one_thing():
    several = repeated_names(FILES)
    strange = {
        name: paths
        for name, paths in several.items()
        if not all(path.startswith(SAME_NAMES.get(name, ((), ""))[0]) for path in paths)
    }
    assert strange == {}
    assert set(several) == set(SAME_NAMES)


def test_a_public_name_with_two_meanings_is_found(tmp_path):
    texts = {
        "io/rows/a.py": "class Kind: ...\nSHOWN, KEPT = 1, 2\n_Own = Later = int\n",
        "web/b.py": "if True:\n    def Kind(): ...\ntry:\n    KEPT: int = 3\nfinally:\n    Made = 1\n",
        "web/c.py": "from b import Kind\n_Own = 4\ndef Made(): Later = SHOWN = 5\n",
    }
    files = [tmp_path / name for name in texts]
    for file, text in zip(files, texts.values(), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert repeated_names(files, tmp_path) == {
        "KEPT": ["io/rows/a.py", "web/b.py"],
        "Kind": ["io/rows/a.py", "web/b.py"],
        "Made": ["web/b.py", "web/c.py"],
    }


def test_a_module_name_occurs_once_in_a_room():
    modules = Counter((room(path), path.stem) for path in FILES if path.stem != "__main__")
    assert [name for name, number in modules.items() if number > 1] == []
