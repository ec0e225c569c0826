"""WARC files in packages are read where they are, and nothing is written."""

import io
import zipfile

import pytest

from nutbeam.io.archives.packaged_archives import archive_files_in, archive_files_of
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.web.base.errors import UsageError

CONTENT = b"WARC/1.1 " + bytes(range(256)) * 20


def write_package(path, entries, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as package:
        for name in entries:
            package.writestr(name, CONTENT + name.encode())
    return place_of(str(path))


def test_the_archives_of_a_package_are_files_that_can_seek(tmp_path):
    names = [
        "datapackage.json",
        "archive/a.warc.gz",
        "archive/../../b.warc",
        "archive/c.cdxj",
        "/etc/d.warc",
    ]
    package = write_package(tmp_path / "site.wacz", names)
    archives = archive_files_of(package)
    contents = [CONTENT + name.encode() for name in names[1:3]]
    for archive, content in zip(archives, contents, strict=True):
        with archive.open() as file:
            assert file.read() == content
            assert (file.seek(9), file.read(5)) == (9, content[9:14])
            assert file.seek(-3, io.SEEK_END) == len(content) - 3
            assert (file.read(100), file.seek(1 << 62), file.read(1)) == (
                content[-3:],
                1 << 62,
                b"",
            )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site.wacz"]


def test_packages_in_a_folder_count_where_there_are_no_other_archives(tmp_path):
    write_package(tmp_path / "site.wacz", ["archive/a.warc.gz"])
    assert [file.size for file in archive_files_in(place_of(str(tmp_path)))] == [
        len(CONTENT) + len("archive/a.warc.gz")
    ]
    (tmp_path / "b.warc").write_bytes(CONTENT)
    assert [file.size for file in archive_files_in(place_of(str(tmp_path)))] == [None]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda path: write_package(path, ["archive/a.warc"], zipfile.ZIP_DEFLATED), "'archive/a.warc' compressed"),
        (lambda path: write_package(path, ["word/document.xml"]), "ZIP file without WARC files in a folder archive"),
        (lambda path: path.write_bytes(path.read_bytes()[:-30]), "is damaged: File is not a zip file"),
        (lambda path: path.write_bytes(path.read_bytes()[:4] + path.read_bytes()[5:]), "'archive/a.warc' is not where"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"PK\x01\x02", b"PK\x01\x03")), "is damaged: "),
    ],
    ids=["deflated", "no archive", "cut", "a byte less", "no directory"],
)  # fmt: skip
def test_packages_that_cannot_be_read_say_why(tmp_path, change, why):
    path = tmp_path / "site.wacz"
    write_package(path, ["archive/a.warc"])
    change(path)
    with pytest.raises(UsageError, match=why):
        archive_files_of(place_of(str(path)))
