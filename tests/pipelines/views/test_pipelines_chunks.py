"""pages --chunks: pieces of the texts of a table, after a recrawl too, and their vectors."""

import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chunked_texts import prose
from crawling import json_lines, nutbeam

import nutbeam as nutbeam_package
from nutbeam.policy.chunking.chunk_rows import CHUNK_COLUMNS
from nutbeam.policy.components.vocabulary import shown_schema
from nutbeam.web.base.errors import UsageError

MODELS = """
import numpy as np
def lengths(chunks):
    return np.array([[len(text), text.count("river"), 1] for text in chunks["text"]])
def no_page_3(chunks):
    if any("Page 3" in path for path in chunks["heading_path"]):
        raise LookupError("no page 3")
    return [[len(title), 0.5] for title in chunks["title"]]
def never(chunks):
    raise LookupError("no model")
def by_page(chunks):
    return [[1.0] * (2 + (len(chunks) > 5)) for text in chunks["text"]]
def tokens(texts):
    return [len(text) // 4 for text in texts]
def no_tokens(texts):
    raise LookupError("no tokens")
"""


def page(number, *, changed=False):
    """Returns a page of five sections with a link to the next one."""
    sections = [f"<h2>Part {part}</h2><p>{prose(number * 10 + part, 60)}" for part in range(5)]
    if changed:
        sections[2] = sections[2].replace("<p>", "<p>New. ")
    links = f"<a href={number + 1}.html>next</a>" if number < 7 else ""
    title = f"<title>P{number}</title><h1>Page {number}</h1>"
    return f"{title}{links}{''.join(sections)}<pre>a\n  b</pre>".encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table after two crawls of a site of which one page has changed; the chunks of before."""
    folder = tmp_path_factory.mktemp("chunks")
    site = folder / "site"
    site.mkdir()
    for number in range(8):
        (site / f"{number}.html").write_bytes(page(number))
    (folder / "models.py").write_text(MODELS)
    words = ("--schemes", "file", "--file_roots", site)
    table = folder / "table"
    assert nutbeam("crawl", table, f"file://{site}/0.html", *words, "--rounds", "-1") == 0
    assert nutbeam("pages", table, "--chunks", "64", "-o", folder / "before.jsonl") == 0
    (site / "3.html").write_bytes(page(3, changed=True))
    assert nutbeam("crawl", table, *words, "--rounds", "1", "--add_days", "40") == 0
    return folder


@pytest.fixture
def chunks(folder, capsys):
    """Runs ``pages --chunks 64``; returns its exit code, records and messages."""

    def run(*words):
        capsys.readouterr()
        code = nutbeam("pages", folder / "table", "--chunks", "64", *words)
        printed = capsys.readouterr()
        return code, json_lines(printed.out), printed.err

    return run


@pytest.mark.long
def test_a_recrawl_gives_new_ids_only_to_chunks_that_changed(folder, chunks):
    before = json_lines((folder / "before.jsonl").read_text())
    code, after, _ = chunks()
    assert (code, len(before), len(after)) == (0, 47, 47)
    known = {record["chunk_id"] for record in before}
    new = [record for record in after if record["chunk_id"] not in known]
    assert {tuple(record["heading_path"]) for record in new} == {("Page 3", "Part 2")}
    assert "New. " in new[0]["text"]
    assert [*after[0]] == [column.name for column in CHUNK_COLUMNS]


@pytest.mark.long
def test_chunks_are_parts_of_the_texts_of_pages(folder, chunks, capsys):
    _, records, _ = chunks("--columns", "url,number,text,start,end")
    assert nutbeam("pages", folder / "table", "--columns", "url,text") == 0
    texts = {page["url"]: page["text"] for page in json_lines(capsys.readouterr().out)}
    assert all(texts[r["url"]][r["start"] : r["end"]] == r["text"] for r in records)
    for url, text in texts.items():
        parts = [record for record in records if record["url"] == url]
        assert [part["number"] for part in parts] == [*range(len(parts))]
        assert "".join("".join(part["text"] for part in parts).split()) == "".join(text.split())


@pytest.mark.long
def test_parquet_and_csv_hold_the_same_chunks(folder, chunks, tmp_path, capsys):
    _, records, _ = chunks()
    for kind in ("parquet", "csv"):
        assert (
            nutbeam("pages", folder / "table", "--chunks", "64", "-o", tmp_path / f"c.{kind}") == 0
        )
    assert f"47 chunks in {tmp_path}/c.csv" in capsys.readouterr().out
    rows = pq.read_table(tmp_path / "c.parquet")
    assert rows.schema.equals(shown_schema(CHUNK_COLUMNS))
    plain = rows.drop_columns("last_fetch_time").to_pylist()
    assert plain == [{n: v for n, v in r.items() if n != "last_fetch_time"} for r in records]
    lines = pl.read_csv(tmp_path / "c.csv")
    assert lines["chunk_id"].to_list() == [record["chunk_id"] for record in records]


@pytest.mark.long
def test_vectors_are_a_column_of_lists_of_one_length(folder, tmp_path, capsys):
    path, model = tmp_path / "c.parquet", f"{folder}/models.py:lengths"
    words = ("--chunks", "64", "--columns", "chunk_id", "--embedding", model)
    assert nutbeam("pages", folder / "table", *words, "-o", path) == 0
    rows = pq.read_table(path)
    assert rows.column_names == ["chunk_id", "embedding"]
    assert rows.schema.field("embedding").type == pa.list_(pa.float32(), 3)
    assert rows["embedding"].null_count == 0
    assert {row[2] for row in rows["embedding"].to_pylist()} == {1.0}
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_chunks_for_which_the_plug_in_fails_have_no_vector_and_are_counted(
    folder, chunks, tmp_path, capsys
):
    code, records, messages = chunks("--embedding", f"{folder}/models.py:no_page_3")
    assert code == 0
    without = [record for record in records if record["embedding"] is None]
    assert {record["heading_path"][0] for record in without} == {"Page 3"}
    assert [record["embedding"] for record in records if record not in without] == [[2.0, 0.5]] * 41
    assert (
        "nutbeam pages: 6 of 47 chunks have no vector, counted as embedding_models.no_page_3: "
        "LookupError: no page 3 (models.py:" in messages
    )
    assert "Traceback" not in messages
    words = ("--chunks", "64", "--embedding", f"{folder}/models.py:no_page_3", "--format", "json")
    assert nutbeam("pages", folder / "table", *words, "-o", tmp_path / "c.parquet") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["chunks"], record["failed"]) == (47, {"embedding_models.no_page_3": 6})
    vectors = pq.read_table(tmp_path / "c.parquet")["embedding"]
    assert (vectors.null_count, vectors.type) == (6, pa.list_(pa.float32()))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("--embedding", "{}:never"),
            3,
            "failed for all of 47 chunks: LookupError: no model (models.py:",
        ),
        (
            ("--embedding", "{}:by_page"),
            3,
            "must return vectors of one length, got some of 2 and of 3 numbers",
        ),
        (("--embedding", "nowhere"), 2, "no embedding 'nowhere' is installed: there is none"),
        (
            ("--chunk_tokenizer", "{}:no_tokens"),
            3,
            "tokenizer 'models.no_tokens' failed: LookupError: no tokens",
        ),
        (("--tokenizer_file", "nowhere.json"), 2, "--tokenizer_file 'nowhere.json' cannot be read"),
        (("--columns", "score"), 2, "--columns must be of url, title, chunk_id, "),
        (("--chunks", "7"), 2, "--chunks must be 16 or more, got 7"),
    ],
)
def test_faults_are_one_line(folder, chunks, tmp_path, words, code, message):
    path = tmp_path / "c.jsonl"
    words = [word.format(folder / "models.py") for word in words]
    found, _, messages = chunks(*words, "-o", path)
    assert found == code
    assert message in messages
    assert "Traceback" not in messages
    assert not path.exists()


def test_a_tokenizer_of_a_plug_in_counts(folder, chunks):
    _, records, _ = chunks("--chunk_tokenizer", f"{folder}/models.py:tokens")
    assert all(record["tokens"] == len(record["text"]) // 4 <= 64 for record in records)
    assert len(records) > 60


@pytest.mark.long
def test_a_program_reads_the_same_chunks(folder, chunks, tmp_path):
    _, records, _ = chunks()
    rows = nutbeam_package.read_chunks(folder / "table", 64).sort("url", "number")
    records.sort(key=lambda record: (record["url"], record["number"]))
    assert rows.drop("last_fetch_time").to_dicts() == [
        {name: value for name, value in record.items() if name != "last_fetch_time"}
        for record in records
    ]
    table = nutbeam_package.read_chunks(
        folder / "table", 64, columns=["text", "tokens"], into="arrow"
    )
    assert table.schema.names == ["text", "tokens"]
    counted = nutbeam_package.read_chunks(
        folder / "table", 64, tokenizer=f"{folder}/models.py:tokens"
    )
    assert (counted["tokens"] == counted["text"].str.len_chars() // 4).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"limit": 0}, "limit must be at least 1, got 0"),
        ({"columns": ["score"]}, "columns must be of url, title, "),
        ({"tokenizer": "nowhere.json"}, "'nowhere.json' cannot be read"),
        (
            {"tokenizer": "nowhere"},
            "no tokenizer 'nowhere' is installed: there are words, characters",
        ),
        ({"into": "pandas"}, "into must be one of polars, arrow, batches, duckdb, got 'pandas'"),
    ],
)
def test_mistakes_of_a_program_that_reads_chunks_are_named(folder, words, message):
    with pytest.raises(UsageError) as raised:
        nutbeam_package.read_chunks(folder / "table", **words)
    assert message in str(raised.value)
