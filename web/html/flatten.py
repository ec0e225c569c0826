"""Flattens pages that nest too deep, so that the HTML parser stays linear on them.

Browsers do the same: elements that nest deeper than some 500 become siblings.
"""

import re

from .hazards import FLAT, FORMATTING, crowded_tags

# The parser looks through all open elements at each new block.
_MAX_NESTING = 256
# Elements that repeating the open formatting elements may make: about 100 MB.
_MAX_REPEATED = 1_000_000
_TAG = re.compile(rb"<(/?)([a-z][^\s/>]*)", re.IGNORECASE)
# Elements that do not nest in themselves, that hold text only, or that the reader needs.
_KEPT = FLAT | frozenset(
    b"a body form head html iframe noembed noframes plaintext script style textarea title xmp".split()
)


def flattened(body: bytes) -> bytes:
    """Returns a document that the HTML parser reads in linear time.

    Tags beyond a depth become ``br``, which keep texts apart, and elements with very many
    attributes lose these. Other text and links stay as they are. A tag in a script or an
    attribute may change, too.

    >>> flattened(b"<div>" * 257 + b"<a href=x>y</a></div></div>")[5 * 256 :]
    b'<br><a href=x>y</a><br></div>'
    """
    for start, end in reversed(list(crowded_tags(body))):
        body = body[:start] + body[end:]
    most_formatting = _MAX_REPEATED // (body.count(b"<") + 1)
    by_name: dict[bytes, int] = {}
    hidden: dict[bytes, int] = {}
    nesting = formatting = 0

    def flat(tag: re.Match[bytes]) -> bytes:
        nonlocal nesting, formatting
        slash, name = tag[1], tag[2].lower()
        if name in _KEPT:
            return tag[0]
        formats = name in FORMATTING
        if slash:
            if hidden.get(name):
                hidden[name] -= 1
                return b"<br"
            if not by_name.get(name):
                return tag[0]
            by_name[name] -= 1
            nesting, formatting = nesting - 1, formatting - formats
            return tag[0]
        if nesting >= _MAX_NESTING or (formats and formatting >= most_formatting):
            hidden[name] = hidden.get(name, 0) + 1
            return b"<br"
        by_name[name] = by_name.get(name, 0) + 1
        nesting, formatting = nesting + 1, formatting + formats
        return tag[0]

    return _TAG.sub(flat, body)
