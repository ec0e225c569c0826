"""The lines of a page for WET files: together they are its text."""

import pytest

from nutbeam.web.html.html import parse_html
from nutbeam.web.html.text_lines import text_lines
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions


@pytest.mark.parametrize(
    ("document", "lines"),
    [
        (b"<title>T</title>a<p>b <i>c</i><ul><li>d<li>e</ul>", "T|a|b c|d|e"),
        (b"<body>\xc3\xa4\xc2\xa0b<br>c<br/>d<hr>e</body>", "ä b|c|d|e"),
        (b"<table><tr><td>1<td>2<tr><td>3</table>", "1 2|3"),
        (b"<a href=x>l<p>k</p></a> m <iframe>f</iframe><noscript>n</noscript>", "l|k|m|n"),
        (b"<head><noscript>h</noscript><title>t</title></head><script>s()</script><style>x</style>", "h|t"),
        (b"<template>x<p>y</template>z<pre>p\nq</pre><svg><title>s</title></svg>", "z|p q|s"),
        (b"<div>" * 3000 + b"deep" + b"</div>" * 3000, "deep"),
        (b"", ""),
    ],
    ids=lambda value: value[:40],
)  # fmt: skip
def test_the_lines_of_a_page_are_its_blocks_and_together_its_text(document, lines):
    head, body = text_lines(document)
    assert "|".join([*head, *body]) == lines
    page = parse_html(Source("http://a.com/", document, "text/html; charset=utf-8"), ParseOptions())
    assert " ".join([*head, *body]) == page.text
