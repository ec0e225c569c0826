"""Reads the copies of Nutch's files as the jobs will read them, and names all their faults."""

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ...policy.indexing.index_options import read_nutch_routes
from ...policy.indexing.index_rule_filters import read_mime_types, read_subcollections
from ...policy.schedules.adaptive_schedule import host_intervals, mime_rates
from ...web.base.errors import UsageError
from ...web.exchange.credentials import load_credentials
from ...web.rule_files.rule_files import RuleFile, read_rule_file
from ...web.rules.url_options import FILTER_FILES, NORMALIZER_FILES, UrlOptions
from ...web.rules.url_rules import UrlRules
from .conf_files import RULES_FOLDER, ImportedFile

_NORMALIZE = NORMALIZER_FILES["regex"]
_MOST_FAULTS = 100  # of one file
# What takes the place of a line with a fault. In this file lines belong to those above them.
_HARMLESS = {FILTER_FILES["fast"]: "Host fault.invalid"}


def faults_of_copies(base: Path, files: Iterable[ImportedFile]) -> Iterator[str]:
    """Yields all faults of the copies, with the lines of those in files of lines.

    A reader stops at the first fault. So its line is taken out of the copy, which is read again.

    Args:
        base: The folder of the copies, which are changed if they have faults.
        files: The files.
    """
    copies = {file.option: file for file in files if file.copy and file.option}
    for file in files:
        if file.copy.startswith(f"{RULES_FOLDER}/"):
            yield from _faults_of(functools.partial(_check_rules, base, file), base, file)
        elif file.copy and file.option in _CHECKS:
            check = functools.partial(_CHECKS[file.option], base, file, copies)
            yield from _faults_of(check, base, file)


def _faults_of(check: Callable[[], object], base: Path, file: ImportedFile) -> Iterator[str]:
    path = base / file.copy
    names = "|".join(map(re.escape, (file.name, str(path))))
    place = re.compile(rf"(?:{names})(?::|, line )(\d+):")
    for _ in range(_MOST_FAULTS):
        try:
            check()
        except (ValueError, UsageError) as error:
            yield str(error)
            match = place.match(str(error))
            if match is None or path.suffix == ".xml":
                return
            _replace_line(path, int(match[1]))
        else:
            return


def _replace_line(path: Path, number: int) -> None:
    lines = re.split(r"\r\n|\r|\n", path.read_text("utf-8"))
    lines[number - 1] = _HARMLESS.get(path.name, "")
    path.write_text("\n".join(lines), "utf-8")


def _check_rules(base: Path, file: ImportedFile) -> None:
    """Compiles the rules of one file, alone."""
    name = file.copy.rpartition("/")[2]
    usual = _NORMALIZE if name.startswith("regex-normalize-") else name
    filters = [kind for kind, other in FILTER_FILES.items() if other == usual]
    normalizers = [kind for kind, other in NORMALIZER_FILES.items() if other == usual]
    options = UrlOptions(
        url_filters=tuple(filters or ["validator"]), url_normalizers=("basic", *normalizers)
    )
    UrlRules(options, ((usual, _named(base, file, xml=usual == _NORMALIZE)),))


def _check_routes(base: Path, file: ImportedFile, copies: Mapping[str, ImportedFile]) -> None:
    exchanges = copies.get("exchanges")
    read_nutch_routes(_named(base, file), _named(base, exchanges) if exchanges else None)


# How the copy of an option is read: with its folder, and the copies of all options.
_CHECKS: Mapping[str, Callable[[Path, ImportedFile, Mapping[str, ImportedFile]], object]] = {
    "index_writers": _check_routes,
    "subcollections_file": lambda base, file, _: read_subcollections(_named(base, file)),
    "mimetype_file": lambda base, file, _: read_mime_types(_named(base, file)),
    "mime_rates": lambda base, file, _: mime_rates(_named(base, file)),
    "host_intervals": lambda base, file, _: host_intervals(_named(base, file), 0, math.inf),
    "http_credentials": lambda base, file, _: load_credentials(str(base / file.copy)),
}


def _named(base: Path, file: ImportedFile, xml: bool = False) -> RuleFile:
    """Returns a copy, under the name of its original."""
    return read_rule_file(base / file.copy, file.name, xml=xml)
