"""Elements that hold the blocks of a page, and what their names and attributes say about the content."""

import re
from collections.abc import Iterator

_TAGS = (
    "body div section article main nav header footer aside form fieldset details figure center address "
    "ul ol menu li dl dd table tr td th blockquote"
)
# Whether a tag opens a container; the names of end tags begin with "/".
CONTAINER_TAGS = {slash + name: not slash for name in _TAGS.split() for slash in ("", "/")}
# ARIA 1.2, 5.3.4: what an element is, whatever its name.
_ROLES = {
    "main": "main",
    "article": "article",
    "navigation": "nav",
    "complementary": "aside",
    "banner": "header",
    "contentinfo": "footer",
}
_MAX_ATTRIBUTE_CHARS = 1_000
_MAX_REMEMBERED = 16_384
_VALUES = re.compile(r"\s(?:(role)|class|id|itemprop)=\"([^\"]*)\"")
# "articleBody", "article-body" and "ArticleBody2" have the same words.
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class Containers:
    """The elements around the blocks of a text, outer ones first.

    Attributes:
        parents: Number of the container around each; -1: none.
        tags: Their names.
        attributes: Their attributes as lexbor writes them.
        starts: Length of the text where each begins.
        ends: Length of the text where each ends.
    """

    __slots__ = ("_open", "attributes", "ends", "parents", "starts", "tags")

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._open = -1

    def open(self, tag: str, attributes: str, at: int) -> None:
        """Begins a container at a length of the text."""
        self.parents.append(self._open)
        self._open = len(self.tags)
        self.tags.append(tag)
        self.attributes.append(attributes)
        self.starts.append(at)
        self.ends.append(at)

    def close(self, at: int) -> None:
        """Ends the container that began last and is open."""
        if self._open >= 0:
            self.ends[self._open] = at
            self._open = self.parents[self._open]


def attribute_words(attributes: str) -> Iterator[str]:
    """Yields what attributes say about the content of an element: its role, and words of class, id and itemprop.

    >>> list(attribute_words(' role="main" class="articleBody post_2"'))
    ['<main>', 'article', 'body', 'post']
    """
    for role, value in _VALUES.findall(attributes[:_MAX_ATTRIBUTE_CHARS]):
        if not role:
            yield from map(str.lower, _WORDS.findall(value))
        elif value in _ROLES:
            yield f"<{_ROLES[value]}>"


class ContainerMarks:
    """Finds which of some words hold for a container, or for one around it.

    Args:
        words: Names of elements, such as ``<main>``, and words of attributes. In a result bit n is for word n.
    """

    def __init__(self, words: list[str]) -> None:
        self._bits = {word: 1 << number for number, word in enumerate(words)}
        self._of_tags = {word[1:-1]: bit for word, bit in self._bits.items() if word[0] == "<"}
        self._of_attributes: dict[str, int] = {}

    def of(self, containers: Containers) -> list[int]:
        """Returns the words that hold for each container; those of the body itself do not count."""
        of_tags, of_attributes = self._of_tags, self._of_attributes
        if len(of_attributes) > _MAX_REMEMBERED:
            of_attributes.clear()
        marks = list[int]()
        rows = zip(containers.parents, containers.tags, containers.attributes, strict=True)
        for parent, tag, attributes in rows:
            if parent < 0:
                marks.append(0)
                continue
            mark = marks[parent] | of_tags.get(tag, 0)
            if attributes:
                found = of_attributes.get(attributes)
                mark |= self._find(attributes) if found is None else found
            marks.append(mark)
        return marks

    def _find(self, attributes: str) -> int:
        found = 0
        for word in attribute_words(attributes):
            found |= self._bits.get(word, 0)
        if len(attributes) <= _MAX_ATTRIBUTE_CHARS:
            self._of_attributes[attributes] = found
        return found
