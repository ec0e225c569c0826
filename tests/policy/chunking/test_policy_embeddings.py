"""Embeddings of plug-ins: their vectors are checked, and a fault costs the chunks that cause it."""

import numpy as np
import polars as pl
import pytest

from nutbeam.policy.chunking.embeddings import Embedder, EmbeddingReport, check_vectors

PLUGINS = """
import numpy as np
calls = []
def lengths(chunks):
    calls.append(len(chunks))
    return np.array([[len(text), 1] for text in chunks["text"]], np.float64)
def no_pears(chunks):
    calls.append(len(chunks))
    if any("pear" in text for text in chunks["text"]):
        raise LookupError("no pears")
    return [[len(text), 2.5] for text in chunks["text"]]
def always(chunks):
    calls.append(len(chunks))
    raise SystemExit("the server is gone")
def widths(chunks):
    return [[1.0] * (3 if "pear" in text else 2) for text in chunks["text"]]
class Model:
    made = 0
    def __init__(self):
        Model.made += 1
    def __call__(self, chunks):
        return [[Model.made] for _ in chunks.iter_rows()]
"""


@pytest.fixture
def embedder(tmp_path):
    """Makes an embedder of one of the plug-ins."""
    (tmp_path / "mine.py").write_text(PLUGINS)
    return lambda name: Embedder(f"{tmp_path}/mine.py:{name}")


def frame(*texts):
    return pl.DataFrame(
        {"url": ["http://a.example/"] * len(texts), "text": texts},
        schema={"url": pl.String, "text": pl.String},
    )


def test_chunks_get_their_vectors_in_calls_of_128_chunks(embedder):
    lengths = embedder("lengths")
    embedded = lengths.embed(frame(*("x" * number for number in range(300))))
    assert embedded.columns == ["url", "text", "embedding"]
    assert embedded["embedding"].to_list() == [[number, 1] for number in range(300)]
    assert lengths.report == EmbeddingReport(300, 0, 2, "")
    assert lengths._function.__globals__["calls"] == [128, 128, 44]
    assert lengths.embed(frame())["embedding"].to_list() == []


def test_a_fault_costs_the_chunks_that_cause_it(embedder):
    no_pears = embedder("no_pears")
    texts = ["plum"] * 50 + ["pear", "plum", "pear"]
    vectors = no_pears.embed(frame(*texts))["embedding"].to_list()
    assert vectors == [None if text == "pear" else [4, 2.5] for text in texts]
    assert no_pears.report[:3] == (53, 2, 2)
    assert (
        no_pears.report.fault == 'LookupError: no pears (mine.py:10: raise LookupError("no pears"))'
    )


def test_a_plug_in_that_always_fails_is_not_called_for_ever(embedder):
    always = embedder("always")
    assert always.embed(frame(*["x"] * 1_000))["embedding"].null_count() == 1_000
    assert always.report[:3] == (1_000, 1_000, 0)
    assert len(always._function.__globals__["calls"]) < 30


def test_vectors_of_another_length_are_a_fault(embedder):
    widths = embedder("widths")
    vectors = widths.embed(frame("plum", "pear", "plum"))["embedding"].to_list()
    assert vectors == [[1, 1], None, [1, 1]]
    assert "expected vectors of 2 numbers, as before, got 3" in widths.report.fault


def test_a_class_is_made_once_in_a_process(embedder):
    assert embedder("Model").embed(frame("x"))["embedding"].to_list() == [[1]]
    assert embedder("Model").embed(frame("x"))["embedding"].to_list() == [[1]]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "expected a vector per chunk, got an array of the shape ()"),
        ([1.0, 2.0], "expected a vector per chunk, got an array of the shape (2,)"),
        ([[], []], "expected a vector per chunk, got an array of the shape (2, 0)"),
        ([[1.0], [1.0, 2.0]], "expected an array or lists of numbers, all of one length: "),
        (
            [["a"], ["b"]],
            "expected an array or lists of numbers, all of one length: could not convert",
        ),
        ([[1.0]], "expected 2 vectors, one per chunk, got 1"),
        (
            [[1.0], [float("nan")]],
            "expected finite numbers, got one that is infinite or not a number",
        ),
        (np.array([[1e300], [1.0]]), "expected finite numbers"),
    ],
)
def test_answers_without_a_vector_per_chunk_are_refused(result, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is checked
        check_vectors(result, 2)
    assert message in str(raised.value)
