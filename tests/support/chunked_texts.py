"""Texts with spans, as parsed pages have them, and their pieces."""

import random

from nutbeam.policy.chunking.text_pieces import cut_into_pieces
from nutbeam.policy.chunking.tokenizers import WORD_COUNTS
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document

_WORDS = [
    "river",
    "stone",
    "bridge",
    "mill",
    "garden",
    "tower",
    "market",
    "field",
    "harbour",
    "valley",
    "road",
    "winter",
]


def parsed(html):
    """Returns the text and the spans of a page."""
    page = parse_document(Source("http://a.example/", html.encode(), "text/html"), ParseOptions())
    return page.text, page.spans


def prose(seed, words):
    """Returns sentences with a number of words; a seed always gives the same ones."""
    chance = random.Random(seed)
    sentences, left = [], words
    while left:
        length = min(left, chance.randint(4, 14))
        sentence = " ".join(chance.choices(_WORDS, k=length))
        sentences.append(f"{sentence.capitalize()}.")
        left -= length
    return " ".join(sentences)


def pieces_of(html, limit, tokenizer=WORD_COUNTS):
    """Returns (heading path, text) of each piece of a page."""
    text, spans = parsed(html)
    pieces = cut_into_pieces(text, spans, limit, tokenizer)
    return [(piece.heading_path, text[piece.start : piece.end]) for piece in pieces]
