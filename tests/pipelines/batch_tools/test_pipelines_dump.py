"""dump writes bodies into files under Nutch's names, typed as there; nothing leaves the folder."""

import hashlib
import json

import pytest
from command_output import printed
from crawling import manifest_of, rows_of, tree
from simulated_web import served_web

from nutbeam.io.batches.dump_folder import DumpFolder
from nutbeam.io.table.opening import open_table
from nutbeam.policy.batch_tools.dumped_names import md5_name, reversed_name
from nutbeam.web.base.errors import UserError
from nutbeam.web.urls.row_keys import from_key

pytestmark = pytest.mark.folder_first

web = served_web(hosts=3, pages=5, scope="module")


@pytest.fixture(scope="module")
def table(web, backend, kept_crawls):
    made = str(backend.fresh())
    kept_crawls.make(web, made, "--rounds", "2")
    return made


@pytest.fixture
def bodies(table):
    """The bodies of all batches by URL."""
    return {
        from_key(row["key"]): row["body"]
        for batch in manifest_of(table).batches
        for row in rows_of(table, f"batches/{batch}/pages").to_dicts()
        if row["body"]
    }


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("words", "folders"), [((), 2), (("-flatdir",), 0), (("-reverseUrlDirs",), 3)]
)
def test_each_body_is_in_a_file_that_the_map_names(table, bodies, tmp_path, capsys, words, folders):
    out = tmp_path / "out"
    line = printed(capsys, "dump", "-outputDir", out, "-segment", f"{table}/batches", *words)
    assert line.startswith(f"{len(bodies)} files in {out}")
    maps = {path.name: json.loads(path.read_text()) for path in out.glob("*.json")}
    assert set(maps) == {f"{b}_filenameToUrl.json" for b in manifest_of(table).batches}
    names = {name: url for one in maps.values() for name, url in one.items()}
    assert {url: (out / name).read_bytes() for name, url in names.items()} == bodies
    assert {name.count("/") for name in names} == {folders}
    url, name = next((u, n) for n, u in names.items())
    digest = (hashlib.sha256 if folders == 3 else hashlib.md5)(url.encode()).hexdigest()
    assert digest in name
    assert len([path for path in out.rglob("*") if path.is_file()]) == len(names) + len(maps)


def test_types_choose_pages_and_are_counted(table, bodies, tmp_path, capsys):
    where = ["-segment", f"{table}/batches"]
    words = ["-mimetype", "image/png", "application/*", "-mimeStats"]
    lines = printed(capsys, "dump", *where, "-outputDir", tmp_path / "a", *words).splitlines()
    assert lines[0].startswith(f"0 files in {tmp_path}/a; left out: ")
    assert f"other_type {len(bodies)}" in lines[0]
    assert json.loads(lines[1]) == {"TOTAL": {"text/html": len(bodies)}, "FILTER": {}}
    words = ["-mimetype", "text/HTML", "-mimeStats", "--format", "json"]
    record = json.loads(printed(capsys, "dump", *where, "-outputDir", tmp_path / "b", *words))
    assert record["files"] == record["types"]["filter"]["text/html"] == len(bodies)


def test_a_dump_replaces_no_file_and_goes_on_after_a_kill(table, bodies, tmp_path, refuse, capsys):
    words = ["dump", f"{table}/batches", "--output_dir", tmp_path / "out"]
    printed(capsys, *words)
    before = tree(tmp_path / "out", ignore=())
    assert "is in '" in refuse(*words)
    assert "filenameToUrl.json: give another folder" in refuse(*words)
    # Killed before the maps were there, and with one file of another program.
    for path in (tmp_path / "out").glob("*.json"):
        path.unlink()
    mine = next(path for path in sorted((tmp_path / "out").rglob("*")) if path.is_file())
    content = mine.read_bytes()
    mine.write_bytes(b"mine")
    line = printed(capsys, *words)
    assert line.startswith("0 files in ")
    assert f"there_already {len(bodies)}" in line
    assert mine.read_bytes() == b"mine"
    mapped = [n for p in (tmp_path / "out").glob("*.json") for n in json.loads(p.read_text())]
    assert len(mapped) == len(bodies) - 1
    mine.write_bytes(content)
    assert set(before) == set(tree(tmp_path / "out", ignore=()))


KEYS = [
    "com.a:http/../../../etc/passwd",
    "com.a:http/..%2F..%2Fetc",
    "com.a:http/%00/%E2%80%AE.exe",
    "com.a:http/" + "a/" * 500 + "b" * 900 + "." + "c" * 900,
    "com.a:http/?../../x",
    "[::1]:http:8080/x",
    ":file/etc/passwd",
    "com.a:http/CON",
    "com...:http/",
    "com.a:http/.bashrc",
    "com.a:http/~root",
    "com.a:http/a%5Cb",
]


@pytest.mark.parametrize("key", KEYS)
def test_no_name_leaves_the_folder(key, tmp_path):
    for number, name in enumerate((md5_name(key), md5_name(key, flat=True), reversed_name(key))):
        assert not name.startswith(("/", "."))
        assert all(part.strip(".") and len(part) < 200 for part in name.split("/")), name
        assert name.isascii()
        assert name.replace("/", "").isprintable()
        folder = tmp_path / str(number)
        assert DumpFolder(str(folder)).write(name, b"x")
        assert [p.read_bytes() for p in folder.rglob("*") if p.is_file()] == [b"x"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", ""])
def test_the_folder_refuses_names_that_lead_out(tmp_path, name):
    with pytest.raises(UserError, match="no name for a file in"):
        DumpFolder(str(tmp_path / "out")).write(name, b"x")
    assert list(tmp_path.iterdir()) == []


def test_no_link_in_the_folder_is_followed_out_of_it(table, tmp_path, refuse):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "com").symlink_to(tmp_path / "elsewhere")
    words = ["-outputDir", tmp_path / "out", "-segment", f"{table}/batches", "-reverseUrlDirs"]
    assert refuse("dump", *words, code=3).startswith(f"a link leads out of '{tmp_path}/out': ")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (tmp_path / "out" / "com").unlink()
    (tmp_path / "out" / "com").symlink_to(tmp_path / "out" / "com")
    assert refuse("dump", *words, code=3).startswith(("a link leads ", "cannot write "))


@pytest.mark.parametrize("name", ["", "new", "batches/x/pages", "link", "link/new", "link/x/../in"])
def test_no_file_is_written_into_a_table(table, tmp_path, refuse, name):
    files = open_table(table).files
    (tmp_path / "link").symlink_to(files)
    out = str(tmp_path / name) if name.startswith("link") else f"{files}/{name}"
    before = tree(files, ignore=())
    expected = f"{out!r} is in the folder of a table: give another folder"
    assert refuse("dump", "-outputDir", out, "-segment", f"{table}/batches") == expected
    assert tree(files, ignore=()) == before


def test_a_host_with_the_name_of_a_table_writes_nothing_into_it(tmp_path_factory, tmp_path):
    (tmp_path / "com").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    (tmp_path / "manifest").mkdir()
    (tmp_path / "org" / "manifest").mkdir(parents=True)
    (tmp_path / "org" / "manifest" / "00000001.json").touch()
    folder = DumpFolder(str(tmp_path))
    with pytest.raises(UserError, match="no files are written into a table: "):
        folder.write(reversed_name("org.state:http/"), b"x")
    with pytest.raises(UserError, match="a link leads out of "):
        folder.write(reversed_name("com.state:http/"), b"x")
    assert folder.write(reversed_name("manifest:http/"), b"x")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-outputDir", "{here}", "{table}"], "expected a folder, got '{here}': a file is there"),
        (
            ["-outputDir", "{here}/x", "{table}"],
            "expected a folder, got '{here}/x': a file is there",
        ),
        (["-outputDir", "out", "{here}"], "the table must be a folder, got the file '{here}'"),
        (["{table}/batches"], "--output_dir is missing: the folder of the files"),
        (["-outputDir", "out"], "expected batches, as TABLE/batches/ID, or a table"),
        (["-outputDir", "out", "-segment", "{table}/batches/1-a"], "no batch '1-a' in table"),
        (["-outputDir", "out", "none"], "no web table at 'none'"),
        (["-outputDir", "out", "{table}", "-mimetype", "html"], "--mimetypes must be types such"),
        (["-outputDir", "out", "{table}", "-flatdir", "-reverseUrlDirs"], "--flat_dir and --rev"),
        (["-outputDir", "bs://x/y", "{table}"], "an address must be a local folder"),
    ],
)
def test_bad_words_for_dump_get_one_line(table, refuse, tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    names = {"table": table, "here": __file__}
    error = refuse("dump", *(word.format(**names) for word in words))
    assert error.startswith(expected.format(**names))
    assert list(tmp_path.iterdir()) == []
