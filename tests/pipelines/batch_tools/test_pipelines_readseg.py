"""readseg shows the data of batches as Nutch's readseg shows that of segments, typed as there."""

import json
import re

import pytest
from command_output import printed
from crawling import files_of, manifest_of, nutbeam, rows_of
from simulated_web import served_web

from nutbeam.io.table.opening import open_table
from nutbeam.policy.batch_tools.segment_text import SegmentRecord, url_text
from nutbeam.web.urls.row_keys import from_key

pytestmark = pytest.mark.folder_first

web = served_web(hosts=3, pages=5, scope="module")
HEADINGS = {
    "nocontent": "Content::",
    "noparsedata": "ParseData::",
    "noparsetext": "ParseText::",
    "nogenerate": "Status: 1 (db_unfetched)",
    "nofetch": "Status: 33 (fetch_success)",
    "noparse": "Status: 65 (signature)",
}


@pytest.fixture(scope="module")
def table(web, backend, kept_crawls):
    """A crawled table whose last batch is only generated."""
    made = str(backend.fresh())
    kept_crawls.make(web, made, "--rounds", "2")
    assert nutbeam("generate", made, "--top_n", "2") == 0
    return made


@pytest.fixture
def segments(table):
    return [f"{table}/batches/{name}" for name in sorted(manifest_of(table).batches)]


def test_a_dump_has_each_url_of_the_batch_once_with_all_its_parts(
    table, segments, tmp_path, capsys
):
    printed(capsys, "readseg", "-dump", segments[1], tmp_path / "out")
    text = (tmp_path / "out" / "dump").read_text()
    batch = segments[1].rpartition("/")[2]
    pages = {row["key"]: row for row in rows_of(table, f"batches/{batch}/pages").to_dicts()}
    listed = set(rows_of(table, f"batches/{batch}/fetchlist")["key"])
    records = re.split(r"^Recno:: (\d+)\n", text, flags=re.MULTILINE)[1:]
    assert list(map(int, records[::2])) == list(range(len(pages.keys() | listed)))
    urls = [record.splitlines()[0].removeprefix("URL:: ") for record in records[1::2]]
    assert sorted(urls) == sorted(map(from_key, pages.keys() | listed))
    of_page = next(r for u, r in zip(urls, records[1::2], strict=True) if "(fetch_success)" in r)
    assert all(heading in of_page for heading in HEADINGS.values())
    key = next(k for k, row in pages.items() if from_key(k) == of_page.split()[1])
    assert pages[key]["body"].decode() in of_page
    document = rows_of(table, f"batches/{batch}/documents").filter(key=key).to_dicts()[0]
    links = [*document["outlinks"], *(document["nofollow_links"] or [])]
    assert f"Title: {document['title']}\nOutlinks: {len(links)}\n" in of_page
    assert f"ParseText::\n{document['text']}\n" in of_page
    assert f"Signature: {document['signature'].hex()}" in of_page


@pytest.mark.parametrize("switch", HEADINGS)
def test_a_switch_leaves_out_its_part_and_no_other(segments, tmp_path, capsys, switch):
    printed(capsys, "readseg", "-dump", segments[1], tmp_path, f"-{switch}")
    text = (tmp_path / "dump").read_text()
    assert {name for name, heading in HEADINGS.items() if heading not in text} == {switch}


def test_the_list_has_times_and_numbers_and_question_marks(table, segments, capsys):
    lines = printed(capsys, "readseg", "-list", "-dir", f"{table}/batches").splitlines()
    assert lines[0] == "NAME\tGENERATED\tFETCHER START\tFETCHER END\tFETCHED\tPARSED"
    assert [line.split("\t")[0] for line in lines[1:]] == [s.rpartition("/")[2] for s in segments]
    assert lines[-1].split("\t")[1:] == ["2", "?", "?", "?", "?"]
    name, generated, start, end, fetched, parsed = lines[2].split("\t")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", start)
    assert start <= end
    assert int(fetched) == len(rows_of(table, f"batches/{name}/pages")) >= int(generated)
    assert int(parsed) == len(rows_of(table, f"batches/{name}/documents"))
    other_spelling = table if "://" in table else f"{table}/../{table.rpartition('/')[2]}"
    words = [segments[2], f"{other_spelling}/batches", f"{table}/batches/"]
    assert len(printed(capsys, "readseg", "-list", *words).splitlines()) == len(lines)
    one = json.loads(printed(capsys, "readseg", "-list", segments[2], "--format", "json"))
    assert one["batches"][0]["fetched"] is None


ALL_BUT_CONTENT = [f"-{name}" for name in HEADINGS if name != "nocontent"]


def url_of(segment):
    """Returns a URL in the fetch list of a batch."""
    table, _, batch = segment.rpartition("/batches/")
    return from_key(rows_of(table, f"batches/{batch}/fetchlist")["key"][0])


def test_the_parts_of_one_url(segments, web, capsys):
    url = web.seeds[0]
    text = printed(capsys, "readseg", "-get", segments[0], url)
    headings = re.findall(r"^(\w[\w ]+)::$", text, re.MULTILINE)
    assert headings == ["Content", "Crawl Generate", "Crawl Fetch", "Crawl Parse", "ParseData",
                        "ParseText"]  # fmt: skip
    record = json.loads(
        printed(capsys, "readseg", "-get", segments[0], url, "-nocontent", "--format", "json")
    )
    assert record["url"] == url
    assert list(record["parts"]) == ["generate", "fetch", "parse", "parsedata", "parsetext"]
    absent = printed(
        capsys, "readseg", "-get", segments[2], url_of(segments[2]), *ALL_BUT_CONTENT, code=1
    )
    batch = segments[2].rpartition("/")[2]
    assert absent == f"{url_of(segments[2])}: batch {batch} has no content of it\n"
    missing = printed(capsys, "readseg", "-get", segments[0], "http://none.com/", code=1)
    assert missing == f"http://none.com/: not in batch {segments[0].rpartition('/')[2]}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["-dump", "{table}/batches/1-a", "out"],
            "no batch '1-a' in table '{table}'; newest batch",
        ),
        (["-dump", "{table}/batches", "out"], "expected one batch, as {table}/batches/ID, got "),
        (["-dump", "{segment}"], "expected a batch, as TABLE/batches/ID, and a folder, got "),
        (
            ["-get", "{segment}", "mailto:a@b"],
            "URL is no URL that can be crawled (scheme_not_allowed)",
        ),
        (["-list"], "expected batches, as TABLE/batches/ID, or a table"),
        (["-list", "none"], "no web table at 'none'"),
        (["-list", "-dir", "none", "-dir", "{table}"], "no web table at 'none'"),
        (["-dump", "{segment}", "{files}/texts"], "'{files}/texts' is in the folder of a table"),
        (["-dump", "{segment}", "{here}"], "expected a folder, got '{here}': a file is there"),
        (["{segment}", "out"], "give --dump_batch BATCH FOLDER, "),
        (["-dump", "-list", "{segment}"], "--dump_batch and --list_batches contradict"),
        (["-dump", "{segment}", "out", *(f"-{s}" for s in HEADINGS)], "all parts are left out"),
        (["-noContents", "{segment}"], "unknown option '-noContents'; did you mean '-nocontent'?"),
    ],
)
def test_bad_words_for_readseg_get_one_line(
    table, segments, refuse, tmp_path, monkeypatch, words, expected
):
    monkeypatch.chdir(tmp_path)
    files = open_table(table).files
    names = {"table": table, "segment": segments[0], "here": __file__, "files": files}
    assert refuse("readseg", *(w.format(**names) for w in words)).startswith(
        expected.format(**names)
    )
    assert list(tmp_path.iterdir()) == []


def test_parts_that_a_batch_does_not_have_are_named(segments, refuse, tmp_path, caplog):
    """The last batch is only generated."""
    batch = segments[2].rpartition("/")[2]
    assert nutbeam("readseg", "-dump", segments[2], tmp_path / "out") == 0
    assert (
        caplog.messages[-1] == f"batch {batch} has no fetch, parse, content, parsedata, parsetext"
    )
    assert (tmp_path / "out" / "dump").read_text().count("Recno::") == 2
    error = refuse("readseg", "-dump", segments[2], tmp_path / "no", "-nogenerate", "-nocontent")
    assert error == f"batch '{batch}' has none of the parts fetch, parse, parsedata, parsetext"
    assert not (tmp_path / "no").exists()


def test_a_damaged_file_ends_with_one_line_and_no_dump(table, backend, refuse, tmp_path):
    copy = backend.copy(table)
    batch = sorted(manifest_of(copy).batches)[1]
    path = files_of(copy, f"batches/{batch}/pages")[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    for words in (["readseg", "-dump", f"{copy}/batches/{batch}", tmp_path / "a"],
                  ["dump", f"{copy}/batches/{batch}", "--output_dir", tmp_path / "b"],
                  ["mergesegs", tmp_path / "c", f"{copy}/batches"]):  # fmt: skip
        assert "data file is damaged" in refuse(*words, code=3)
    assert not (tmp_path / "a" / "dump").exists()
    assert [path for path in tmp_path.rglob("b/**/*") if path.is_file()] == []
    assert not (tmp_path / "c" / "manifest").exists()


def test_a_dump_replaces_no_file(segments, refuse, tmp_path):
    (tmp_path / "dump").write_text("mine")
    error = refuse("readseg", "-dump", segments[0], tmp_path)
    assert error == f"'{tmp_path}/dump' is there already: give another folder"
    assert (tmp_path / "dump").read_text() == "mine"


def content_of(page, charset=None, recode=True):
    record = SegmentRecord(
        "com.a:http/", page={"fetch_status": 33, **page}, document={"charset": charset}
    )
    return url_text(record, ["content"], recode=recode)


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("Käse".encode("latin-1"), "iso-8859-1", "Käse"),
        # Python's codecs of these names lack the letters, or do not exist.
        (b"\x81\x80", "windows-1252", "\x81€"),
        (bytes.fromhex("b0a281"), "gbk", "阿\ufffd"),
        (b"\xe4", "x-mac-cyrillic", "д"),
        (b"\xe9", "iso-8859-8-i", "\u05d9"),
        ("Käse".encode(), "no-charset", "Käse"),
    ],
)
def test_a_body_is_decoded_as_parse_decodes_it_on_request(body, charset, text):
    assert content_of({"body": body}, charset).endswith(f"Content:\n{text}\n")


def test_a_body_is_decoded_as_utf_8_without_request():
    body = "Käse".encode("latin-1")
    assert content_of({"body": body}, "latin1", recode=False).endswith("Content:\nK\ufffdse\n")


def test_each_header_of_a_name_is_shown():
    cookies = [{"name": "Set-Cookie", "value": value} for value in ("a=1", "b=2")]
    assert "metadata: Set-Cookie=a=1 Set-Cookie=b=2\n" in content_of(
        {"body": b"", "headers": cookies}
    )
