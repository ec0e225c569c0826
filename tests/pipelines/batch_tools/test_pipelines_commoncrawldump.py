"""commoncrawldump writes each page as a document in CBOR, typed as Nutch's users type it."""

import base64
import json
import sys
import tarfile

import pytest
from command_output import printed
from crawling import manifest_of, nutbeam, reach, rows_of, tree
from simulated_web import served_web

from nutbeam.policy.batch_tools.common_crawl_documents import (
    DocumentShape,
    PageContext,
    crawl_document,
)
from nutbeam.web.urls.row_keys import from_key

pytestmark = pytest.mark.folder_first

cbor2 = pytest.importorskip("cbor2")
web = served_web(hosts=2, pages=5, scope="module")


@pytest.fixture(scope="module")
def table(web, backend):
    made = str(backend.fresh())
    words = ["--rounds", "2", "--links", *reach(web)]
    assert nutbeam("crawl", made, *web.seeds, *words) == 0
    return made


@pytest.fixture
def pages(table):
    """The pages with a body by URL."""
    return {
        from_key(row["key"]): row
        for batch in manifest_of(table).batches
        for row in rows_of(table, f"batches/{batch}/pages").to_dicts()
        if row["body"]
    }


def document_of(data):
    """Returns the document in a file: JSON in one text of self-described CBOR."""
    assert data[:3] == b"\xd9\xd9\xf7"
    value = cbor2.loads(data)
    return json.loads(getattr(value, "value", value))


def documents_in(folder):
    paths = [path for path in folder.rglob("*.cbor") if path.is_file()]
    return {doc["url"]: doc for doc in (document_of(path.read_bytes()) for path in paths)}


@pytest.mark.long
def test_each_page_is_a_document_with_its_request_and_response(table, pages, tmp_path, capsys):
    words = ["-outputDir", tmp_path, "-segment", f"{table}/batches"]
    line = printed(capsys, "commoncrawldump", *words)
    assert line.startswith(f"{len(pages)} files in {tmp_path}")
    found = documents_in(tmp_path)
    assert set(found) == set(pages)
    for url, document in found.items():
        page, response = pages[url], document["response"]
        assert list(document) == ["url", "timestamp", "request", "response", "key", "imported"]
        assert response["body"].encode() == page["body"]
        assert response["status"] == page["http_code"]
        assert response["server"]["address"] == page["ip"]
        assert response["headers"] == {h["name"]: h["value"] for h in page["headers"]}
        assert document["request"]["headers"]["User-Agent"] in page["request"]
        assert document["key"] == url
        assert document["timestamp"].endswith("Z")
    before = tree(tmp_path, ignore=())
    assert f"there_already {len(pages)}" in printed(capsys, "commoncrawldump", *words)
    assert tree(tmp_path, ignore=()) == before


@pytest.mark.long
def test_the_form_of_documents_and_names_on_request(table, pages, tmp_path, capsys):
    words = ["-keyPrefix", "pre", "-reverseKey", "-SimpleDateFormat", "-jsonArray",
             "-epochFilename", "-extension", "cbor", "-linkdb", table]  # fmt: skip
    dump = ["commoncrawldump", "-outputDir", tmp_path, "-segment", f"{table}/batches", *words]
    printed(capsys, *dump)
    found, (url, page) = documents_in(tmp_path), next(iter(pages.items()))
    assert set(found) == set(pages)
    document = found[url]
    assert document["key"].startswith("pre/com_example_h")
    assert document["timestamp"] == page["fetch_time"]
    assert document["response"]["headers"] == [[h["name"], h["value"]] for h in page["headers"]]
    assert any(document["inlinks"] for document in found.values())
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.cbor")}
    host = "/".join(reversed(url.split("/")[2].split(".")))
    assert any(name.startswith(f"{host}/{page['fetch_time']}") for name in names)
    assert f"there_already {len(pages)}" in printed(capsys, *dump)


def test_an_archive_per_batch_on_request(table, pages, tmp_path, refuse, capsys):
    words = ["commoncrawldump", f"{table}/batches", "--output_dir", tmp_path, "--gzip"]
    printed(capsys, *words)
    documents = []
    for batch in manifest_of(table).batches:
        with tarfile.open(tmp_path / f"{batch}.tar.gz") as archive:
            documents += [document_of(archive.extractfile(m).read()) for m in archive.getmembers()]
    assert sorted(document["url"] for document in documents) == sorted(pages)
    assert ".tar.gz is in '" in refuse(*words)


@pytest.mark.parametrize(
    ("body", "charset", "text", "encoding"),
    [
        ("Käse".encode(), None, "Käse", None),
        ("Käse".encode("latin-1"), "iso-8859-1", "Käse", None),
        ("Käse".encode("latin-1"), None, None, "base64"),
        (b"\x89PNG\r\n\0", "no-charset", None, "base64"),
        # Bytes that a decoder takes, but that its text does not become again.
        ("\ufeffa".encode("utf-16-be"), "utf-16", None, "base64"),
    ],
)
def test_no_byte_of_a_body_is_lost(body, charset, text, encoding):
    page = {"key": "com.a:http/", "body": body}
    response = crawl_document(page, DocumentShape(), PageContext(charset))["response"]
    assert response.get("bodyEncoding") == encoding
    if encoding is None:
        assert response["body"] == text
    else:
        assert base64.b64decode(response["body"]) == body


def test_without_its_library_the_command_names_the_extra_to_install(
    table, refuse, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "cbor2", None)
    error = refuse("commoncrawldump", table, "--output_dir", tmp_path / "out")
    assert error == "commoncrawldump needs cbor2: install nutbeam[cbor]"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-outputDir", "out"], "expected batches, as TABLE/batches/ID, or a table"),
        (
            ["-outputDir", "out", "-segment", "{table}", "-warcSize", "9"],
            "-warcSize: it writes CBOR only",
        ),
        (["-outputDir", "out", "-segment", "{table}", "-extension", "../x"], "--extension must "),
        (["-outputDir", "out", "-segment", "{table}", "-linkdb", "none"], "no web table at 'none'"),
    ],
)
def test_bad_words_for_commoncrawldump_get_one_line(
    table, refuse, tmp_path, monkeypatch, words, expected
):
    monkeypatch.chdir(tmp_path)
    error = refuse("commoncrawldump", *(word.format(table=table) for word in words))
    assert error.startswith(expected)
    assert list(tmp_path.iterdir()) == []
