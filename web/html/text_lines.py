"""Divides the text of an HTML page into lines, one for each block, as Common Crawl's WET files have them."""

from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser

from ..pages.page import collapse_long
from .tree import NOT_TEXT, flatten, page_text, parse_tree

# Elements that are blocks by themselves (HTML 15.3), and breaks.
_BLOCKS = (
    "address,article,aside,blockquote,body,br,button,caption,center,dd,details,dialog,dir,div,dl,dt,fieldset,"
    "figcaption,figure,footer,form,h1,h2,h3,h4,h5,h6,header,hgroup,hr,legend,li,main,menu,nav,"
    "noscript,ol,option,p,pre,search,section,summary,table,tbody,textarea,tfoot,thead,title,tr,ul,video"
)
_END = "\x02"  # of a line: no white space, and in no text that people write


def text_lines(utf8: bytes) -> tuple[list[str], list[str]]:
    """Returns the lines of the head of a page, which is its title, and of its body.

    Joined by spaces they are the text that parsing takes of the same page.

    Args:
        utf8: The page in UTF-8, without declarations in its document type.

    >>> text_lines(b"<title>T</title>a<p>b <i>c</i><ul><li>d<li>e</ul>")
    (['T'], ['a', 'b c', 'd', 'e'])
    """
    document = parse_tree(flatten(utf8))
    for block in document.css(_BLOCKS):
        block.insert_before(_END)
        block.insert_after(_END)
    whole = list(_lines(document, with_head=True))
    body = list(_lines(document, with_head=False))
    return whole[: len(whole) - len(body)], body


def _lines(document: LexborHTMLParser, *, with_head: bool) -> Iterator[str]:
    text = collapse_long(page_text(document, document.css(",".join(NOT_TEXT)), with_head))
    return filter(None, (line.strip() for line in text.split(_END)))
