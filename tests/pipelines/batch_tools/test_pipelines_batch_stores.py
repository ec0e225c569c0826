"""The batch tools read tables in stores, write batches there, and put files for other programs there."""

import pytest
from command_output import printed
from crawling import manifest_of, nutbeam, reach, state_of
from simulated_web import served_web
from stores_here import in_stores

from nutbeam.io.storage.files import names, read_bytes
from nutbeam.io.storage.place_addresses import place_of

pytestmark = pytest.mark.usefixtures("all_stores")
web = served_web(hosts=2, pages=4, scope="module")


@pytest.fixture(scope="module")
def local(web, tmp_path_factory):
    made = tmp_path_factory.mktemp("local") / "table"
    assert nutbeam("crawl", made, *web.seeds, "--rounds", "2", *reach(web)) == 0
    return made


@in_stores
@pytest.mark.long
def test_batches_in_a_store_are_those_of_the_folder(address, local, tmp_path, capsys):
    batches = sorted(manifest_of(local).batches)
    printed(capsys, "batches", "copy", address, f"{local}/batches")
    listed = printed(capsys, "readseg", "-list", "-dir", f"{address}/batches")
    assert listed == printed(capsys, "readseg", "-list", "-dir", f"{local}/batches")
    printed(capsys, "mergedb", address, local)
    assert state_of(address).equals(state_of(local))
    for table, folder in ((address, f"{address}-out"), (local, str(tmp_path / "out"))):
        printed(capsys, "dump", "-outputDir", folder, "-segment", f"{table}/batches", "-flatdir")
        printed(capsys, "readseg", "-dump", f"{table}/batches/{batches[1]}", folder, "-nogenerate",
                "-nofetch")  # fmt: skip
    there, here = place_of(f"{address}-out"), place_of(str(tmp_path / "out"))
    assert names(there) == names(here)
    assert [read_bytes(there / name) for name in names(there)] == [
        read_bytes(here / name) for name in names(here)
    ]
    (tmp_path / "urls.txt").write_text("http://h0.example.com/\n")
    printed(capsys, "freegen", tmp_path / "urls.txt", f"{address}/batches")
    printed(capsys, "mergesegs", f"{address}-merged", f"{address}/batches/{batches[0]}",
            f"{address}/batches/{batches[1]}", "-slice", "3")  # fmt: skip
    assert nutbeam("fsck", f"{address}-merged") == 0
