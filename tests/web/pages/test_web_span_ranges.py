"""Parts of a text have spans of their own: what is cut goes on as what it was."""

import pytest
from chunked_texts import parsed

from nutbeam.web.pages.markdown import markdown_of
from nutbeam.web.pages.span_ranges import spans_of_ranges


def parts_of(html, *starts):
    """Returns the Markdown of the parts of a page that begin with these words."""
    text, spans = parsed(html)
    places = [text.index(start) for start in starts]
    ranges = [
        (start, len(text[:end].rstrip())) for start, end in zip(places, [*places[1:], len(text)], strict=True)
    ]  # fmt: skip
    parts = spans_of_ranges(spans, ranges)
    return [markdown_of(text, part, "http://a.example/") for part in parts]


@pytest.mark.parametrize(
    ("html", "starts", "expected"),
    [
        ("<p>a <b>b c</b> d", ("a", "c"), ["a **b**", "**c** d"]),
        ("<p>see <a href=x>the long page</a>", ("see", "long"),
         ["see [the](http://a.example/x)", "[long page](http://a.example/x)"]),
        ("<ol start=3><li>a<li>b<li>c d</ol><p>e", ("a", "b", "d"), ["3. a", "4. b\n5. c", "5. d\n\ne"]),
        ("<ol reversed start=8><li>a<li>b<li value=2>c d</ol>", ("a", "b", "d"), ["8. a", "7. b\n2. c", "2. d"]),
        ("<ul><li>a<ul><li>b<li>c</ul><li>d</ul>", ("a", "c", "d"), ["- a\n  - b", "- - c", "- d"]),
        ("<blockquote><p>a<p>b</blockquote><p>c", ("a", "b"), ["> a", "> b\n\nc"]),
        ("<pre><code class=language-c>a\n\nb</code></pre>", ("a", "b"), ["```c\na\n```", "```c\nb\n```"]),
        ("<table><caption>T</caption><tr><th>N<th>V<tr><td>a<td>1<tr><td>b<td>2</table>", ("T", "b"),
         ["T\n\n| N | V |\n| --- | --- |\n| a | 1 |", "| N | V |\n| --- | --- |\n| b | 2 |"]),
        ("<table><tr><td>a<td>1<tr><td>b<td>2</table>", ("a", "b"),
         ["|  |  |\n| --- | --- |\n| a | 1 |", "|  |  |\n| --- | --- |\n| b | 2 |"]),
        ("<table><tr><th>N<th>V<tr><td>a b<td>1</table>", ("N", "b"),
         ["| N | V |\n| --- | --- |\n| a |  |", "| N | V |\n| --- | --- |\n| b | 1 |"]),
        ("<p>a<hr><p>b", ("a", "b"), ["a", "b"]),
    ],
    ids=["mark", "link", "numbers", "backwards", "nested", "quote", "code", "headings", "no_headings", "row", "rule"],
)  # fmt: skip
def test_each_part_is_markdown_of_its_own(html, starts, expected):
    assert parts_of(html, *starts) == expected


def test_a_row_of_very_long_headings_is_not_repeated():
    html = f"<table><tr><th>{'N' * 1_100}<tr><td>a<tr><td>b</table>"
    assert parts_of(html, "a", "b")[1] == "|  |\n| --- |\n| b |"


def test_all_spans_of_a_text_are_those_of_the_range_of_all():
    text, spans = parsed("<h1>A</h1><ol><li>a <b>b</b><li>c</ol><table><tr><th>x<tr><td>y</table>")
    assert next(spans_of_ranges(spans, [(0, len(text))])) == spans


def test_only_the_inner_spans_of_deep_nesting_go_on():
    spans = [("quote", 0, 100, 0, "")] * 300 + [("paragraph", 0, 100, 1, "")]
    _, second = spans_of_ranges(spans, [(0, 50), (50, 100)])
    assert len(second) == 32
    assert second[-1] == ("paragraph", 50, 100, 1, "")
