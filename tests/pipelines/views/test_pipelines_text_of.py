"""Readers choose between the main content and the whole text; all cut it at the same places."""

import json

import pytest
from crawling import nutbeam

import nutbeam as package
from nutbeam.web.base.errors import UsageError

TALE = "It was late in the afternoon when the ferry left the harbour of the small island."
PAGE = f"""<title>Ferry</title><nav><ul><li><a href=/>Home</a><li><a href=/shop>Shop</a></ul></nav>
<main><h1>The ferry</h1><p>{TALE}</p><ul><li>Bring food: \U0001f35e</li></ul><p>{TALE}</p></main>
<footer><p>Imprint</p></footer>"""
MAIN = f"The ferry\n\n{TALE}\n\nBring food: \U0001f35e\n\n{TALE}"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text_of")
    (folder / "site").mkdir()
    (folder / "site" / "a.html").write_text(PAGE)
    local = ("--schemes=file", f"--file_roots={folder}/site", "--rounds=1")
    assert nutbeam("crawl", folder / "table", f"file://{folder}/site/a.html", *local) == 0
    return folder / "table"


@pytest.fixture
def shown(table, capsys):
    """Returns what a command prints."""

    def run(*words):
        capsys.readouterr()
        assert nutbeam(*words) == 0
        return capsys.readouterr().out

    return run


def test_pages_and_read_have_the_wanted_text(table, shown):
    columns = "--columns=text,markdown"
    (main, whole) = (
        json.loads(shown("pages", table, columns, *words)) for words in (("--text_of=main",), ())
    )
    assert main["text"] == MAIN
    assert main["markdown"].startswith(f"# The ferry\n\n{TALE}\n\n- Bring food")
    assert whole["text"] == f"Home\nShop\n\n{MAIN}\n\nImprint"
    for text_of, record in (("main", main), ("all", whole)):
        rows = package.read(table, "pages", columns=["text", "markdown"], text_of=text_of)
        assert rows.to_dicts() == [record]


def test_sql_cuts_the_text_where_the_others_do(table, shown):
    query = "SELECT main_text(text, main) AS m, main_text(text, NULL) = text AS w FROM pages"
    assert json.loads(shown("sql", table, query, "--format=json")) == {"m": MAIN, "w": True}


def test_markdown_is_the_same_everywhere_and_has_links_by_option(table, shown):
    query = """SELECT p.markdown = d.markdown AS same,
        markdown_of(p.key, p.text, p.blocks, with_links := false) AS plain
        FROM pages p JOIN batch_documents d USING (key)"""
    answer = json.loads(shown("sql", table, query, "--format=json"))
    whole = package.read(table, "pages", columns=["markdown"]).item()
    content = whole.partition("\n\n")[2]
    assert answer == {"same": True, "plain": f"- Home\n- Shop\n\n{content}"}
    exported, words = {}, ("export", table, "--what=batch_documents", "--columns=url,markdown")
    for links in (True, False):
        record = json.loads(shown(*words, f"--markdown_links={links}"))
        assert list(record) == ["url", "markdown"]
        exported[links] = record["markdown"]
    assert exported == {True: whole, False: answer["plain"]}
    words = ("pages", table, "--columns=markdown", "--markdown_links=false")
    assert json.loads(shown(*words)) == {"markdown": answer["plain"]}
    chunks = [json.loads(line)["markdown"] for line in shown(*words, "--chunks=512").splitlines()]
    assert "\n\n".join(chunks) == answer["plain"]
    read_chunks = package.read_chunks(table, 512, columns=["markdown"], markdown_links=False)
    assert read_chunks["markdown"].to_list() == chunks
    documents = package.read(table, "batch_documents", columns=["markdown"], markdown_links=False)
    assert documents.item() == answer["plain"]


@pytest.mark.long
def test_an_index_gets_the_main_content_unless_all_is_wanted(table, shown):
    site = table.parent / "site"
    words = ("indexchecker", f"file://{site}/a.html", "--schemes=file", f"--file_roots={site}", "--format=json")  # fmt: skip
    contents = [
        json.loads(shown(*words, *more))["document"]["content"]
        for more in ((), ("--text_of=main",), ("--text_of=all",))
    ]
    assert contents == [MAIN, MAIN, f"Home\nShop\n\n{MAIN}\n\nImprint"]


def test_read_names_the_choices(table):
    with pytest.raises(UsageError, match="text_of must be main or all, got 'body'"):
        package.read(table, "pages", text_of="body")
