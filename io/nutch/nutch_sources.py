"""Finds what paths hold of Nutch: its databases, its segments, and dumps of them.

Files are recognised by their content. Only the folders of a segment are known by their names.
"""

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from ...web.base.errors import UsageError
from ...web.hadoop.hadoop_faults import HadoopFileError
from ...web.hadoop.sequence_files import SequenceFileHeader, read_header
from ...web.nutch_text.datum_text import CSV_DUMP, JSON_DUMP, NORMAL_DUMP
from ...web.nutch_text.host_text import HOST_DUMP
from ...web.nutch_text.link_text import LINK_DUMP
from ...web.nutch_text.text_records import TextForm
from ...web.nutch_text.webtable_text import WEBTABLE_DUMP
from ..storage.file_errors import errors_as
from ..storage.places import Place

SEQUENCE = "SequenceFile"
TEXT_FORMS: dict[str, TextForm] = {
    form.name: form
    for form in (CSV_DUMP, NORMAL_DUMP, WEBTABLE_DUMP, LINK_DUMP, HOST_DUMP, JSON_DUMP)
}
SEGMENT_PARTS = (
    "crawl_generate",
    "crawl_fetch",
    "content",
    "crawl_parse",
    "parse_data",
    "parse_text",
)
# What the parser wrote; it is read beside the pages.
PARSE_PARTS = ("crawl_parse", "parse_data", "parse_text")
_DATUM = "org.apache.nutch.crawl.CrawlDatum"
# Kinds of databases by the class of the values in their files.
_KINDS = {
    _DATUM: "crawldb",
    "org.apache.nutch.crawl.Inlinks": "linkdb",
    "org.apache.nutch.hostdb.HostDatum": "hostdb",
}
_CLASSES_OF_PARTS = {
    "crawl_generate": _DATUM,
    "crawl_fetch": _DATUM,
    "content": "org.apache.nutch.protocol.Content",
    "crawl_parse": _DATUM,
    "parse_data": "org.apache.nutch.parse.ParseData",
    "parse_text": "org.apache.nutch.parse.ParseText",
}
_HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"
_UNFINISHED = "_temporary"
_LOCK = ".locked"
# Files that rsync, hdfs dfs -put and distcp have not copied to the end.
_COPYING = re.compile(r"\..+\.[A-Za-z0-9]{6}|.+\._COPYING_|\.distcp\.tmp\..+")
_SEED = re.compile(r"(?:https?|ftp|file):", re.IGNORECASE)
EXPECTED = (
    "a crawldb, linkdb, hostdb or segments of Nutch, or files that its readdb -dump, readlinkdb -dump "
    "or readhostdb wrote"
)


class NutchFile(NamedTuple):
    """A file of Nutch.

    Attributes:
        address: Its address.
        kind: ``crawldb``, ``linkdb``, ``hostdb``, or one of ``SEGMENT_PARTS``.
        form: ``SEQUENCE``, or one of ``TEXT_FORMS``.
        size: Its size, bytes.
        changed: When it was written, ms.
        segment: Name of its segment; empty for a database.
        part: Its path in the folder of its kind, the same for files with records of the same URLs.
    """

    address: str
    kind: str
    form: str
    size: int
    changed: int
    segment: str = ""
    part: str = ""


class NutchSources(NamedTuple):
    """What paths hold.

    Attributes:
        files: The files to read.
        segments: Names of segments, in order, with the parts that each has.
        notes: (reason, line for the user) of what was left out.
    """

    files: list[NutchFile]
    segments: dict[str, set[str]]
    notes: list[tuple[str, str]]


def find_nutch_files(place: Place) -> NutchSources:
    """Finds what is in a folder and below it; or what a file is.

    Raises:
        UsageError: There is nothing of Nutch.
        UserError: It cannot be read.
    """
    with errors_as(f"cannot read {str(place)!r}"):
        found = list(_files_at(place))
    sources = NutchSources([], {}, [])
    paths = {path for _, path, _, _ in found}
    for file, path, size, changed in found:
        if _is_superseded(path, paths) or _is_left_out(file, path, sources):
            continue
        if _is_beside_data(path):
            if path.with_name("data") not in paths:
                _note(
                    sources, "half_copied",
                    f"{file}: the file data beside it is missing: copy this folder again",
                )  # fmt: skip
            continue
        segment, kind, part = _place_in_segment(path, place)
        if segment:
            sources.segments.setdefault(segment, set()).add(kind)
        if not size:
            _note(sources, "empty_file", f"{file}: empty, left out")
            continue
        if file != place and path.name == "data" and path.with_name("index") not in paths:
            _note(sources, "", f"{file}: its index is missing, which is not needed here")
        recognised = _recognise(file, kind, sources)
        if recognised is not None:
            kind, form = recognised
            sources.files.append(NutchFile(str(file), kind, form, size, changed, segment, part))
    if all(file.kind in PARSE_PARTS for file in sources.files):
        raise UsageError(_nothing_line(place, sources))
    return sources


def _files_at(place: Place) -> Iterator[tuple[Place, PurePosixPath, int, int]]:
    """Yields files of a folder, or the file: place, path with the folder's name, bytes, time in ms.

    Raises:
        UsageError: There is nothing.
    """
    files = sorted(place.files_below(), key=lambda file: str(file.path))
    for file in files:
        path = PurePosixPath(place.name) / file.path.relative_to(place)
        yield file.path, path, file.bytes, int(file.changed * 1000)
    if files:
        return
    try:
        if place.files_in() == [place]:
            yield place, PurePosixPath(place.name), place.size_and_version()[0], 0
    except FileNotFoundError as error:
        raise UsageError(f"no such file or folder: {str(place)!r}") from error


def _nothing_line(place: Place, sources: NutchSources) -> str:
    reasons = {reason for reason, _ in sources.notes}
    if "seeds" in reasons:
        return f"{str(place)!r} has a list of seeds: nutbeam inject TABLE {place} reads it"
    first = next((f" ({line})" for reason, line in sources.notes if reason), "")
    return f"expected {EXPECTED}, got {str(place)!r}{first}"


def _note(sources: NutchSources, reason: str, line: str) -> None:
    if (reason, line) not in sources.notes:
        sources.notes.append((reason, line))


def _is_superseded(path: PurePosixPath, paths: set[PurePosixPath]) -> bool:
    """Returns whether a file is of the version of a database that the newest one has replaced."""
    for folder in path.parents:
        if folder.name == "old":
            current = folder.with_name("current")
            return any(current in other.parents for other in paths)
    return False


def _is_left_out(file: Place, path: PurePosixPath, sources: NutchSources) -> bool:
    """Returns whether a file is none of data; notes what the user should know."""
    for folder in path.parents:
        if folder.name == _UNFINISHED:
            _note(
                sources, "unfinished_job",
                f"{folder}: output of a job that did not end, left out",
            )  # fmt: skip
            return True
        if folder.name.startswith(("_", ".")) and folder.name not in (".", ""):
            return True
    if path.name == _LOCK:
        _note(
            sources, "",
            f"{file}: a job of Nutch had locked the database and may still change it; it is read all "
            "the same",
        )  # fmt: skip
    if _COPYING.fullmatch(path.name):
        _note(sources, "half_copied", f"{file}: its copy has not ended, left out")
        return True
    return path.name.startswith((".", "_")) or path.suffix == ".crc"


def _is_beside_data(path: PurePosixPath) -> bool:
    """Returns whether a file is part of a map file, and not its data."""
    return path.name in ("index", "bloom") and path.parent.name.startswith("part-")


def _place_in_segment(path: PurePosixPath, place: Place) -> tuple[str, str, str]:
    """Returns the name of a file's segment, the folder there, and its path in it; empty: in none."""
    folders = path.parts[:-1]
    for at, name in enumerate(folders):
        if name in SEGMENT_PARTS:
            segment = folders[at - 1] if at else place.absolute().parent.name
            return segment, name, "/".join(path.parts[at + 1 :])
    return "", "", ""


def _recognise(file: Place, kind: str, sources: NutchSources) -> tuple[str, str] | None:
    """Returns the kind and the form of a file; None if it is nothing to import.

    Args:
        file: The file.
        kind: The part of its segment, if it is in one.
        sources: Gets a note.
    """
    with errors_as(f"cannot read {file}"), file.open_for_reading() as stream:
        head = stream.read(_HEAD_BYTES)
    if head[:3] == b"SEQ":
        header = _header_of(file, head, sources)
        if header is None:
            return None
        value = header.value_class
        if kind and value == _CLASSES_OF_PARTS.get(kind):
            return kind, SEQUENCE
        if not kind and value in _KINDS:
            return _KINDS[value], SEQUENCE
        _note(sources, "other_class", f"{file}: holds {value}, left out")
        return None
    if kind:
        _note(sources, "no_sequence_file", f"{file}: expected a SequenceFile, left out")
        return None
    lines = [line for line in _text_of(head).split("\n")[:-1] or [_text_of(head)] if line.strip()]
    for form in TEXT_FORMS.values():
        if lines and re.search(form.start, lines[0]) and _fits(form, lines[0]):
            return form.kind, form.name
    texts = [line for line in lines if not line.startswith("#")]
    if texts and _SEED.match(texts[0]):
        _note(sources, "seeds", f"{file}: a list of seeds; nutbeam inject reads it")
    else:
        _note(sources, "unknown_file", f"{file}: nothing that Nutch writes, left out")
    return None


def _fits(form: TextForm, line: str) -> bool:
    return form is not JSON_DUMP or '"statusCode"' in line


def _header_of(file: Place, head: bytes, sources: NutchSources) -> SequenceFileHeader | None:
    import io

    try:
        return read_header(io.BytesIO(head))
    except HadoopFileError as error:
        _note(sources, "bad_header", f"{file}: {error}, left out")
        return None


def _text_of(head: bytes) -> str:
    if head[: len(_GZIP)] == _GZIP:
        try:
            head = zlib.decompressobj(31).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return ""
    return head.decode("utf-8", "replace")


def merge_sources_of(places: Sequence[Place]) -> NutchSources:
    """Returns what several paths hold, each file once.

    Raises:
        UsageError: Two segments have one name; or see ``find_nutch_files``.
    """
    files = dict[str, NutchFile]()
    segments = dict[str, set[str]]()
    notes = dict[tuple[str, str], None]()
    for sources in map(find_nutch_files, places):
        files |= {file.address: file for file in sources.files}
        for name, parts in sources.segments.items():
            segments.setdefault(name, set()).update(parts)
        notes |= dict.fromkeys(sources.notes)
    folders = dict[str, str]()
    for file in files.values():
        folder = file.address.removesuffix(f"/{file.kind}/{file.part}")
        if file.segment and folders.setdefault(file.segment, folder) != folder:
            raise UsageError(
                f"two segments have the name {file.segment!r}: import {folders[file.segment]} and "
                f"{folder} one after the other"
            )
    notes |= dict.fromkeys(("", line) for line in _lines_on_missing_parts(segments))
    return NutchSources(list(files.values()), dict(sorted(segments.items())), list(notes))


def _lines_on_missing_parts(segments: Mapping[str, set[str]]) -> Iterator[str]:
    """Yields a line for each segment without a folder that Nutch writes together with others."""
    for name, parts in segments.items():
        if "content" in parts and "crawl_fetch" not in parts:
            yield f"segment {name} has content, but no crawl_fetch: it counts as not fetched"
        missing = [part for part in PARSE_PARTS if part not in parts]
        if 0 < len(missing) < len(PARSE_PARTS):
            yield f"segment {name} was parsed, but has no {' and no '.join(missing)}"


def parts_of_file(file: NutchFile, size: int) -> Iterator[tuple[int, int | None]]:
    """Yields (first byte, byte after the last) of the parts of a file that workers share."""
    if file.form != SEQUENCE:
        yield 0, None
        return
    for start in range(0, max(file.size, 1), size):
        end = start + size
        yield start, None if end >= file.size else end
