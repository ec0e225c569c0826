"""Where the text of a field comes from: CSS, XPath, structured data, meta elements, the URL."""

import functools
from typing import Any, NamedTuple

from ..pages.page import collapse
from .css_paths import CssPath, read_css
from .extracted_page import MAX_TEXT_CHARS, ExtractedPage, element_text, own_texts
from .item_paths import PATH_SYNTAXES, ItemPath, read_item_path

CSS, XPATH, META, PAGE_URL = "css", "xpath", "meta", "url"
SOURCE_KINDS = (CSS, XPATH, *PATH_SYNTAXES, META, PAGE_URL)
MAX_TAKEN_TEXTS = 1_000  # that one source brings
MAX_XPATH_CHARS = 1_000
NEEDS_PARSEL = "xpath needs parsel: pip install 'nutbeam[xpath]'"


class FieldSource(NamedTuple):
    """A source.

    Attributes:
        kind: One of ``SOURCE_KINDS``.
        text: What follows the kind.
        css: The selector, if the kind is ``css``.
        path: The path, if the kind is one of structured data.
    """

    kind: str
    text: str
    css: CssPath | None = None
    path: ItemPath | None = None

    @property
    def label(self) -> str:
        """The source as rules write it."""
        return f"{self.kind}:{self.text}"

    @property
    def in_items(self) -> bool:
        """Whether it is searched in the item of a page, and not in all of it."""
        return self.kind in (CSS, XPATH)

    def find_items(self, page: ExtractedPage) -> list[Any]:
        """Returns the items of a page, in its order."""
        if self.css is not None:
            return [node for node, _ in page.select(self.css)]
        page.check_time()
        return list(page.selector.xpath(self.text))

    def texts(self, page: ExtractedPage, item: Any = None, *, as_markup: bool = False) -> list[str]:
        """Returns the texts that the source has.

        Args:
            page: The page.
            item: The item in which is searched; None: the page.
            as_markup: Whether elements are wanted as HTML.
        """
        if self.css is not None:
            return _css_texts(page, self.css, item, as_markup)
        if self.path is not None:
            page.check_time()
            return self.path.texts(page.items)[:MAX_TAKEN_TEXTS]
        if self.kind == XPATH:
            return _xpath_texts(page, self.text, item, as_markup)
        return [page.url] if self.kind == PAGE_URL else _meta_texts(page, self.text)


def _css_texts(page: ExtractedPage, css: CssPath, item: Any, as_markup: bool) -> list[str]:
    texts: list[str] = []
    for node, attribute in page.select(css, item):
        if attribute == "::text":
            texts += own_texts(node)
        elif attribute:
            value = node.attributes.get(attribute, "")
            texts.append((value or "").strip()[:MAX_TEXT_CHARS])
        else:
            texts.append((node.html or "")[:MAX_TEXT_CHARS] if as_markup else element_text(node))
        if len(texts) >= MAX_TAKEN_TEXTS:
            break
    return texts[:MAX_TAKEN_TEXTS]


def _xpath_texts(page: ExtractedPage, xpath: str, item: Any, as_markup: bool) -> list[str]:
    page.check_time()
    results = (page.selector if item is None else item).xpath(xpath)
    texts = []
    for result in results[:MAX_TAKEN_TEXTS]:
        is_element = not isinstance(result.root, str)
        # Of an element the text in it, as string() in XPath.
        text = result.get() if as_markup or not is_element else result.xpath("string()").get()
        texts.append(str(text or "")[:MAX_TEXT_CHARS])
    return texts if as_markup else [collapse(text) for text in texts]


def _meta_texts(page: ExtractedPage, name: str) -> list[str]:
    page.check_time()
    return [
        (node.attributes.get("content") or "").strip()[:MAX_TEXT_CHARS]
        for node in page.tree.css("meta[content]")
        if name
        in (
            node.attributes.get("name"),
            node.attributes.get("property"),
            node.attributes.get("itemprop"),
        )
    ][:MAX_TAKEN_TEXTS]


def read_source(text: str) -> FieldSource:
    """Reads a source as rules write it, such as ``css:.price`` or ``json-ld:Product.name``.

    Raises:
        ValueError: It is none; the message says why.

    >>> read_source("meta:og:title").text
    'og:title'
    """
    kind, colon, rest = text.partition(":")
    if not colon or kind not in SOURCE_KINDS:
        raise ValueError(
            f"a source begins with {', '.join(f'{each}:' for each in SOURCE_KINDS[:-1])} or url:"
        )
    return source_of(kind, rest.strip())


def source_of(kind: str, text: str) -> FieldSource:
    """Checks a source of a kind.

    Raises:
        ValueError: It is none; the message says why.
    """
    if not text and kind != PAGE_URL:
        raise ValueError(f"{kind}: has nothing after it")
    if text and kind == PAGE_URL:
        raise ValueError("url: is the URL of the page, and has nothing after it")
    if kind == CSS:
        return FieldSource(kind, text, css=read_css(text))
    if kind == XPATH:
        _check_xpath(text)
        return FieldSource(kind, text)
    return FieldSource(
        kind, text, path=read_item_path(kind, text) if kind in PATH_SYNTAXES else None
    )


@functools.cache
def _check_xpath(text: str) -> None:
    try:
        import parsel
    except ModuleNotFoundError:
        raise ValueError(NEEDS_PARSEL) from None
    if len(text) > MAX_XPATH_CHARS:
        raise ValueError(f"it is longer than {MAX_XPATH_CHARS:,} characters")
    try:
        results = parsel.Selector(text="<p/>").xpath(text)
    except ValueError as error:
        raise ValueError(f"it is no XPath: {str(error).partition(' in ')[0].lower()}") from None
    del results
