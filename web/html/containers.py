"""Elements that hold the blocks of a page, and what their names and attributes say about the content."""

import re
from collections.abc import Sequence
from typing import NamedTuple

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


class Containers(NamedTuple):
    """The elements around the blocks of a text, outer ones first.

    Attributes:
        parents: Number of the container around each; -1: none.
        tags: Their names.
        attributes: Their attributes as lexbor writes them.
        starts: Length of the text where each begins.
        ends: Length of the text where each ends.
    """

    parents: list[int]
    tags: list[str]
    attributes: list[str]
    starts: list[int]
    ends: list[int]


def containers_of(
    names: Sequence[str],
    attributes: Sequence[str],
    leaf_places: Sequence[tuple[int, int]],
) -> Containers:
    """Returns the containers among some tags.

    Args:
        names: Those of the tags; empty for one that is passed over.
        attributes: Those of the tags.
        leaf_places: For each block of text, the tag at which it was written, and the length after it.
    """
    containers = Containers([], [], [], [], [])
    around, length, leaves = -1, 0, iter([*leaf_places, (len(names), 0)])
    leaf_tag, leaf_end = next(leaves)
    for number in [number for number, name in enumerate(names) if name in CONTAINER_TAGS]:
        while leaf_tag <= number:
            length = leaf_end
            leaf_tag, leaf_end = next(leaves)
        name = names[number]
        if CONTAINER_TAGS[name]:
            containers.parents.append(around)
            around = len(containers.tags)
            containers.tags.append(name)
            containers.attributes.append(attributes[number])
            containers.starts.append(length)
            containers.ends.append(length)
        elif around >= 0:
            containers.ends[around] = length
            around = containers.parents[around]
    return containers


def name_words(name: str) -> list[str]:
    """Returns the words in a name of a class, an id or a property.

    >>> name_words("articleBody-post_2")
    ['article', 'body', 'post']
    """
    return list(map(str.lower, _WORDS.findall(name)))


class ContainerMarks:
    """Finds which of some words hold for a container, or for one around it.

    Args:
        words: Names of elements, such as ``<main>``, and words of attributes. In a result bit n is for word n.
    """

    def __init__(self, words: list[str]) -> None:
        self._bits = {word: 1 << number for number, word in enumerate(words)}
        self._of_tags = {word[1:-1]: bit for word, bit in self._bits.items() if word[0] == "<"}
        self._of_attributes: dict[str, int] = {}
        self._of_names: dict[str, int] = {}  # names are in many attributes

    def of(self, containers: Containers) -> list[int]:
        """Returns the words that hold for each container; those of the body itself do not count."""
        of_tags, of_attributes = self._of_tags, self._of_attributes
        for remembered in (of_attributes, self._of_names):
            if len(remembered) > _MAX_REMEMBERED:
                remembered.clear()
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
        for role, value in _VALUES.findall(attributes[:_MAX_ATTRIBUTE_CHARS]):
            if role:
                found |= self._bits.get(f"<{_ROLES.get(value)}>", 0)
                continue
            for name in value.split():
                mark = self._of_names.get(name)
                found |= self._find_name(name) if mark is None else mark
        if len(attributes) <= _MAX_ATTRIBUTE_CHARS:
            self._of_attributes[attributes] = found
        return found

    def _find_name(self, name: str) -> int:
        mark = 0
        for word in name_words(name):
            mark |= self._bits.get(word, 0)
        self._of_names[name] = mark
        return mark
