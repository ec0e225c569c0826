"""Takes the danger out of pages that nest too deep, so that the fast parser can have them.

Browsers do alike: what nests deeper than some 500 elements, they put side by side.
"""

import re

from .hazards import FLAT, FORMATTING

# Each new block looks through all elements that are open.
_MAX_NESTING = 256
# Elements that repeating the open formatting elements may make: about 100 MB.
_MAX_REPEATED = 1_000_000
_TAG = re.compile(rb"<(/?)([a-z][^\s/>]*)", re.IGNORECASE)
# Cannot nest in themselves, or what is between their tags is text, or they are looked for.
_KEPT = FLAT | frozenset(
    b"a body form head html iframe noembed noframes plaintext script style textarea title xmp".split()
)


def flattened(body: bytes) -> bytes:
    """Returns a document whose tags beyond a depth are ``br``, which keep texts apart.

    Text and links stay as they are. A tag in a script or an attribute may
    change, too; the fast parser would be quadratic on the page as it is.

    >>> flattened(b"<div>" * 257 + b"<a href=x>y</a></div></div>")[5 * 256 :]
    b'<br><a href=x>y</a><br></div>'
    """
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
