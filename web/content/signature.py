"""Computes signatures: pages with equal signatures are unchanged, or duplicates."""

import functools
import hashlib
import re
import unicodedata

import numpy as np
from numpy.typing import NDArray

from ..base.dataclass import dataclass
from ..base.options import option
from .legibility import SPACELESS_RANGES

_WORD = re.compile(r"\w+")
# Without spaces between words, a sentence would be one word: each letter counts as one instead.
_WORD_OR_LETTER = rf"[{SPACELESS_RANGES}]|[^\W{SPACELESS_RANGES}]+"
_SPACELESS = f"[{SPACELESS_RANGES}]"
_compiled = functools.cache(re.compile)  # when they are needed: each takes milliseconds
_SHINGLE_WORDS = 3
_LETTERS_AND_DIGITS = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd"})


@dataclass(frozen=True)
class SignatureOptions:
    """Options of comparing pages."""

    GROUP = "parse"

    signature: str = option(
        "md5",
        "The fingerprint by which pages are compared: md5 of the body; text_md5 of the title and the "
        "text, in which all white space is alike; text_profile, their frequent words; simhash of both, "
        "which differs in few bits where pages differ in few words. A page without text has the md5 of "
        "its body.",
        choices=("md5", "text_md5", "text_profile", "simhash"),
        nutch="db.signature.class",
    )
    text_profile_min_word_len: int = option(
        2,
        "With text_profile: words up to this length do not count.",
        unit="characters",
        nutch="db.signature.text_profile.min_token_len",
        minimum=0,
    )
    text_profile_quant_rate: float = option(
        0.01,
        "With text_profile: counts of words are rounded down to this share of the highest.",
        nutch="db.signature.text_profile.quant_rate",
        minimum=0.0,
        maximum=1.0,
    )


def signature_of(body: bytes, text: str, url: str, options: SignatureOptions) -> bytes:
    """Returns the signature of a page: 16 bytes, or 8 bytes for ``simhash``.

    Args:
        body: The stored body; the text if there is no body.
        text: The title and the stored text; or nothing if there is no text.
        url: Its URL, used instead of an empty body.
        options: The kind of signature.

    >>> signature_of(b"<p>hello", "hello", "", SignatureOptions()) == md5(b"<p>hello", "")
    True
    """
    kind = options.signature
    if kind == "md5" or not text or text.isspace():
        return md5(body, url)
    if kind == "text_md5":
        return md5(" ".join(text.split()).encode("utf-8", "replace"), url)
    if kind == "text_profile":
        profile = text_profile(
            text, options.text_profile_min_word_len, options.text_profile_quant_rate
        )
        return profile or md5(body, url)
    return simhash(text) or md5(body, url)


def md5(body: bytes, url: str) -> bytes:
    """Returns the MD5 of a body as it was stored: 16 bytes, Nutch's MD5Signature.

    For an empty body it uses the URL, so that empty pages are not duplicates of
    each other.

    >>> md5(b"<p>hello", "http://example.com/").hex()
    'fef204c8ad5edb6ecf33217b26aff0b9'
    >>> md5(b"", "http://example.com/a") == md5(b"", "http://example.com/b")
    False
    """
    # Not for security, only to compare contents; so FIPS builds allow it.
    return hashlib.md5(body or url.encode("utf-8", "replace"), usedforsecurity=False).digest()


def text_profile(text: str, min_token_len: int = 2, quant_rate: float = 0.01) -> bytes | None:
    """Returns the MD5 of a text's frequent words: Nutch's TextProfileSignature.

    Order, punctuation, case and rare words have no effect. Returns None if no word counts; in that
    case Nutch uses the MD5 of an empty text, so that all such pages are duplicates.

    Args:
        text: Text of the page.
        min_token_len: Words up to this length do not count.
        quant_rate: Counts are rounded down to this share of the highest.

    >>> text_profile("One fish, two fish: red fish!") == text_profile("Blue fish fish fish.")
    True
    """
    counts: dict[str, int] = {}
    for word in text.translate(_PROFILE_CHARS).split(" "):
        if len(word) > min_token_len:
            counts[word] = counts.get(word, 0) + 1
    most = max(counts.values(), default=0)
    # Java's Math.round of a float.
    quant = int(np.floor(np.float64(np.float32(most) * np.float32(quant_rate)) + 0.5))
    if quant < 2:
        quant = 2 if most > 1 else 1
    profile = [(-(n // quant) * quant, word) for word, n in counts.items() if n >= quant]
    if not profile:
        return None
    lines = "\n".join(f"{word} {-count}" for count, word in sorted(profile))
    return hashlib.md5(lines.encode(), usedforsecurity=False).digest()


class _ProfileChars(dict[int, str]):
    """The replacement of a character: Java's lower case of letters and digits, else a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = " "
        # Java works on UTF-16: a character of two units is no letter there.
        if code <= 0xFFFF and unicodedata.category(char) in _LETTERS_AND_DIGITS:
            self[code] = char.lower()[0]  # one for one; only U+0130 becomes two
        return self[code]


_PROFILE_CHARS = _ProfileChars()


def simhash(text: str) -> bytes | None:
    """Returns the 64-bit SimHash of a text's runs of three words; None without a word.

    In scripts without spaces between words, such as those of Chinese, Japanese and Thai, each letter
    counts as a word. The hash of each distinct run votes on every bit. A text of n words has n - 2
    runs, and a changed word changes three of them. So most bits are equal for long texts
    that are nearly equal.

    >>> simhash("one two three four") == simhash("One, two - three. FOUR!")
    True
    """
    has_spaces = text.isascii() or _compiled(_SPACELESS).search(text) is None
    words = (_WORD if has_spaces else _compiled(_WORD_OR_LETTER)).findall(text.lower())
    if not words:
        return None
    hashes = _word_hashes(words)
    runs = hashes[: max(1, len(hashes) - _SHINGLE_WORDS + 1)].copy()
    for place in range(1, min(_SHINGLE_WORDS, len(hashes))):
        runs = mix_bits(runs) + hashes[place : place + len(runs)]
    runs = np.unique(mix_bits(runs))
    votes = np.unpackbits(runs.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0)
    return np.packbits(2 * votes > len(runs)).tobytes()


def _word_hashes(words: list[str]) -> NDArray[np.uint64]:
    numbers = {
        word: int.from_bytes(
            hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
        )
        for word in set(words)
    }
    return np.array([numbers[word] for word in words], dtype=np.uint64)


def mix_bits(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spreads each number over all bits: the end of SplitMix64. Different numbers stay different.

    >>> mix_bits(np.array([0, 1], np.uint64)).tolist()
    [0, 6238072747940578789]
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
