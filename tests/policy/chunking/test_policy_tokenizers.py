"""What counts tokens: built-in tokenizers, files of a library, plug-ins."""

import pytest

from nutbeam.policy.chunking.chunk_options import ChunkOptions
from nutbeam.policy.chunking.text_pieces import cut_into_pieces
from nutbeam.policy.chunking.tokenizers import count_words, tokenizer_of
from nutbeam.web.base.errors import UserError
from nutbeam.web.base.options import validate


@pytest.mark.parametrize(
    ("text", "number"),
    [("", 0), (" \n", 0), ("don't stop - now", 4), ("x" * 64, 1), ("x" * 129 + " y", 4), ("日本語 abc日本", 6),
     ("é" * 65, 2), ("한국어 단어", 2)],
)  # fmt: skip
def test_words_are_counted_in_all_scripts(text, number):
    assert count_words(text) == number


def test_a_file_of_the_library_counts_its_tokens(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {"[UNK]": 0, "river": 1, "stone": 2, "##s": 3, ".": 4}
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model.enable_truncation(2)
    path = tmp_path / "tokenizer.json"
    model.save(str(path))
    tokenizer = tokenizer_of("words", str(path))
    assert tokenizer.count(["rivers stone.", "", "mill"]) == [4, 0, 1]
    text = "Rivers stone. " * 40
    pieces = cut_into_pieces(text, [], 16, tokenizer)
    assert all(
        piece.tokens == tokenizer.count([text[piece.start : piece.end]])[0] <= 16
        for piece in pieces
    )


def test_a_file_that_cannot_be_read_is_quoted(tmp_path):
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match=f"--tokenizer_file '{path}' cannot be read: "):
        ChunkOptions(chunks=16, tokenizer_file=str(path)).check_setup(None)


PLUGINS = """
def raises(texts):
    raise KeyError("river")
def short(texts):
    return [1]
def negative(texts):
    return [-1 for text in texts]
def broken(texts):
    return [1.5 for text in texts]
class Halves:
    def __call__(self, texts):
        return [-(-len(text) // 2) for text in texts]
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "raises",
            r"tokenizer 'mine.raises' failed: KeyError: 'river' \(mine.py:3: raise KeyError",
        ),
        (
            "short",
            "tokenizer 'mine.short' failed: ValueError: expected a number per text, 2, got 1",
        ),
        ("negative", "expected numbers of tokens, 0 or more, got -1"),
        ("broken", "expected numbers of tokens, 0 or more, got 1.5"),
    ],
)
def test_a_fault_of_a_plug_in_is_one_line_with_its_name(tmp_path, name, message):
    (tmp_path / "mine.py").write_text(PLUGINS)
    with pytest.raises(UserError, match=message):
        tokenizer_of(f"{tmp_path}/mine.py:{name}").count(["a", "b"])


def test_a_class_of_a_plug_in_counts(tmp_path):
    (tmp_path / "mine.py").write_text(PLUGINS)
    assert tokenizer_of(f"{tmp_path}/mine.py:Halves").count(["abc", ""]) == [2, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"chunks": 15}, "--chunks must be 16 or more, got 15"),
        ({"embedding": "mine"}, "--embedding needs --chunks"),
        ({"chunk_tokenizer": "characters"}, "--chunk_tokenizer needs --chunks"),
        (
            {"chunks": 16, "chunk_tokenizer": "characters", "tokenizer_file": "x"},
            "cannot be used together",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        validate(ChunkOptions(**values))
