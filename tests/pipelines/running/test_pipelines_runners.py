"""The same table on two worker processes, and both of them have a share in the work."""

import os
import threading
from pathlib import Path

import apache_beam as beam
import pytest
from crawling import (
    assert_same,
    assert_whole,
    contents,
    crawl,
    files_of,
    manifest_of,
    nutbeam,
    reach,
)
from simulated_web import served_web
from waiting import wait_until_none

from nutbeam.io.batches.batches import batch_files
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.pipelines.running.runner import make_pipeline, run_pipeline
from nutbeam.transforms.for_each import ForEach
from nutbeam.transforms.operations import Begin
from nutbeam.transforms.tickets import Ticket

WORKERS = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
web = served_web(hosts=3, pages=4, scope="module")  # 3 rounds


@pytest.fixture(scope="module")
def table(web, tmp_path_factory):
    """A table of several tablets and files of pages, crawled in this process."""
    folder = tmp_path_factory.mktemp("runners") / "table"
    with replaced_sizes(tablet_rows=8):
        assert crawl(folder, web, *web.seeds, "--num_fetchers", 4) == 0
    assert len(files_of(folder, "state")) > 2
    return folder


class Watch(threading.Thread):
    """Sees which processes below this one parse, and whose children they are."""

    def __init__(self):
        super().__init__(daemon=True)
        self.parents, self.over = set(), threading.Event()

    def run(self):
        while not self.over.wait(0.05):
            for parent, line in processes().values():
                if "parse_worker" in line and parent != os.getpid():
                    self.parents.add(parent)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def processes():
    """Returns the parent and the command line of each process, by id."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
            except (OSError, UnicodeDecodeError):
                continue
            found[int(folder.name)] = (int(stat[1]), line)
    return found


@pytest.mark.long
def test_a_crawl_on_two_worker_processes_gives_the_same_table(web, table, tmp_path):
    folder = tmp_path / "table"
    with Watch() as watch:
        assert crawl(folder, web, *web.seeds, "--num_fetchers", 4, *WORKERS) == 0
    assert_whole(folder, web.site)
    assert_same(contents(folder), contents(table))
    assert manifest_of(folder).counts == manifest_of(table).counts
    # Each worker that gets files of pages starts its own parsers.
    assert len(watch.parents) >= 2
    wait_until_none(lambda: {p for p, (_, line) in processes().items() if str(folder) in line})


def recorded(table, out, divide, *beam_args):
    """Runs ``ForEach`` over what ``divide`` yields; returns the items by process id.

    The functions are pickled by value: workers have no tests to import.
    """

    def work(item, out):
        import os
        import pathlib
        import time

        time.sleep(0.05)  # as if it were work
        name = f"{os.getpid()}-{item}".replace("/", "_")
        (pathlib.Path(out) / name).touch()
        yield item

    out.mkdir()
    pipeline = make_pipeline(beam_args)
    tickets = pipeline | beam.Create([Ticket(str(table), out.name)])
    operations = tickets | "Begin" >> Begin("look")
    operations | "Look" >> ForEach(divide, work, (str(out),), str)
    run_pipeline(pipeline)
    shares = {}
    for path in out.iterdir():
        pid, _, item = path.name.partition("-")
        shares.setdefault(int(pid), set()).add(item)
    return shares


def spread(shares, items):
    """Asserts that two processes, neither of them this one, shared the items."""
    done = [item for share in shares.values() for item in share]
    assert sorted(done) == sorted(item.replace("/", "_") for item in items)
    assert len(shares) == 2
    assert os.getpid() not in shares


@pytest.mark.long
def test_tablets_are_spread_over_the_workers(table, tmp_path):
    def divide(operation):
        for file in operation.files("state"):
            yield file.path

    items = [str(path.relative_to(table)) for path in files_of(table, "state")]
    assert len(items) > 2
    spread(recorded(table, tmp_path / "out", divide, *WORKERS), items)


@pytest.mark.long
def test_files_of_pages_are_spread_over_the_workers(table, tmp_path):
    def divide(operation):
        manifest = operation.manifest()
        for batch in manifest.batches:
            for file in batch_files(operation.table, manifest, batch, "pages"):
                yield file.path

    manifest = manifest_of(table)
    items = [
        str(path.relative_to(table))
        for batch in manifest.batches
        for path in files_of(table, f"batches/{batch}/pages")
    ]
    assert len(items) > len(manifest.batches)
    spread(recorded(table, tmp_path / "out", divide, *WORKERS), items)


@pytest.mark.long
def test_in_this_process_without_them(table, tmp_path):
    def divide(operation):
        for file in operation.files("state"):
            yield file.path

    shares = recorded(table, tmp_path / "out", divide)
    assert set(shares) == {os.getpid()}


@pytest.mark.long
def test_an_error_of_a_worker_process_is_one_line(table, tmp_path, capfd):
    capfd.readouterr()
    options = ["--batch", "1-none", "--agent_name", "a", "--agent_email", "a@example.com"]
    assert nutbeam("fetch", table, *options, *WORKERS) == 3
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("nutbeam fetch: no batch '1-none' in this table")
    assert captured.err.count("\n") == 1


@pytest.mark.long
def test_runner_names_that_mean_this_process(web, tmp_path):
    for number, name in enumerate(("DirectRunner", "FnApiRunner")):
        folder = tmp_path / f"table{number}"
        words = [f"--runner={name}", "--rounds", "1", *reach(web)]
        assert nutbeam("crawl", folder, *web.seeds, *words) == 0
