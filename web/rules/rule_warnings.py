"""Checks the rules of options, and warns of valid rules that never match; they do not stop a job."""

import dataclasses
import logging
import pathlib
import re
from collections.abc import Iterator

from ..base.option_checks import Launch
from ..base.wording import quote_value
from ..normalizers.normalizer_step import SCOPES
from ..normalizers.regex_rules import RegexNormalizer
from ..rule_files.rule_files import lines_of
from .chains import normalizers_in
from .url_options import UrlOptions
from .url_rules import UrlRules

# Largest number of warnings for lines of one file.
_MOST = 3
_ASCII_ONLY = "urls are ascii when rules see them, with hosts in punycode and paths in escapes"
# Lines whose text is compared with URLs unchanged; host names are converted to punycode.
_LOOKED_FOR = {
    "regex-urlfilter.txt": re.compile(r"[+-]"),
    "automaton-urlfilter.txt": re.compile(r"[+-]"),
    "db-ignore-external-exemptions.txt": re.compile(r"[+-]"),
    "prefix-urlfilter.txt": re.compile(r"[^ #]"),
    "suffix-urlfilter.txt": re.compile(r"\s*[^\s#]"),
    "fast-urlfilter.txt": re.compile(r"\s*DenyPath[^#]*[^\x00-\x7f#]"),
}
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class CheckedUrlOptions(UrlOptions):
    """URL options whose rules are read before a command starts."""

    def check_setup(self, _: Launch) -> None:
        """Reads the rules, and logs those that have no effect."""
        checked_rules(self)


def checked_rules(options: UrlOptions) -> UrlRules:
    """Returns the URL rules for options; logs rules in rule files that have no effect.

    Raises:
        ValueError: A file is missing, or has a rule that cannot be used.
    """
    rules = UrlRules(options)
    for warning in warnings_of(rules):
        _LOG.warning(warning)
    return rules


def warnings_of(rules: UrlRules) -> list[str]:
    """Returns warnings for the user: lines that never match, files that are never read.

    Rules get URLs in ASCII, so a pattern with other letters never matches. The function reads only
    the names in the folder of rule files, and tries no patterns.

    >>> warnings_of(UrlRules())
    []
    """
    flags = [("--include", text) for text in rules.options.include]
    flags += [("--exclude", text) for text in rules.options.exclude]
    warnings = [_ascii_warning(flag, text) for flag, text in flags if not text.isascii()]
    for name, file in rules.files or ():
        lines = list(_non_ascii_lines(name, file.text))
        if file.xml and _basic_comes_first(rules):
            step = RegexNormalizer(file.xml, file.name)
            patterns = [(rule.line, rule.pattern.text) for rule in step.rules]
            lines = [(line, text) for line, text in patterns if not text.isascii()]
        warnings += [_ascii_warning(f"{file.name}:{line}", text) for line, text in lines[:_MOST]]
        if len(lines) > _MOST:
            warnings.append(f"{file.name}: {len(lines) - _MOST} more lines are never found")
    return [*warnings, *_no_scopes(rules)]


def _ascii_warning(where: str, text: str) -> str:
    return f"{where}: never found: {_ASCII_ONLY}, got {quote_value(text)}"


def _non_ascii_lines(name: str, text: str) -> Iterator[tuple[int, str]]:
    wanted = _LOOKED_FOR.get(name)
    if wanted is None or text.isascii():
        return
    for number, line in enumerate(lines_of(text), start=1):
        if not line.isascii() and wanted.match(line):
            yield number, line.strip()


def _basic_comes_first(rules: UrlRules) -> bool:
    names = normalizers_in(rules.options, "default")
    return "regex" not in names or names.index("basic") < names.index("regex")


def _no_scopes(rules: UrlRules) -> list[str]:
    folder = rules.options.url_rules_dir
    if not folder or "regex-normalize.xml" not in dict(rules.files or ()):
        return []
    scopes = {path.name: path.stem.removeprefix("regex-normalize-")
              for path in sorted(pathlib.Path(folder).glob("regex-normalize-*.xml"))}  # fmt: skip
    return [
        f"{name} is not read: {scope!r} is none of the scopes {', '.join(SCOPES)}"
        for name, scope in scopes.items()
        if scope not in SCOPES
    ]
