"""Links in the folders of tables: which are followed, and what is a file."""

import os

import pytest

from nutbeam.io.disk.regular_files import (
    FileTooLarge,
    LinkError,
    NotRegular,
    check_links,
    open_for_reading,
    read_whole,
    stat_file,
)
from nutbeam.io.disk.table_names import is_made_name
from nutbeam.io.storage.files import list_files
from nutbeam.io.table.opening import open_table

NAME = "0123456789abcdef.parquet"


@pytest.fixture
def table(tmp_path):
    """The folder of a table, beside another table and a folder that belongs to none."""
    for name in ("table", "other"):
        (tmp_path / name / "manifest").mkdir(parents=True)
        (tmp_path / name / "manifest" / "00000001.json").write_text("{}")
        (tmp_path / name / "state").mkdir()
        (tmp_path / name / "state" / NAME).write_text(name)
    (tmp_path / "disk" / "batches" / "1" / "pages").mkdir(parents=True)
    (tmp_path / "disk" / "batches" / "1" / "pages" / NAME).write_text("moved")
    open_table(str(tmp_path / "table"))
    return tmp_path / "table"


def test_a_folder_that_was_moved_to_another_disk_is_followed(table):
    (table / "batches").symlink_to("../disk/batches")
    assert check_links(table / "batches" / "1" / "pages" / NAME)
    assert [found.path.name for found in list_files(table / "batches")] == [NAME]


def test_a_table_whose_folders_were_all_moved_is_followed(table):
    moved = table.parent / "moved"
    moved.mkdir()
    for name in ("manifest", "state"):
        (table / name).rename(moved / name)
        (table / name).symlink_to(moved / name)
    assert check_links(table / "manifest" / "00000001.json")
    assert check_links(table / "state" / NAME)


def test_the_manifests_of_another_table_are_not_those_of_this_one(table):
    (table / "manifest" / "00000001.json").unlink()
    (table / "manifest").rmdir()
    (table / "manifest").symlink_to("../other/manifest")
    with pytest.raises(LinkError):
        check_links(table / "manifest" / "00000001.json")


@pytest.mark.parametrize(
    ("link", "target", "name"),
    [
        ("batches", "../other/state", f"batches/{NAME}"),  # of another table
        ("seeds", "../other/manifest", "seeds/00000001.json"),
        ("batches", "state", f"batches/{NAME}"),  # of this table
        ("batches", ".", f"batches/state/{NAME}"),
        ("exports", "..", f"exports/other/state/{NAME}"),  # above it
        ("seeds", "/", "seeds/etc/passwd"),
        ("batches", "batches", f"batches/{NAME}"),  # itself
        ("batches", "../gone", f"batches/{NAME}"),
        ("state/x", "../../disk", f"state/x/batches/1/pages/{NAME}"),
        (f"state/a{NAME}", f"../../disk/batches/1/pages/{NAME}", f"state/a{NAME}"),
        ("manifest/lists", "../../disk/batches/1/pages", f"manifest/lists/{NAME}"),
    ],
)
def test_any_other_link_leads_to_nothing(table, link, target, name):
    (table / link).symlink_to(target)
    with pytest.raises(LinkError, match="is a link, which is not followed"):
        open_for_reading(table / name)
    folder = link.partition("/")[0]
    listed = [str(found.path.relative_to(table)) for found in list_files(table / folder)]
    assert (
        listed
        == ([f"state/{NAME}"] if folder == "state" else ["manifest/00000001.json"])[
            : folder in ("state", "manifest")
        ]
    )


def test_no_name_leads_out_by_dots(table):
    with pytest.raises(LinkError, match="leads out of the table"):
        open_for_reading(table / "state" / ".." / ".." / "other" / "state" / NAME)


def test_links_elsewhere_are_no_business_of_a_table(table):
    seeds = table.parent / "seeds.txt"
    seeds.symlink_to(f"disk/batches/1/pages/{NAME}")
    assert not check_links(seeds)
    assert open_for_reading(seeds).read() == b"moved"


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "a FIFO"),
        (os.mkdir, "a folder"),
    ],
)
def test_only_regular_files_of_a_table_are_opened(table, make, kind):
    make(table / "state" / "x.parquet")
    for use in (open_for_reading, stat_file):
        with pytest.raises(NotRegular, match=kind):
            use(table / "state" / "x.parquet")


def test_a_file_of_any_size_is_not_read_as_a_whole(table):
    with (table / "manifest" / "00000001.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FileTooLarge, match="it has 1,099,511,627,776 bytes"):
        read_whole(table / "manifest" / "00000001.json", 1 << 20)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("manifest/00000042.json", True),
        ("manifest/lists/batches.1-a.pages-0123456789abcdef.parquet", True),
        ("manifest/made/00000042", True),
        ("operations/17-ab.2.fetch.json", True),
        ("operations/17-ab.2.fetch@7.lost", True),
        (f"state/{NAME}", True),
        (f"state/.{NAME}.0123456789abcdef", True),
        ("batches/1/pages/p00000-1790000000000-0a1b2c3d-00001.parquet", True),
        ("batches/1/leases/p00000-000001.beat", True),
        ("page_ranks/rounds-0123456789abcdef/0001-000001.values", True),
        ("index/main/receipts/1790000000000-17-a.index/0123456789abcdef.intent", True),
        ("exports/1790000000-0a1b2c3d/part-1.jsonl", True),
        ("state/notes.txt", False),
        ("state/backup.parquet", False),
        ("state/.gitkeep", False),
        ("exports/mine.csv", False),
        ("seeds/1790000000-0a1b2c3d.txt", True),
        ("seeds/mine.txt", False),
        ("operations/notes.txt", False),
        ("batches/README.md", False),
        ("batches/1/learnt/0123456789abcdef.parquet", True),
        ("batches/1/mine/0123456789abcdef.parquet", False),
        ("mine/0123456789abcdef.parquet", False),
        ("page_nodes/aside-17-a/0123456789abcdef.parquet", True),
        ("changes/deleted/state/0123456789abcdef.parquet", True),
        ("manifest/2024.json", False),
        (NAME, False),
    ],
)
def test_names_that_jobs_make_are_distinguished_from_others(name, made):
    assert is_made_name(name) == made
