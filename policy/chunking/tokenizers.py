"""What counts the tokens of texts: characters, words, a tokenizer of a library, or one of a plug-in."""

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.imports import check_library
from ...web.content.legibility import SPACELESS_RANGES
from ...web.plugins.call_limits import CallTookTooLong, call_within
from ...web.plugins.plugin_files import fault_text, plugin_label
from ...web.plugins.plugins import PluginGroup, callable_plugin, load_plugin

BUILT_IN_TOKENIZERS = ("words", "characters")
TOKENIZERS = PluginGroup("nutbeam.tokenizers", "tokenizer", BUILT_IN_TOKENIZERS, "chunk_tokenizer")
_LONGEST_WORD = 64  # characters
# Each letter of a script without spaces is a word, and so is each part of a very long word.
_WORD = f"[{SPACELESS_RANGES}]|[^\\s{SPACELESS_RANGES}]{{1,{_LONGEST_WORD}}}"
_compiled = functools.cache(re.compile)  # when it is needed: it takes milliseconds
_LONGEST_S = 600.0  # of a call of a plug-in


@dataclass(frozen=True)
class Tokenizer:
    """What counts tokens.

    Attributes:
        count: Returns the number of tokens of each text.
        gap: Returns how many tokens white space between two texts adds when they are joined.
    """

    count: Callable[[Sequence[str]], Sequence[int]]
    gap: Callable[[str], int]


def count_words(text: str) -> int:
    """Returns the number of words of a text.

    >>> count_words("Two words"), count_words("日本語"), count_words("x" * 65)
    (2, 3, 2)
    """
    if not text.isascii():
        return sum(1 for _ in _compiled(_WORD).finditer(text))
    words = text.split()
    return len(words) + sum(
        (len(word) - 1) // _LONGEST_WORD for word in words if len(word) > _LONGEST_WORD
    )


def _count_line_breaks(white_space: str) -> int:
    return int("\n" in white_space)


CHARACTER_COUNTS = Tokenizer(lambda texts: [*map(len, texts)], len)
WORD_COUNTS = Tokenizer(lambda texts: [*map(count_words, texts)], lambda _: 0)


def tokenizer_of(name: str, file: str = "") -> Tokenizer:
    """Returns a tokenizer by its name, or that of a file.

    Args:
        name: ``words``, ``characters``, or the name of a plug-in.
        file: A file of Hugging Face's library, ``tokenizer.json``; it counts instead of ``name``.

    Raises:
        UsageError: There is no such plug-in, or it cannot be imported.
        ValueError: The file cannot be read, or the library is not installed.
    """
    if file:
        return _tokenizer_of_file(file)
    if name in BUILT_IN_TOKENIZERS:
        return CHARACTER_COUNTS if name == "characters" else WORD_COUNTS
    return _tokenizer_of_plugin(name, load_plugin(TOKENIZERS, name))


@functools.cache
def _tokenizer_of_file(file: str) -> Tokenizer:
    check_library("tokenizers", "--tokenizer_file", "tokenizers")
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_file(file)
    except Exception as error:  # the library raises nothing more special
        raise ValueError(f"--tokenizer_file {file!r} cannot be read: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(texts: Sequence[str]) -> list[int]:
        encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]

    return Tokenizer(count, _count_line_breaks)


@functools.cache
def _tokenizer_of_plugin(name: str, function: Callable[..., Any]) -> Tokenizer:
    what = f"tokenizer {plugin_label(name)!r}"
    tokenize = callable_plugin(function, what)

    def count(texts: Sequence[str]) -> Sequence[int]:
        if not texts:
            return []
        try:
            return _checked(
                call_within(lambda: tokenize(list(texts)), _LONGEST_S, lambda: what), len(texts)
            )
        except (Exception, SystemExit, CallTookTooLong) as error:
            raise UserError(f"{what} failed: {fault_text(error, function)}") from error

    return Tokenizer(count, _count_line_breaks)


def _checked(counts: Any, number: int) -> list[int]:
    """Returns the result of a plug-in.

    Raises:
        ValueError: It is no list of numbers, one per text.
    """
    numbers = list(counts)
    if len(numbers) != number:
        raise ValueError(f"expected a number per text, {number:,}, got {len(numbers):,}")
    for value in numbers:
        if int(value) != value or value < 0:
            raise ValueError(f"expected numbers of tokens, 0 or more, got {value!r}")
    return [int(value) for value in numbers]
