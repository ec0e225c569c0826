"""Rewrites the links of archived pages and styles, so that a browser finds them in the archive.

Only URLs change, all other bytes stay. Links that scripts make are not seen. That nothing is loaded
from elsewhere does not depend on this: the policy of the answer forbids it.
"""

import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, urljoin, urlsplit

_TAG = re.compile(r"<([a-zA-Z][^\s/>]*+)")
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE = re.compile(
    r"(?P<space>[\s/]*+)(?P<name>[^\s/>][^\s/>=]*+)"
    r"(?:(?P<equals>\s*+=\s*+)(?:\"(?P<double>[^\"]*+)\"|'(?P<single>[^']*+)'|(?P<bare>[^\s>]*+)))?+"
)
_RAW = frozenset({"script", "style", "textarea", "title", "xmp"})
_URLS = frozenset(
    [
        "href",
        "src",
        "action",
        "formaction",
        "poster",
        "background",
        "data",
        "longdesc",
        "xlink:href",
    ]
)
_LISTS = frozenset({"srcset", "imagesrcset"})
# They would stop the page from loading what was rewritten, or from telling where it is.
_UNWANTED = frozenset({"integrity", "referrerpolicy", "ping", "nonce"})
_POLICIES = frozenset({"content-security-policy", "content-security-policy-report-only"})
_OTHER = "data-archived-"
_WHOLE = re.compile(r"[\s\x00-\x20]*(?:https?:)?//", re.IGNORECASE)
_SCHEME = re.compile(r"[\s\x00-\x20]*[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_REFRESH = re.compile(
    r"(\s*[0-9.]*\s*[;,]\s*(?:url\s*=\s*)?[\"']?)([^\"']*)(.*)", re.IGNORECASE | re.DOTALL
)
# It matches everywhere, so that a list of any form takes linear time.
_CANDIDATE = re.compile(r"([\s,]*+)((?:[^\s]*[^\s,])?)(,?\s*+[^,]*)")
# Strings and comments are matched, so that nothing in them is taken for a URL.
_CSS = re.compile(
    r"/\*.*?(?:\*/|\Z)"
    r"|(?P<open>url\(\s*+)(?P<url>\"[^\"\n]*+\"|'[^'\n]*+'|[^\"'()\s]*+)(?=\s*\))"
    r"|(?P<import>@import\s*+)(?P<name>\"[^\"\n]*+\"|'[^'\n]*+')"
    r"|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?",
    re.IGNORECASE | re.DOTALL,
)

# Returns the path of an absolute URL in the archive.
PathOf = Callable[[str], str]


class LinkRewriter:
    """Rewrites the links of one page or style.

    Args:
        url: Its URL.
        path_of: Returns the path of an absolute URL in the archive.

    >>> links = LinkRewriter("http://a.com/b/c", "/2026/{}".format)
    >>> links.page(b'<img src=/x.png><a href="d">d</a><script>"<a href=/>"</script>')
    b'<img src="/2026/http://a.com/x.png"><a href="d">d</a><script>"<a href=/>"</script>'
    >>> links.style(b"a { background: url(//b.com/y) }")
    b'a { background: url(/2026/http://b.com/y) }'
    """

    def __init__(self, url: str, path_of: PathOf) -> None:
        self._base, self._path_of, self._based = url, path_of, False

    def page(self, body: bytes) -> bytes:
        """Returns a page in HTML or XML with rewritten links."""
        text, encoding = _as_text(body)
        return "".join(self._page_pieces(text)).encode(encoding, "xmlcharrefreplace")

    def style(self, body: bytes) -> bytes:
        """Returns a style with rewritten links."""
        text, encoding = _as_text(body)
        return self._css(text).encode(encoding, "replace")

    def _page_pieces(self, text: str) -> Iterator[str]:
        at = 0
        while (start := text.find("<", at)) >= 0:
            yield text[at:start]
            tag = _TAG.match(text, start)
            if text.startswith("<!--", start):
                end = _COMMENT_END.search(text, start + 2)
                at = end.end() if end else len(text)
                yield text[start:at]
            elif tag is None:
                at = start + 1
                yield "<"
            else:
                piece, at = self._start_tag(text, tag)
                yield piece
                name = tag[1].lower()
                if name in _RAW:
                    content, at = _raw_text(text, at, name)
                    yield self._css(content) if name == "style" else content
        yield text[at:]

    def _start_tag(self, text: str, tag: re.Match[str]) -> tuple[str, int]:
        """Returns a start tag with other links, up to its ``>``, and the position after that."""
        name, at = tag[1].lower(), tag.end()
        # Only what these say together counts; a tag may have 100,000 attributes.
        values = _values(text, at) if name in ("base", "meta") else {}
        if name == "base" and "href" in values and not self._based:
            self._base, self._based = _join(self._base, html.unescape(values["href"])), True
        pieces = [tag[0]]
        while (match := _ATTRIBUTE.match(text, at)) is not None:
            pieces.append(self._attribute(name, match, values))
            at = match.end()
        return "".join(pieces), at

    def _attribute(self, tag: str, match: re.Match[str], values: dict[str, str]) -> str:
        if match["equals"] is None:
            return match[0]
        name, value = match["name"].lower(), _value(match)
        if name in _UNWANTED or _is_unwanted(tag, name, value):
            return f"{match['space']}{_OTHER}{match[0][len(match['space']) :]}"
        if name in _URLS:
            changed = self._link(value)
        elif name in _LISTS:
            changed = _CANDIDATE.sub(lambda part: part[1] + self._link(part[2]) + part[3], value)
        elif name == "style":
            changed = self._css(value)
        elif (
            tag == "meta"
            and name == "content"
            and values.get("http-equiv", "").lower() == "refresh"
        ):
            changed = _REFRESH.sub(lambda part: part[1] + self._link(part[2]) + part[3], value, 1)
        else:
            return match[0]
        if changed == value:
            return match[0]
        mark = "'" if match["single"] is not None else '"'
        return f"{match['space']}{match['name']}={mark}{changed}{mark}"

    def _link(self, text: str) -> str:
        """Returns a link as it is written in a page, with the path in the archive if it needs one.

        A relative link leads to the right page by itself, unless it climbs.
        """
        if _WHOLE.match(text):
            link = text.strip()
            return self._path_of(
                f"{urlsplit(self._base).scheme}:{link}" if link[0] == "/" else link
            )
        if _SCHEME.match(text):
            return text
        if text.lstrip().startswith("/"):
            parts = urlsplit(self._base)
            return self._path_of(f"{parts.scheme}://{parts.netloc}{text.strip()}")
        if ".." in text:
            joined = quote(_join(self._base, html.unescape(text)), safe="%/:=&?~#+!$,;'@()*[]")
            return html.escape(self._path_of(joined))
        return text

    def _css(self, text: str) -> str:
        return _CSS.sub(self._css_link, text)

    def _css_link(self, match: re.Match[str]) -> str:
        start, link = match["open"] or match["import"], match["url"] or match["name"]
        if not start or not link:
            return match[0]
        mark = link[0] if link[0] in "\"'" else ""
        return f"{start}{mark}{self._link(link.strip(mark) if mark else link)}{mark}"


def _as_text(body: bytes) -> tuple[str, str]:
    """Returns a body as text in which each byte of ASCII is a character, and its encoding.

    UTF-16 is the one encoding of the web that is not a superset of ASCII.
    """
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if body.startswith(mark):
            return body.decode(encoding, "replace"), encoding
    return body.decode("latin-1"), "latin-1"


def _raw_text(text: str, at: int, name: str) -> tuple[str, int]:
    """Returns the text up to the end tag of an element, and the position of that."""
    end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, at)
    stop = end.start() if end else len(text)
    return text[at:stop], stop


def _value(match: re.Match[str]) -> str:
    return next((v for v in match.group("double", "single", "bare") if v is not None), "")


def _values(text: str, at: int) -> dict[str, str]:
    """Returns the values of the attributes that begin at a position, by their names."""
    values = {}
    while (match := _ATTRIBUTE.match(text, at)) is not None:
        values[match["name"].lower()] = _value(match)
        at = match.end()
    return values


def _is_unwanted(tag: str, name: str, value: str) -> bool:
    value = value.lower()
    if name == "target":
        return value.startswith("_") and value != "_self"
    if tag != "meta":
        return False
    value = value.strip()
    is_policy = name == "http-equiv" and value in _POLICIES
    return is_policy or (name == "name" and value == "referrer")


def _join(base: str, link: str) -> str:
    try:
        return urljoin(base, link.strip())
    except ValueError:  # such as http://[
        return base
