"""Reads Hadoop's and Nutch's values one at a time: numbers, texts, maps, statuses.

Most values are read in columns (``crawl_datums``, ``metadata_columns``). This reader is for headers, for
small tables, and for values of unusual form.
"""

import struct
from collections.abc import Callable

from .hadoop_codecs import BrokenCompression, find_codec

_BYTE, _SHORT, _INT, _LONG = (struct.Struct(f">{code}") for code in "bhiq")
_FLOAT, _DOUBLE = struct.Struct(">f"), struct.Struct(">d")


class BadWritable(Exception):
    """Bytes are no value of the class; the message says what was expected."""


class WritableReader:
    """Reads values that lie one after another.

    Every method raises ``BadWritable`` if the bytes end first.

    Args:
        data: The bytes.
        position: Where the next value begins.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def remaining(self) -> int:
        """Bytes that have not been read."""
        return len(self._data) - self.position

    def read_bytes(self, length: int) -> bytes:
        """Returns the next bytes, as many as ``length``."""
        start, end = self.position, self.position + length
        if length < 0 or end > len(self._data):
            raise BadWritable(f"{length} bytes, of which {self.remaining} are there")
        self.position = end
        return self._data[start:end]

    def read_byte(self) -> int:
        """Reads a signed byte."""
        return self._unpack(_BYTE)

    def read_boolean(self) -> bool:
        """Reads a Boolean."""
        return self._unpack(_BYTE) != 0

    def read_short(self) -> int:
        """Reads a signed number of two bytes."""
        return self._unpack(_SHORT)

    def read_int(self) -> int:
        """Reads a signed number of four bytes."""
        return self._unpack(_INT)

    def read_long(self) -> int:
        """Reads a signed number of eight bytes."""
        return self._unpack(_LONG)

    def read_float(self) -> float:
        """Reads a number of four bytes."""
        return self._unpack(_FLOAT)

    def read_double(self) -> float:
        """Reads a number of eight bytes."""
        return self._unpack(_DOUBLE)

    def _unpack(self, form: struct.Struct):  # type: ignore[no-untyped-def]
        position = self.position
        try:
            (value,) = form.unpack_from(self._data, position)
        except struct.error:
            raise BadWritable(f"{form.size} bytes, of which {self.remaining} are there") from None
        self.position = position + form.size
        return value

    def read_count(self, least_bytes: int) -> int:
        """Reads the number of items that follow.

        Args:
            least_bytes: Bytes that an item has at least; a number that cannot be is refused.
        """
        count: int = self.read_int()
        if count < 0 or count * least_bytes > self.remaining:
            raise BadWritable(f"{count} items in {self.remaining} bytes")
        return count

    def read_vint(self) -> int:
        """Reads a number of one to nine bytes (WritableUtils.readVLong)."""
        first = self.read_byte()
        if first >= -112:
            return first
        negative = first < -120
        value = int.from_bytes(self.read_bytes((-120 if negative else -112) - first), "big")
        return ~value if negative else value

    def read_text(self) -> str:
        """Reads a Text: its length in bytes, and UTF-8."""
        return self.read_bytes(self.read_vint()).decode("utf-8", "replace")

    def read_utf8(self) -> str:
        """Reads a UTF8 or what DataOutput.writeUTF writes: two bytes of length, and the text."""
        return self.read_bytes(self.read_short() & 0xFFFF).decode("utf-8", "replace")

    def read_strings(self) -> list[str] | None:
        """Reads texts as WritableUtils.writeStringArray writes them; None: no array."""
        return self._read_array(self._read_string)

    def read_compressed_strings(self) -> list[str] | None:
        """Reads texts as WritableUtils.writeCompressedStringArray writes them."""
        return self._read_array(self.read_compressed_string)

    def _read_array(self, read: Callable[[], str | None]) -> list[str] | None:
        count = self.read_int()
        if count == -1:
            return None
        if not 0 <= count <= self.remaining:
            raise BadWritable(f"{count} texts in {self.remaining} bytes")
        return [read() or "" for _ in range(count)]

    def _read_string(self) -> str | None:
        length = self.read_int()
        return None if length == -1 else self.read_bytes(length).decode("utf-8", "replace")

    def read_compressed_string(self) -> str | None:
        """Reads a text that is a gzip stream with its length."""
        length = self.read_int()
        if length == -1:
            return None
        gzip = find_codec("GzipCodec")
        try:
            return gzip.decompress(self.read_bytes(length)).decode("utf-8", "replace")
        except BrokenCompression as error:
            raise BadWritable(f"a gzip stream: {error}") from error

    def check_end(self) -> None:
        """Raises ``BadWritable`` if bytes remain."""
        if self.remaining:
            raise BadWritable(f"the end, but {self.remaining} bytes remain")
