"""Reads files of rules for extraction, and says of a mistake in which line it is, and what was meant.

::

    [[rule]]
    name = "product"
    host = "shop.example"
    url = "/product/"
    [rule.fields]
    name = {css = "h1", required = true}
    price = {css = ".price", type = "decimal", first_of = ["json-ld:Product.offers.price", "css:.amount"]}
"""

import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import regex

from ..base.wording import quote_value
from ..patterns.patterns import Searcher
from ..rule_files.rule_files import RuleFile, read_rule_file
from .extraction_rules import (
    ANY_HOST,
    LIST_TYPES,
    ROW_COLUMNS,
    SCALAR_TYPES,
    FieldRule,
    PageRule,
    RuleSet,
)
from .field_sources import CSS, XPATH, FieldSource, read_source, source_of

EXTRACT_FLAG = "--extract"
MAX_RULES, MAX_FIELDS = 1_000, 200
_SET_KEYS = ("name", "rule")
_RULE_KEYS = ("name", "host", "hosts", "url", "each", "fields")
_FIELD_KEYS = (
    "css",
    "xpath",
    "first_of",
    "type",
    "regex",
    "required",
    "default",
    "of",
    "point",
    "date_order",
)
_SET_NAME, _NAME = re.compile(r"[a-z][a-z0-9_]{0,62}"), re.compile(r"[a-z_][a-z0-9_]{0,62}")
_HOST = re.compile(
    r"\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::\d{1,5})?|\[[0-9a-f:.]+\](?::\d{1,5})?"
)
# A key of toml: words, or texts in quotes, with points between them.
_PART = r"""[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*'"""
_KEYS = rf"\s*(?P<keys>(?:{_PART})(?:\s*\.\s*(?:{_PART}))*)\s*"
_HEADER, _KEY = re.compile(rf"\s*\[+{_KEYS}\]"), re.compile(rf"{_KEYS}=")
_LINE = re.compile(r" \(at line (\d+), column \d+\)")


def read_extraction_file(path: str, flag: str = EXTRACT_FLAG) -> RuleSet:
    """Reads a file of rules.

    Args:
        path: The file.
        flag: The option that names it, for messages.

    Raises:
        ValueError: It cannot be read, or a rule is wrong; the message has the line, and what was meant.
    """
    file = read_rule_file(path, flag=flag)
    return read_extraction_rules(file, re.sub(r"\W+", "_", Path(path).stem.lower()).strip("_"))


def read_extraction_rules(file: RuleFile, default_name: str = "") -> RuleSet:
    """Reads the text of a file of rules; see ``read_extraction_file``.

    Args:
        file: The file.
        default_name: Name of the set if the file has none.
    """
    return _RuleReader(file).read(default_name)


class _RuleReader:
    """Reads one file; knows its name and its lines, for messages."""

    def __init__(self, file: RuleFile) -> None:
        self._file, self._lines = file, _TomlLines(file.text)

    def read(self, default_name: str) -> RuleSet:
        try:
            content = tomllib.loads(self._file.text.removeprefix("\ufeff").replace("\r\n", "\n"))
        except tomllib.TOMLDecodeError as error:
            place, why = _LINE.search(str(error)), _LINE.sub("", str(error)).lower()
            last = self._file.text.count("\n") if "end of document" in why else 0
            raise self._mistake(int(place[1]) if place else last, f"it is no toml: {why}") from None
        except RecursionError:
            raise self._mistake(0, "it is nested too deeply") from None
        self._check_keys(content, _SET_KEYS, 0, "a file of rules")
        name = content.get("name", default_name)
        if not isinstance(name, str) or not _SET_NAME.fullmatch(name):
            line = self._lines.of_key(0, "name")
            raise self._mistake(
                line, f"name must be lower-case letters, digits and _, got {quote_value(name)}"
            )
        records = content.get("rule")
        if (
            not isinstance(records, list)
            or not all(isinstance(one, dict) for one in records)
            or not records
        ):
            raise self._mistake(0, "it must have [[rule]] sections")
        if len(records) > MAX_RULES:
            raise self._mistake(0, f"it may have {MAX_RULES:,} rules at most, got {len(records):,}")
        rules = tuple(self._read_rule(record, number) for number, record in enumerate(records, 1))
        self._check_names(rules)
        version = hashlib.sha256(self._file.text.encode()).hexdigest()[:12]
        return RuleSet(name, version, rules, self._file.text)

    def _read_rule(self, record: dict[str, Any], number: int) -> PageRule:
        line = self._lines.of_rule(number)
        self._check_keys(record, _RULE_KEYS, number, "a rule")
        name = record.get("name", f"rule{number}")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self._mistake(
                self._lines.of_key(number, "name"),
                f"name must be lower-case letters, digits and _, got {quote_value(name)}",
            )
        fields = record.get("fields")
        if not isinstance(fields, dict) or not fields:
            raise self._mistake(line, f"rule {name!r} has no [rule.fields]")
        if len(fields) > MAX_FIELDS:
            raise self._mistake(
                line, f"a rule may have {MAX_FIELDS} fields at most, got {len(fields)}"
            )
        each = self._read_each(record, number)
        field_rules = tuple(
            self._read_field(key, value, number, each) for key, value in fields.items()
        )
        url = (
            self._pattern(record["url"], self._lines.of_key(number, "url"), "url")
            if "url" in record
            else None
        )
        return PageRule(name, self._read_hosts(record, number), url, each, field_rules, line)

    def _read_hosts(self, record: dict[str, Any], number: int) -> tuple[str, ...]:
        if "host" in record and "hosts" in record:
            raise self._mistake(self._lines.of_key(number, "hosts"), "give host or hosts, not both")
        key = "hosts" if "hosts" in record else "host"
        hosts = record.get(key, ANY_HOST)
        names = [hosts] if isinstance(hosts, str) else hosts
        if not isinstance(names, list) or not names:
            names = [hosts]
        for name in names:
            if not isinstance(name, str) or not _HOST.fullmatch(name.lower()):
                raise self._mistake(
                    self._lines.of_key(number, key),
                    f"a host is shop.example, *.shop.example or *, got {quote_value(name)}",
                )
        return tuple(name.lower() for name in names)

    def _read_each(self, record: dict[str, Any], number: int) -> FieldSource | None:
        if "each" not in record:
            return None
        text = record["each"]
        kind, _, rest = str(text).partition(":")
        with self._naming(number, "each", text):
            text = _checked_text(text)
            source = source_of(XPATH, rest.strip()) if kind == XPATH else source_of(CSS, text)
            if source.css is not None and any(one.attribute for one in source.css.alternatives):
                raise ValueError("items are elements: ::text and ::attr(…) belong to fields")
        return source

    def _read_field(
        self, name: str, value: Any, number: int, each: FieldSource | None
    ) -> FieldRule:
        line = self._lines.of_field(number, name)
        if not _NAME.fullmatch(name):
            raise self._mistake(line, f"a field is lower-case letters, digits and _, got {name!r}")
        if name in ROW_COLUMNS:
            raise self._mistake(
                line, f"{name!r} is a column of the rows: give the field another name"
            )
        facts = {"first_of": [value]} if isinstance(value, str) else value
        if not isinstance(facts, dict):
            raise self._mistake(
                line,
                f'field {name!r} is a text such as "css:h1" or {{css = "h1", …}}, got {quote_value(value)}',
            )
        self._check_field_keys(facts, name, line)
        sources = tuple(self._read_sources(facts, name, line))
        if not sources:
            raise self._mistake(line, f"field {name!r} has no source: give css, xpath or first_of")
        of_page = facts.get("of", "item") == "page"
        for source in sources:
            if each is not None and source.in_items and not of_page and source.kind != each.kind:
                raise self._mistake(
                    line,
                    f"field {name!r}: the items are chosen by {each.kind}, so {source.label!r} finds nothing "
                    f'in them: write {each.kind}, or of = "page"',
                )
        pattern = (
            self._pattern(facts["regex"], line, f"field {name!r}: regex")
            if "regex" in facts
            else None
        )
        return FieldRule(
            name, sources, facts.get("type", "text"), pattern, facts.get("required", False),
            str(facts.get("default", "")), of_page, facts.get("point", ""), facts.get("date_order", ""),
        )  # fmt: skip

    def _check_field_keys(self, facts: Mapping[str, Any], name: str, line: int) -> None:
        for key in facts:
            if key not in _FIELD_KEYS:
                what = f"field {name!r} has no {key!r}{_meant(key, _FIELD_KEYS)}"
                raise self._mistake(line, what)
        choices: dict[str, tuple[Any, ...]] = {
            "type": (*SCALAR_TYPES, *LIST_TYPES), "of": ("page", "item"), "point": (".", ","),
            "date_order": ("dmy", "mdy"), "required": (True, False),
        }  # fmt: skip
        for key, values in choices.items():
            if key in facts and (
                facts[key] not in values or type(facts[key]) is not type(values[0])
            ):
                shown = ", ".join(str(value).lower() for value in values[:9])
                more = " or 'list of …'" if key == "type" else ""
                meant = _meant(str(facts[key]), [str(value) for value in values])
                raise self._mistake(
                    line,
                    f"field {name!r}: {key} must be {shown}{more}, got {quote_value(facts[key])}{meant}",
                )

    def _read_sources(
        self, facts: Mapping[str, Any], name: str, line: int
    ) -> Iterator[FieldSource]:
        """Yields the sources of a field, in the order in which they are written."""
        for key, value in facts.items():
            if key not in (CSS, XPATH, "first_of"):
                continue
            texts = value if isinstance(value, list) else [value]
            for text in texts:
                label = "source" if key == "first_of" else key
                with _Naming(self, line, f"field {name!r}: {label}", text):
                    text = _checked_text(text).strip()
                    source = read_source(text) if key == "first_of" else source_of(key, text)
                yield source

    def _pattern(self, text: Any, line: int, label: str) -> Searcher:
        with _Naming(self, line, label, text):
            try:
                return regex.compile(_checked_text(text), regex.VERSION1)
            except (regex.error, OverflowError, RecursionError) as error:
                raise ValueError(f"it is no regular expression: {error}") from None

    def _check_names(self, rules: Iterable[PageRule]) -> None:
        """Checks that rules have different names, and fields of one name one type."""
        lines, types = dict[str, int](), dict[str, tuple[str, str]]()
        for number, rule in enumerate(rules, 1):
            if rule.name in lines:
                first = lines[rule.name]
                raise self._mistake(
                    rule.line, f"rule {rule.name!r} is there twice: see line {first}"
                )
            lines[rule.name] = rule.line
            for field in rule.fields:
                kind, where = types.setdefault(field.name, (field.type, rule.name))
                if kind != field.type:
                    raise self._mistake(
                        self._lines.of_field(number, field.name),
                        f"field {field.name!r} is {field.type!r} here and {kind!r} in rule {where!r}: a column "
                        "has one type",
                    )

    def _check_keys(
        self, record: Mapping[str, Any], keys: Iterable[str], number: int, what: str
    ) -> None:
        for key in record:
            if key not in keys:
                known = [*keys, *(_FIELD_KEYS if number else ())]
                line = self._lines.of_key(number, key)
                raise self._mistake(line, f"{what} has no {key!r}{_meant(key, known)}")

    def _naming(self, number: int, key: str, text: Any) -> "_Naming":
        return _Naming(self, self._lines.of_key(number, key), key, text)

    def _mistake(self, line: int, message: str) -> ValueError:
        place = f"{self._file.name}:{line}" if line else self._file.name
        return ValueError(f"{place}: {message}")


class _Naming:
    """Adds file, line and value to errors."""

    def __init__(self, reader: _RuleReader, line: int, label: str, text: Any) -> None:
        self._reader, self._line, self._label, self._text = reader, line, label, text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError):
            message = f"{self._label} {quote_value(self._text)}: {error}{self._meant()}"
            raise self._reader._mistake(self._line, message) from None

    def _meant(self) -> str:
        """Returns what a source without its kind may mean."""
        text = self._text
        if (
            not isinstance(text, str)
            or "field" not in self._label
            or not self._label.endswith("source")
        ):
            return ""
        if re.match(r"(?:[a-z-]+):", text):
            return ""
        return f"; did you mean {f'xpath:{text}' if text.startswith('/') else f'css:{text}'!r}?"


def _checked_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("it must be a text")


def _meant(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


class _TomlLines:
    """Finds the lines of keys in a text, as people write toml."""

    def __init__(self, text: str) -> None:
        self._rules = dict[int, int]()
        self._keys = dict[tuple[int, tuple[str, ...]], int]()
        owner, section = 0, list[str]()  # 0: the set
        for at, line in enumerate(text.splitlines(), 1):
            if header := _HEADER.match(line):
                section = _names_of_keys(header["keys"])
                if line.lstrip().startswith("[[") and section == ["rule"]:
                    self._rules[len(self._rules) + 1] = at
                owner = len(self._rules) if section[0] == "rule" else 0
                names = section = section[1:] if owner else section
            elif key := _KEY.match(line):
                names = [*section, *_names_of_keys(key["keys"])]
            else:
                continue
            for length in range(1, len(names) + 1):
                self._keys.setdefault((owner, tuple(names[:length])), at)

    def of_rule(self, number: int) -> int:
        """Returns the line at which a rule begins; 0 if it is not known."""
        return self._rules.get(number, 0)

    def of_key(self, number: int, key: str) -> int:
        """Returns the line of a key of a rule, or of the set; that of the rule if it is not known."""
        return self._keys.get((number, (key,)), self.of_rule(number))

    def of_field(self, number: int, name: str) -> int:
        """Returns the line of a field; that of the fields or of the rule if it is not known."""
        return self._keys.get((number, ("fields", name)), self.of_key(number, "fields"))


def _names_of_keys(text: str) -> list[str]:
    """Returns the names in a key of toml.

    >>> _names_of_keys("rule . fields.'my price'")
    ['rule', 'fields', 'my price']
    """
    return [part.strip("\"'") for part in re.findall(_PART, text)]
