"""Signatures against straight transcriptions of what they are defined to be."""

import hashlib
import math
import random
import re
import unicodedata

import numpy as np
import pytest
from here import ROOT
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.web.content.legibility import SPACELESS_RANGES
from nutbeam.web.content.signature import (
    SignatureOptions,
    md5,
    signature_of,
    simhash,
    text_profile,
)

DOCS = ROOT / "docs"
TEXTS = [path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))]


def test_is_the_md5_of_the_raw_body():
    assert md5(b"a body", "http://example.com/") == hashlib.md5(b"a body").digest()


def test_empty_bodies_differ_by_url():
    assert md5(b"", "http://example.com/a") == hashlib.md5(b"http://example.com/a").digest()
    assert md5(b"", "http://example.com/\udc80")  # never fails


def profile_lines(text, min_token_len=2, quant_rate=0.01):
    """Nutch's TextProfileSignature word for word, as Java does it: a character, that is a UTF-16 unit, at a time."""
    units = [chr(n) for n in np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")]
    counts, token = {}, ""
    for unit in [*units, " "]:
        if unicodedata.category(unit) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd"):
            token += "i" if unit == "\u0130" else unit.lower()
            continue
        if len(token) > min_token_len:
            counts[token] = counts.get(token, 0) + 1
        token = ""
    highest = max(counts.values(), default=0)
    quant = math.floor(float(np.float32(highest) * np.float32(quant_rate)) + 0.5)
    if quant < 2:
        quant = 2 if highest > 1 else 1
    rounded = {token: count // quant * quant for token, count in counts.items()}
    kept = {token: count for token, count in rounded.items() if count >= quant}
    return [f"{token} {kept[token]}" for token in sorted(kept, key=lambda t: (-kept[t], t))]


def test_text_profile_by_hand():
    # "the" 3, "cat" 2, "dog" 1; "a" and "of" are too short; counts below 2 go.
    text = "The cat, THE dog & the CAT: a a a a of of."
    assert profile_lines(text) == ["cat 2", "the 2"]
    assert text_profile(text) == hashlib.md5(b"cat 2\nthe 2").digest()
    assert text_profile("one two three") == hashlib.md5(b"one 1\nthree 1\ntwo 1").digest()
    # 150 and 250 times 0.01 is a half, which is rounded up.
    many = "word " * 250 + "rare " * 2 + "some " * 7
    assert text_profile(many) == hashlib.md5(b"word 249\nsome 6").digest()


@pytest.mark.parametrize("options", [{}, {"min_token_len": 0}, {"quant_rate": 0.2},
                                     {"min_token_len": 5, "quant_rate": 0.0}])  # fmt: skip
def test_text_profile_of_real_texts_is_that_of_its_definition(options):
    for text in TEXTS:
        lines = "\n".join(profile_lines(text, **options))
        assert text_profile(text, **options) == hashlib.md5(lines.encode()).digest()


@given(
    st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("aAßİΣςǅ٣²Ⅷ _\U0001d400 "))
)
def test_text_profile_of_any_text_is_that_of_its_definition(text):
    lines = "\n".join(profile_lines(text, 0))
    assert text_profile(text, 0) == (hashlib.md5(lines.encode()).digest() if lines else None)


def plain_simhash(text):
    """The definition, a bit at a time."""
    mask = (1 << 64) - 1

    def mixed(number):
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & mask
        number = (number ^ number >> 27) * 0x94D049BB133111EB & mask
        return number ^ number >> 31

    hashes = [
        int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())
        for word in re.findall(rf"[{SPACELESS_RANGES}]|[^\W{SPACELESS_RANGES}]+", text.lower())
    ]
    runs = set()
    for at in range(max(1, len(hashes) - 2)):
        run = hashes[at]
        for number in hashes[at + 1 : at + 3]:
            run = mixed(run) + number & mask
        runs.add(mixed(run))
    votes = [sum(run >> bit & 1 for run in runs) for bit in range(63, -1, -1)]
    return int("".join("1" if 2 * vote > len(runs) else "0" for vote in votes), 2).to_bytes(8)


DEFINED = [
    "one",
    "one two",
    "one two three",
    "a b c d a b c d",
    "日本語 text です。",
    "ที่นี่",
    "한국어 글",
    *TEXTS[:3],
]


@pytest.mark.parametrize("text", DEFINED)
def test_simhash_is_that_of_its_definition(text):
    assert simhash(text) == plain_simhash(text)


def distance(first, second):
    """Returns the number of bits in which two SimHashes differ."""
    return (int.from_bytes(first) ^ int.from_bytes(second)).bit_count()


@pytest.mark.long
def test_simhashes_of_texts_that_are_nearly_equal_are_near():
    chosen = random.Random(5)
    long = [text for text in TEXTS if len(text.split()) > 500]
    assert len(long) >= 10
    far = []
    for text in long:
        words = text.split()
        for changed, most in ((0, 0), (1, 7), (3, 12)):  # of 500 words and more
            edited = list(words)
            for at in chosen.sample(range(len(words)), changed):
                edited[at] = "changed"
            far.append(distance(simhash(text), simhash(" ".join(edited))))
            assert far[-1] <= most
    assert sum(far) / len(far) < 2
    hashes = [simhash(text) for text in long]
    pairs = [(a, b) for at, a in enumerate(hashes) for b in hashes[:at]]
    assert min(distance(a, b) for a, b in pairs) > 15


KANJI, KANA = [chr(0x4E00 + n) for n in range(2_000)], [chr(0x3042 + n) for n in range(80)]


@pytest.mark.parametrize("letters", [KANJI, KANJI[:400] + 4 * KANA], ids=["chinese", "japanese"])
def test_simhashes_of_texts_without_spaces_are_near_if_few_letters_differ(letters):
    chosen = random.Random(5)
    texts = [chosen.choices(letters, k=2_000) for _ in range(12)]
    for text in texts:
        text[::20] = "。" * 100
    hashes = [simhash("".join(text)) for text in texts]
    for text, unchanged in zip(texts, hashes, strict=True):
        text[1001] = "龍"
        assert distance(unchanged, simhash("".join(text))) <= 5
    pairs = [(a, b) for at, a in enumerate(hashes) for b in hashes[:at]]
    assert min(distance(a, b) for a, b in pairs) > 15


def test_without_words_there_is_no_simhash():
    assert simhash(" -- ... ") is None
    options = SignatureOptions(signature="simhash")
    assert signature_of(b"<p>--", "--", "", options) == md5(b"<p>--", "")
    assert len(signature_of(b"<p>a", "a", "", options)) == 8


@pytest.mark.parametrize("kind", ["md5", "text_md5", "text_profile", "simhash"])
def test_pages_without_text_are_compared_by_body(kind):
    options = SignatureOptions(signature=kind)
    assert signature_of(b"body", "", "http://a.com/", options) == md5(b"body", "")
    assert signature_of(b"", "", "http://a.com/", options) == md5(b"", "http://a.com/")
    assert signature_of(b"body", "half a pair: \ud800", "", options)  # never fails


@pytest.mark.parametrize(
    ("kind", "text"),
    [("text_md5", " "), ("text_profile", "a b"), ("text_profile", "-- !"), ("simhash", "-- !")],
)
def test_a_text_in_which_nothing_counts_is_as_none(kind, text):
    options = SignatureOptions(signature=kind)
    assert signature_of(b"<b>body", text, "", options) == md5(b"<b>body", "")
    assert signature_of(b"", text, "http://a.com/", options) == md5(b"", "http://a.com/")


def test_options_of_the_profile_are_used():
    words = {"text_profile_min_word_len": 3, "text_profile_quant_rate": 0.5}
    options = SignatureOptions(signature="text_profile", **words)
    text = "long longer two two two long"
    assert signature_of(b"", text, "", options) == text_profile(text, 3, 0.5)
    assert text_profile(text, 3, 0.5) != text_profile(text)
