"""Which files of a segment have records of the same URLs, and are read together."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from .nutch_sources import PARSE_PARTS, NutchFile, NutchSources


class JoinedFiles(NamedTuple):
    """Files that are read beside one of contents, or of ``crawl_fetch`` where there are no contents.

    Attributes:
        files: By kind.
        are_shared: Whether further files need those of the parser: it had another number of parts.
    """

    files: Mapping[str, tuple[NutchFile, ...]] = {}
    are_shared: bool = False


class SegmentFiles:
    """The files of segments by their parts."""

    def __init__(self, sources: NutchSources) -> None:
        self._segments = sources.segments
        self._files: dict[tuple[str, str], dict[str, NutchFile]] = {}
        for file in sources.files:
            self._files.setdefault((file.segment, file.kind), {})[_part_of(file)] = file

    def is_beside(self, file: NutchFile) -> bool:
        """Returns whether a file is only read beside another one."""
        has_contents = _part_of(file) in self._parts(file.segment, "content")
        return file.kind in PARSE_PARTS or (file.kind == "crawl_fetch" and has_contents)

    def beside(self, file: NutchFile) -> JoinedFiles:
        """Returns what is read beside a file; of the parser nothing if it had not ended."""
        if file.kind not in ("content", "crawl_fetch"):
            return JoinedFiles()
        part = _part_of(file)
        contents, fetched = (self._parts(file.segment, k) for k in ("content", "crawl_fetch"))
        files = dict[str, tuple[NutchFile, ...]]()
        if file.kind == "content" and part in fetched:
            files["crawl_fetch"] = (fetched[part],)
        if not was_parsed(self._segments[file.segment]):
            return JoinedFiles(files)
        of_pages = contents.keys() | fetched.keys()
        are_shared = self._parts(file.segment, "parse_data").keys() != of_pages
        for kind in PARSE_PARTS:
            parsed = self._parts(file.segment, kind)
            own = [parsed[part]] if part in parsed else []
            files[kind] = tuple(parsed.values() if are_shared else own)
        return JoinedFiles(files, are_shared)

    def _parts(self, segment: str, kind: str) -> dict[str, NutchFile]:
        return self._files.get((segment, kind), {})


def _part_of(file: NutchFile) -> str:
    """Returns the name of a part, which is a map file or a plain one."""
    return file.part.removesuffix("/data")


def was_parsed(parts: AbstractSet[str]) -> bool:
    """Returns whether a segment was parsed to the end, by the parts that it has, as Nutch finds it out."""
    return "crawl_parse" in parts
