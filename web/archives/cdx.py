"""Lines of plain CDX indexes, of Wayback and Heritrix: a legend of letters, and columns of text.

Source: Internet Archive, "CDX and DAT Legend" and "CDX File Format" (2003, 2015).
"""

from collections.abc import Mapping, Sequence
from typing import Any

_START = "CDX "
# What a column means, by its letter; V counts bytes of the compressed file, v of one that is not compressed.
_MEANINGS = {"g": "filename", "V": "offset", "v": "offset", "S": "length"}
# The usual columns of files without a legend, by their number.
_USUAL = {len(letters): letters for letters in ("NbamskrVg", "NbamskrMVg", "NbamskrMSVg")}


class CdxColumns:
    """The columns of a CDX file.

    Args:
        letters: A letter for each; none: the usual ones for their number.
        separator: What is between them.
    """

    def __init__(self, letters: Sequence[str] = (), separator: str = " ") -> None:
        self._letters, self._separator = letters, separator

    def place_in(self, line: str) -> Mapping[str, Any] | None:
        """Returns filename, offset and length, if it is there, as texts; None if the line has others.

        >>> CdxColumns().place_in("com,a)/ 20200102030405 http://a.com/ text/html 200 X - - 7 99 a.warc.gz")
        {'length': '7', 'offset': '99', 'filename': 'a.warc.gz'}
        """
        values = line.strip("\r\n").split(self._separator)
        letters = self._letters or _USUAL.get(len(values), ())
        if len(values) != len(letters):
            return None
        named = {
            _MEANINGS[letter]: value
            for letter, value in zip(letters, values, strict=True)
            if letter in _MEANINGS and value != "-"
        }
        return named if named.keys() >= {"filename", "offset"} else None


def cdx_legend(line: str) -> CdxColumns | None:
    """Returns the columns that the first line of a CDX file names; None if it names none.

    >>> cdx_legend(" CDX N b V g").place_in("com,a)/ 2020 9 a.warc")
    {'offset': '9', 'filename': 'a.warc'}
    """
    if line[1:].startswith(_START):
        return CdxColumns(line[1 + len(_START) :].split(), line[0])
    return None
