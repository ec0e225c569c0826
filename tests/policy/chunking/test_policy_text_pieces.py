"""Texts are cut at headings, blocks, sentences and words; a change moves no cut that is far from it."""

import pytest
from chunked_texts import parsed, pieces_of, prose
from hypothesis import given, settings
from hypothesis import strategies as st

from nutbeam.policy.chunking.text_pieces import cut_into_pieces
from nutbeam.policy.chunking.tokenizers import CHARACTER_COUNTS, WORD_COUNTS, Tokenizer

HTML = st.lists(
    st.one_of(
        st.builds(lambda level, n: f"<h{level}>{prose(n, 3)}</h{level}>", st.integers(1, 6), st.integers(0, 99)),
        st.builds(lambda n, words: f"<p>{prose(n, words)}</p>", st.integers(0, 99), st.integers(1, 90)),
        st.builds(lambda n, items: "<ul>" + f"<li>{prose(n, 9)}" * items + "</ul>", st.integers(0, 99), st.integers(0, 9)),
        st.builds(lambda n, rows: "<table>" + f"<tr><td>{prose(n, 3)}<td>{prose(n, 2)}" * rows + "</table>",
                  st.integers(0, 99), st.integers(0, 9)),
        st.builds(lambda n: "<pre>" + prose(n, 40).replace(". ", ".\n") + "</pre>", st.integers(0, 99)),
        st.sampled_from(["<p>" + "x" * 300, "<p>日本語の文。次の文。" * 9, "<p> ", "<hr>", "<blockquote><p>Of b.<p>Of c.</blockquote>"]),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(HTML, st.integers(1, 60), st.sampled_from([WORD_COUNTS, CHARACTER_COUNTS]))
def test_pieces_hold_all_of_a_text_and_no_piece_is_longer_than_the_limit(blocks, limit, tokenizer):
    text, spans = parsed("".join(blocks))
    pieces = cut_into_pieces(text, spans, limit, tokenizer)
    texts = [text[piece.start : piece.end] for piece in pieces]
    assert [piece.tokens for piece in pieces] == tokenizer.count(texts)
    assert all(piece.tokens <= limit for piece in pieces)
    assert all(part == part.strip() != "" for part in texts)
    bounds = [0, *(place for piece in pieces for place in piece[:2]), len(text)]
    assert bounds == sorted(bounds)
    assert not "".join(
        text[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)
    ).strip()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(5, 200), min_size=3, max_size=8), st.data())
def test_a_change_in_a_section_moves_no_cut_in_another_one(words, data):
    def page(lengths):
        sections = (
            f"<h2>Part {number}</h2>" + "".join(f"<p>{prose(number * 50 + at, 12)}" for at in range(length // 12 + 1))
            for number, length in enumerate(lengths)
        )  # fmt: skip
        return "<h1>All</h1>" + "".join(sections)

    changed = data.draw(st.integers(0, len(words) - 1))
    others = [*words]
    others[changed] = data.draw(st.integers(0, 300))

    def unchanged(lengths):
        return [
            piece for piece in pieces_of(page(lengths), 40) if f"Part {changed}" not in piece[0]
        ]

    assert unchanged(words) == unchanged(others)


@pytest.mark.parametrize("at", [0, 3, 201, 399])
def test_a_paragraph_that_changes_in_a_long_section_changes_few_pieces(at):
    blocks = [f"<p>{prose(number, 20 + number * 37 % 90)}" for number in range(400)]
    before = pieces_of("".join(blocks), 256)
    blocks[at] = f"<p>{prose(1_000, 77)}"
    after = pieces_of("".join(blocks), 256)
    assert len(after) > 80
    assert 1 <= len({*after} - {*before}) <= 4


def test_a_sentence_that_changes_in_a_long_paragraph_changes_few_pieces():
    sentences = prose(1, 20_000).split(". ")
    before = pieces_of(f"<p>{'. '.join(sentences)}", 128)
    sentences[20:20] = ["A sentence that was not there"]
    after = pieces_of(f"<p>{'. '.join(sentences)}", 128)
    assert 1 <= len({*after} - {*before}) <= 8 < len(after) // 20


def test_pieces_begin_at_headings_and_have_their_path():
    html = (
        "<p>Before.<h1>A</h1><p>Of A.<h3>A.0.1</h3><p>Deep.<h2>A.1</h2><p>Of A.1.<h1>B</h1><h2>B.1</h2>"
        "<p>Of B.1.<h2></h2><h1>C</h1>"
    )
    assert pieces_of(html, 100) == [
        ((), "Before."),
        (("A",), "A\n\nOf A."),
        (("A", "A.0.1"), "A.0.1\n\nDeep."),
        (("A", "A.1"), "A.1\n\nOf A.1."),
        (("B", "B.1"), "B\n\nB.1\n\nOf B.1."),
        (("C",), "C"),
    ]


def test_elements_beside_the_content_have_a_path_of_their_own():
    html = (
        "<h1>A</h1><p>one<nav><h2>Menu</h2>a b<aside>c</aside>d</nav><p>two<h2>A.1</h2><p>three"
        "<footer>e</footer><p>four"
    )
    assert pieces_of(html, 100) == [
        (("A",), "A\n\none"),
        (("Menu",), "Menu\n\na b"),
        ((), "c"),
        (("Menu",), "d"),
        (("A",), "two"),
        (("A", "A.1"), "A.1\n\nthree"),
        ((), "e"),
        (("A", "A.1"), "four"),
    ]


def test_headings_in_lists_begin_no_section():
    html = "<h1>A</h1><ul><li><h3>Card</h3>one<li><h3>Card</h3>two</ul><p>Of A."
    assert [path for path, _ in pieces_of(html, 100)] == [("A",)]


def test_blocks_that_have_room_in_a_piece_are_not_cut():
    code = "\n\n".join(f"line_{number} = 1" for number in range(10))
    html = f"<p>{prose(1, 25)}<pre>{code}</pre><p>{prose(2, 25)}<ul><li>{prose(3, 9)}<li>{prose(4, 9)}</ul>"
    texts = [text for _, text in pieces_of(html, 32)]
    assert [text for text in texts if "line_" in text] == [code]
    assert [text for text in texts if prose(3, 9) in text] == [
        text for text in texts if prose(4, 9) in text
    ]


def test_long_blocks_are_cut_between_rows_items_lines_and_sentences():
    rows = "".join(f"<tr><td>name {number}<td>two words" for number in range(9))
    lines = "\n".join(f"call({number}) with six words in it" for number in range(9))
    html = f"<table>{rows}</table><pre>{lines}</pre><p>{prose(5, 80)}"
    for _, text in pieces_of(html, 16):
        assert text.startswith(("name ", "call(")) or text[0].isupper()
        assert text.endswith(("words", "in it", "."))


def test_words_come_before_letters_and_letters_of_scripts_without_spaces_are_words():
    texts = [text for _, text in pieces_of(f"<p>{prose(1, 60).replace('.', ',')}", 16)]
    assert " ".join(texts) == prose(1, 60).replace(".", ",")
    assert [len(text) for _, text in pieces_of("<p>" + "語" * 40, 16)] == [16, 16, 8]
    sentences = ("語語語語語。", "語語語語語語語。", "語語。")
    assert [text for _, text in pieces_of(f"<p>{''.join(sentences)}", 9)] == [*sentences]


def test_a_text_without_blocks_is_cut_at_its_lines():
    text = "a b\nc d\n\ne f g\nh\n\n\ni"
    pieces = cut_into_pieces(text, [], 3, WORD_COUNTS)
    assert [text[piece.start : piece.end] for piece in pieces] == [
        "a b",
        "c d",
        "e f g",
        "h\n\n\ni",
    ]


def test_the_limit_holds_for_a_tokenizer_that_finds_more_tokens_in_a_text_than_in_its_parts():
    def count(texts):
        return [len(text.split()) + 3 * text.count("\n") for text in texts]

    text, spans = parsed("".join(f"<p>{prose(number, 3)}" for number in range(60)))
    pieces = cut_into_pieces(text, spans, 24, Tokenizer(count, lambda _: 0))
    assert max(piece.tokens for piece in pieces) <= 24
    assert sum(
        count([text[piece.start : piece.end]])[0] == piece.tokens for piece in pieces
    ) == len(pieces)
    assert len(pieces) <= 60 / 2


def test_a_letter_with_more_tokens_than_the_limit_is_a_piece_alone():
    heavy = Tokenizer(lambda texts: [3 * len(text) for text in texts], lambda _: 0)
    pieces = cut_into_pieces("ab cd", [], 2, heavy)
    assert [(piece.start, piece.tokens) for piece in pieces] == [(0, 3), (1, 3), (3, 3), (4, 3)]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("x" * 8_000_000, []),
        ("one two. " * 200_000, []),
        ("語" * 500_000, []),
        ("\n" * 1_000_000 + "x", []),
        (")" * 300_000 + "." + ")" * 300_000, []),
        ("a\n" * 100_000, [("heading", 2 * at, 2 * at + 1, 1 + at % 6, "") for at in range(100_000)]),
        ("a\n" * 50_000, [("list", 0, 100_000, 1, ""), *(("item", 2 * at, 2 * at + 1, 1, "") for at in range(50_000))]),
        ("ab" * 500, [("quote", at, 1_000, 0, "") for at in range(500)]),
    ],
    ids=["line", "sentences", "letters", "line_breaks", "signs", "headings", "items", "nested"],
)  # fmt: skip
def test_hostile_texts_are_read_a_bounded_number_of_times(text, spans):
    read = 0

    def count(texts):
        nonlocal read
        read += sum(map(len, texts))
        return [*map(len, texts)]

    pieces = cut_into_pieces(text, spans, 512, Tokenizer(count, len))
    assert read <= 16 * len(text)
    assert max(piece.tokens for piece in pieces) <= 512
    assert len(pieces) <= len(text) // 256 + len(spans) + 2


def test_empty_texts_have_no_pieces():
    assert (
        cut_into_pieces("", [], 1, WORD_COUNTS)
        == cut_into_pieces(" \n\n ", [("paragraph", 0, 0, 1, "")], 1, WORD_COUNTS)
        == []
    )
