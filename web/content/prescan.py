"""The encoding that a page's first bytes declare: WHATWG HTML 13.2.3.2."""

import re

from .whatwg_encodings import encoding_name

_EARLY = 1024
_SPACE = rb"[\t\n\f\r ]"
# Atomic groups and possessive repeats: one pass, however broken the mark-up is.
_VALUE = rb"\"([^\"]*)\"|'([^']*)'|(?=>)|([^\t\n\f\r \"'>][^\t\n\f\r >]*+)"
_ATTRIBUTE = (
    rb"(?>[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rb"(?:" + _SPACE + rb"*+=" + _SPACE + rb"*+(?:" + _VALUE + rb")|(?!" + _SPACE + rb"*+=)))"
)
_ANY_ATTRIBUTES = re.sub(rb"\((?!\?)", rb"(?:", _ATTRIBUTE) + rb"*+[\t\n\f\r /]*+>"
# The short form that nearly all tags have: quotes stand only where values begin.
_PLAIN_VALUES = (
    rb"[^>\"'=]*+"
    rb"(?:(?<=[a-z])=(?>\"[^\"]*\"|'[^']*'|[^\t\n\f\r >\"'=]+(?=[\t\n\f\r >]))[^>\"'=]*+)*+>"
)
_TOKEN = re.compile(
    rb"<!(?=--)(?:.*?-->|.*)"
    rb"|<(?:(meta)(?=[\t\n\f\r /])|/?[a-z][^\t\n\f\r >]*+)"
    rb"(?>" + _PLAIN_VALUES + rb"|" + _ANY_ATTRIBUTES + rb")"
    rb"|<(?:[!?]|/(?![a-z]))[^>]*+>"
    # A tag without an end takes the rest.
    rb"|<[a-z!/?].*",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_IN_CONTENT = re.compile(
    rb"charset" + _SPACE + rb"*=" + _SPACE + rb"*"
    rb"(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\f\r \"';][^\t\n\f\r ;]*))?",
    re.IGNORECASE,
)
_XML = re.compile(rb"<\?xml\b[^<>]*?\bencoding\s*=\s*[\"']?([^\"'<>?\s]*)")


def declared_encoding(start: bytes, xml_first: bool = False) -> str | None:
    """Returns the encoding that a meta element or an XML declaration names, if it is known.

    Args:
        start: The first bytes of a document; an incomplete element at the end does not count.
        xml_first: Whether the XML declaration has priority over meta elements, as in XML.

    >>> declared_encoding(b"<!-- <meta charset=big5> --><meta charset=koi8-r>")
    'koi8-r'
    """
    if xml_first:
        return encoding_in_xml(start) or _encoding_in_meta(start)
    # Most say it early, and a tag that is whole there is whole in more.
    return _encoding_in_meta(start[:_EARLY]) or _encoding_in_meta(start) or encoding_in_xml(start)


def _encoding_in_meta(start: bytes) -> str | None:
    small = start.lower()
    if (first := small.find(b"<meta")) < 0 or small.find(b"charset", first) < 0:
        return None
    for tag in _TOKEN.finditer(start):
        if tag[1] and b"charset" in small[tag.start() : tag.end()]:
            name = _encoding_in_attributes(tag[0][len(b"<meta") :])
            if name:
                return name
    return None


def _encoding_in_attributes(text: bytes) -> str | None:
    """Returns what the attributes of one meta element declare."""
    attributes: dict[bytes, bytes] = {}
    for name, *values in _ATTRIBUTES.findall(text):
        attributes.setdefault(name.lower(), b"".join(values))
    if b"charset" in attributes:
        return _encoding_of_label(attributes[b"charset"].rstrip(b"/"))  # <meta charset=koi8-r/>
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    label = _IN_CONTENT.search(attributes.get(b"content", b""))
    return _encoding_of_label(label[1] or label[2] or label[3] or b"") if label else None


def encoding_in_xml(start: bytes) -> str | None:
    """Returns the encoding that an XML declaration names, also without quotes, if it is known.

    >>> encoding_in_xml(b"<?xml version='1.0' encoding='latin1'?><a/>")
    'windows-1252'
    """
    declaration = _XML.match(start.lstrip())
    return _encoding_of_label(declaration[1]) if declaration else None


def _encoding_of_label(label: bytes) -> str | None:
    name = encoding_name(label.decode("ascii", "replace"))
    # The declaration was read as ASCII, so this cannot be.
    return "utf-8" if name and name.startswith(("utf-16", "utf-32")) else name
