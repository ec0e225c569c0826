"""Fixtures that several test files use, and which tests run on another runner than this process."""

import asyncio
import contextlib
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import http_clients
import pytest
from flink.cluster import Cluster, started
from here import TESTS
from hypothesis import HealthCheck, settings
from running import NO_PRISM, PRISM, RUNNER
from short_form import leave_few
from small_disk import mounted
from stores_here import STORES, Stores, why_not
from warm_commands import WarmCommands
from web_tables import BACK_ENDS, InFolder

from nutbeam.io.storage.local_place import LocalPlace
from nutbeam.io.storage.table_sizes import replaced_sizes

if TYPE_CHECKING:
    from bigtable_emulator import Emulator
    from kept_crawls import KeptCrawls
    from simulated_web import SimWeb

    from nutbeam.io.parsing.parse_pool import ParsePool

# Tests that take their tables from the fixture ``tables`` run on folders, and a few of them (SHORT)
# on the other back ends. NUTBEAM_TEST_BACKEND names one that all of them run on.
BACKEND = os.environ.get("NUTBEAM_TEST_BACKEND", "")

# The tests that NUTBEAM_TEST_RUNNER puts on another runner: those of the transforms, of generate, imports, of
# each job in a crawl, of whole crawls, and of bad input. Others that run pipelines say more about what
# the jobs store than about who runs them.
PIPELINE_TESTS = (
    "test_pipelines_bad_input",
    "test_pipelines_damage",
    "test_pipelines_crawl",
    "test_pipelines_generate",
    "test_pipelines_import_parts",
    "test_pipelines_jobs",
    "test_transforms_",
)


# Of these the few that NUTBEAM_TEST_SHORT leaves: each job, a crawl, exports, two shuffles.
SHORT = (
    "test_a_crawl_makes_the_table_of_a_crawl_in_this_process",
    "test_a_round_counts_for_all_its_jobs_and_again_for_none",
    "test_agrees_with_the_whole_table_in_memory",
    "test_leaders_over_partitions_are_those_of_the_whole_frame",
    "test_max_count_and_top_n_together_are_exact",
    "test_pages_as_parquet",
    "test_readdb_top",
    "test_second_generate_changes_nothing",
)

# Tests that say something of this process alone, and why they are left out elsewhere.
CONSTANT = "it changes a constant of this process, which workers do not see"
LOGS = "it looks at logs of this process, and workers have their own"
ALONE = {
    "processes": {
        "test_a_host_of_any_size_is_in_files_of_bounded_size": CONSTANT,
        "test_all_rows_of_a_host_come_to_one_partition": CONSTANT,
        "test_output_is_cut_to_chunks_of_bounded_size": CONSTANT,
        "test_bad_lines_are_counted_shown_with_their_numbers_and_not_fatal": LOGS,
        "test_rows_of_a_partition_come_one_after_the_other": "two workers give rows at the same time",
    }
}


def pytest_configure() -> None:
    gc.disable()  # until all tests are collected: it would look at half a million objects each time
    # How long an example takes says more about the machine.
    settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("untimed")
    # Worker processes import what tests define by its name, as this one does.
    if RUNNER == "processes":
        known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        folders = {str(path.parent) for path in (TESTS / "transforms").rglob("test_*.py")}
        folders.add(str(TESTS / "support"))
        missing = sorted(folders.difference(known))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*missing, *known]))
    _let_signals_through()


def _let_signals_through() -> None:
    """Lets signals end the commands that tests start.

    ``nohup`` and a shell's ``&`` let this process ignore them, and each program that it starts, too.
    A handler is forgotten by the programs that are started.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "each_client" in metafunc.fixturenames:
        slow = metafunc.definition.get_closest_marker("slow") is not None
        second = pytest.param(http_clients.CLIENTS[1], marks=[pytest.mark.long] if slow else [])
        metafunc.parametrize("each_client", [http_clients.CLIENTS[0], second], indirect=True)
    named = metafunc.definition.iter_markers("parametrize")
    if "tables" not in metafunc.fixturenames or any(mark.args[0] == "tables" for mark in named):
        return  # a test that names its back ends itself
    if metafunc.definition.get_closest_marker("files") is not None:
        chosen = ["folder"]
    elif BACKEND:
        chosen = [BACKEND]
    else:
        short = not RUNNER and metafunc.function.__name__ in SHORT
        chosen = list(BACK_ENDS) if short else ["folder"]
    if chosen != ["folder"]:
        on_flink = metafunc.definition.get_closest_marker("flink") is not None
        more = [pytest.mark.long] if on_flink else []  # a crawl on a cluster takes a minute
        metafunc.parametrize("tables", _marked(chosen, more), indirect=True, scope="session")


def _marked(names: Iterable[str], more: Iterable[pytest.MarkDecorator] = ()) -> list[Any]:
    """Returns back ends as parameters, with the marks of those that are no folder."""
    return [
        pytest.param(name, marks=[] if name == "folder" else [getattr(pytest.mark, name), *more])
        for name in names
    ]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    # gzip writes the time, and all processes must collect the same names.
    return argname if isinstance(val, bytes) and b"\x1f\x8b" in val else None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """On another runner, leaves out the files that run no pipeline: to import all takes a minute."""
    name = collection_path.name
    ignored = RUNNER and name.startswith("test_") and not name.startswith(PIPELINE_TESTS)
    return True if ignored else None


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("folder_first") and is_on_bigtable(item):
            item.add_marker("long")
    leave_few(items)
    if not RUNNER:
        return
    if os.environ.get("NUTBEAM_TEST_SHORT"):
        left_out = [item for item in items if name_of(item) not in SHORT]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if name_of(item) in SHORT]
    for item in items:
        reason = ALONE.get(RUNNER, {}).get(name_of(item))
        if RUNNER == "prism" and not PRISM.exists():
            reason = NO_PRISM
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


def is_on_bigtable(item: pytest.Item) -> bool:
    """Returns whether the table of a test, or one that it makes, is in Bigtable."""
    call = getattr(item, "callspec", None)
    chosen = call is not None and "bigtable" in call.params.values()
    return chosen or item.get_closest_marker("bigtable") is not None


def name_of(item: pytest.Item) -> str:
    """Returns the name of a test's function."""
    return item.name.partition("[")[0]


@pytest.fixture
def resize_tables() -> Iterator[Callable[..., object]]:
    """A function that replaces sizes of tables' files until the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **sizes: stack.enter_context(replaced_sizes(**sizes))


@pytest.fixture(scope="session")
def warm_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a ``nutbeam`` that starts at once; see warm_commands.py."""
    with WarmCommands(tmp_path_factory.mktemp("warm")) as commands:
        yield commands.bin


@pytest.fixture
def each_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The HTTP client of ``http_clients``; what asks for it runs with each."""
    monkeypatch.setattr(http_clients, "chosen", request.param)
    yield str(request.param)
    http_clients.close_all()


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder that all may read and ``as_nobody`` may not write; tmp_path is root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="nutbeam-test-"))
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def tmp_path_factory(tmp_path_factory: pytest.TempPathFactory) -> pytest.TempPathFactory:
    """Makes folders that are places: functions of io take them as they take other places."""
    make = tmp_path_factory.mktemp
    tmp_path_factory.mktemp = lambda *words, **named: LocalPlace(make(*words, **named))
    return tmp_path_factory


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a disk of a size such as ``64k``; returns its folder."""
    with contextlib.ExitStack() as disks:
        yield lambda size: disks.enter_context(mounted(tmp_path / "disk", size))


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    """Emulators of stores; each starts when it is first asked for."""
    running = Stores()
    yield running
    running.close()


@pytest.fixture(scope="module")
def all_stores(stores: Stores) -> Iterator[None]:
    """Leads all clients to the servers, those of the processes that parse, too."""
    from nutbeam.io.parsing.shared_pools import shared_pool  # late: it loads polars

    with pytest.MonkeyPatch.context() as patch:
        for kind in STORES:
            for name, value in {} if why_not(kind) else stores.environ(kind).items():
                patch.setenv(name, value)
        shared_pool.cache_clear()
        yield
    shared_pool.cache_clear()


@pytest.fixture(scope="session")
def kept_crawls(tmp_path_factory: pytest.TempPathFactory) -> "KeptCrawls":
    """Copies tables with a crawl of a simulated web, each of which is made once."""
    from kept_crawls import KeptCrawls  # late: it loads polars

    return KeptCrawls(tmp_path_factory)


@pytest.fixture(scope="module")
def here(
    web: "SimWeb", kept_crawls: "KeptCrawls", tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """The test file's web, crawled into a folder: the table, and what was asked for."""
    table = tmp_path_factory.mktemp("here") / "table"
    return table, sorted(kept_crawls.make(web, table))


@pytest.fixture(scope="module")
def pool() -> Iterator["ParsePool"]:
    """Two processes that parse."""
    from nutbeam.io.parsing.parse_pool import ParsePool  # late: it loads polars

    pool = ParsePool(2, 0)
    yield pool
    pool.close()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of stores wait before they ask again, up to a minute in all: not in this process."""
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda s, *result: sleep(min(s, 0.001), *result))


@pytest.fixture
def address(request: pytest.FixtureRequest, stores: Stores, tmp_path: Path,
            monkeypatch: pytest.MonkeyPatch) -> str:  # fmt: skip
    """The address of a table that does not exist, in the place that the test's parameter names."""
    kind = getattr(request, "param", "local")
    if kind == "local":
        return str(tmp_path / "table")
    for name, value in stores.environ(kind).items():
        monkeypatch.setenv(name, value)
    return stores.address(kind)


@pytest.fixture(scope="session")
def tables(request: pytest.FixtureRequest) -> Callable[[Path], Path | str]:
    """Makes a table on the back end under test: of a new folder's name its address."""
    name = getattr(request, "param", "folder")
    return BACK_ENDS[name](request, request.getfixturevalue("tmp_path_factory")).at


@pytest.fixture(scope="session")
def flink() -> Iterator[Cluster]:
    """A Flink cluster of two workers, the same for all tests; skips where something is missing."""
    yield from started()


@pytest.fixture(scope="session")
def bigtable() -> "Iterator[Emulator]":
    """A Bigtable emulator, the same for all tests of a process; skips where there is none."""
    from bigtable_emulator import started  # late: Google's libraries take a second

    yield from started()


@pytest.fixture(scope="module", params=_marked(BACK_ENDS))
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> InFolder:
    """A back end of the web table: what asks for it runs on each."""
    return BACK_ENDS[request.param](request, tmp_path_factory)
