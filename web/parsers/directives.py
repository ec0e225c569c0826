"""What a document says to robots: robots meta elements and X-Robots-Tag."""

from .options import ParseOptions
from .page import Page, Source

_MAX_CHARS = 2_000
_ROBOTS_TOKENS = {
    "none": ("noindex", "nofollow"),
    "noindex": ("noindex",),
    "nofollow": ("nofollow",),
    "noarchive": ("noarchive",),
    "nocache": ("noarchive",),
}
# Rules with a value; any other word before a colon is the name of one robot.
_ROBOTS_RULES = frozenset(
    {"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"}
)


def header_directives(source: Source, options: ParseOptions) -> set[str]:
    """Returns the directives in the ``X-Robots-Tag`` headers of any document."""
    return robots_directives(source.header("x-robots-tag") or "")


def robots_directives(value: str) -> set[str]:
    """Returns the directives in a robots meta or an ``X-Robots-Tag``.

    What is said to one robot by its name is passed over.

    >>> sorted(robots_directives("None, max-image-preview:none"))
    ['nofollow', 'noindex']
    >>> robots_directives("googlebot: noindex, nofollow")
    set()
    """
    directives: set[str] = set()
    for part in value[:_MAX_CHARS].lower().split(","):
        words, colon, _ = part.partition(":")
        if colon and words.strip() not in _ROBOTS_RULES:
            break
        for word in words.replace(";", " ").split():
            directives.update(_ROBOTS_TOKENS.get(word, ()))
    return directives


def obey_nofollow(page: Page) -> None:
    """Takes the links from a page that says nofollow."""
    if "nofollow" in page.directives:
        page.drop("page_nofollow", len(page.hrefs))
        page.hrefs, page.anchors, page.rels = [], [], []
