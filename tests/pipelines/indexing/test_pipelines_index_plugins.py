"""Index filters and writers of users: found by entry points, and used by index and indexchecker."""

import pytest
from crawling import nutbeam
from indexed_tables import index, operations_of, page, put
from plugins import install

from nutbeam.web.plugins.plugins import forget_plugins

CODE = """
from pathlib import Path

import polars as pl

from nutbeam.io.indexing.file_writers import FileWriter
from nutbeam.io.indexing.index_writer import IndexWriter, WriteResult
from nutbeam.policy.indexing.index_filter import IndexFilter


class Length(IndexFilter):
    name = "length"
    reads = ()

    def apply(self, documents, pages):
        length = pages.get_column("text").str.len_chars().cast(pl.Int64).alias("length")
        return self.dropping(documents.with_columns(length), length < 3)


class Lines(IndexWriter):
    kind = "lines"
    parameters = {"file": "File that gets a line per document."}
    required = ("file",)

    def write(self, documents, deletes):
        with Path(self.target.parameters["file"]).open("a") as file:
            for row in documents.iter_rows(named=True):
                file.write(f"+ {row['id']} {row['length']}\\n")
            file.writelines(f"- {url}\\n" for url in deletes)
        return WriteResult({"added": len(documents), "deleted": len(deletes)})


class Begun(IndexFilter):
    name = "begun"


class BegunFile(FileWriter):
    kind = "begun"


class BegunWriter(IndexWriter):
    kind = "bare"


class Broken(Length):
    def __init__(self, options):
        raise KeyError("width")


class Nothing(Length):
    def apply(self, documents, pages):
        documents.with_columns(length=1)


class Misspelt(Length):
    def apply(self, documents, pages):
        return documents.with_columns(pl.col("titel"))


class Lost(Length):
    def apply(self, documents, pages):
        return documents.select("id")


class Unmade(Lines):
    def __init__(self):
        pass


class Silent(Lines):
    def write(self, documents, deletes):
        return None


class Failing(Lines):
    def close(self):
        return 1 / 0
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Installed packages with an index filter, and with a writer; the others have mistakes."""
    folder = tmp_path / "site"
    filters = {"length": "my_index:Length", "begun": "my_index:Begun", "odd": "builtins:repr",
               "broken": "my_index:Broken", "nothing": "my_index:Nothing",
               "misspelt": "my_index:Misspelt", "lost": "my_index:Lost"}  # fmt: skip
    install(folder, "my-filter", {"my_index.py": CODE}, filters, group="nutbeam.index_filters")
    writers = {"lines": "my_index:Lines", "odd": "my_index:Path", "begun": "my_index:BegunFile",
               "bare": "my_index:BegunWriter", "unmade": "my_index:Unmade",
               "silent": "my_index:Silent", "failing": "my_index:Failing"}  # fmt: skip
    install(folder, "my-writer", {}, writers, group="nutbeam.index_writers")
    monkeypatch.syspath_prepend(str(folder))
    forget_plugins()
    yield
    forget_plugins()


@pytest.fixture
def table(tmp_path):
    table = str(tmp_path / "table")
    put(table, "17-1", {"com.a:http/1": page("long text"), "com.a:http/2": page("x")})
    return table


def test_a_filter_of_a_user_makes_fields_and_leaves_documents_out(plugin, table, tmp_path):
    assert index(table, tmp_path / "out", "--index_filters", "basic,length") == 0
    ((_, adds, _),) = operations_of(tmp_path / "out")
    assert {url: document["length"] for url, document in adds.items()} == {"http://a.com/1": 9}


def test_a_writer_of_a_user_gets_documents_and_deletes(plugin, table, tmp_path):
    lines = tmp_path / "lines.txt"
    words = ("index", table, "--writer", "lines", "--writer_parameters", f"file={lines}",
             "--index_filters", "length")  # fmt: skip
    assert nutbeam(*words) == 0
    put(table, "17-2", {"com.a:http/1": None, "com.a:http/3": page("third")})
    assert nutbeam(*words) == 0
    assert sorted(lines.read_text().splitlines()) == [
        "+ http://a.com/1 9", "+ http://a.com/3 5", "- http://a.com/1",
    ]  # fmt: skip


def test_a_mistake_is_one_line(plugin, table, capsys):
    for words, message in (
        (("--writer", "odd"), "index writer 'odd' is not a subclass of IndexWriter"),
        (("--writer", "lines"), "index writer 'lines' (lines) needs the parameter 'file'"),
        (("--writer", "line"), "no index writer 'line' is installed"),
        (("--writer", "bare"), "index writer 'bare': the class 'my_index:BegunWriter' lacks write"),
        (("--writer", "begun"), "the class 'my_index:BegunFile' lacks encode_documents, ending"),
        (("--index_filters", "lenght"), "no index filter 'lenght' is installed"),
        (("--index_filters", "begun"), "the class 'my_index:Begun' lacks apply"),
        (("--index_filters", "odd"), "'odd' of module builtins must be a class derived from"),
        (("--index_filters", "broken"), "'broken' of module my_index: KeyError: 'width'"),
        (("--index_filters", "nothing"), "of module my_index: it must return a frame, got None"),
        (("--index_filters", "misspelt"), "of module my_index: ColumnNotFoundError: unable to"),
        (("--index_filters", "lost"), "it must keep all columns, and has dropped dropped_by"),
        (("--writer", "unmade"), "index writer 'unmade' of module my_index cannot be made: Type"),
    ):
        capsys.readouterr()
        assert nutbeam("index", table, *words) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_a_fault_of_a_writer_fails_the_job_and_names_the_writer(plugin, table, tmp_path, capsys):
    file = ("--writer_parameters", f"file={tmp_path / 'lines'}", "--index_filters", "length")
    for writer, message in (
        ("silent", "'silent' of module my_index: write must return a WriteResult, got None"),
        (
            "failing",
            "'failing' of module my_index: ZeroDivisionError: division by zero (my_index.py:",
        ),
    ):
        capsys.readouterr()
        assert nutbeam("index", table, "--index", writer, "--writer", writer, *file) == 3
        assert message in capsys.readouterr().err
