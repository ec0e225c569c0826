"""The report of what became of Nutch's configuration."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...web.base.json_logs import without_login
from .conf_files import ImportedFile
from .hadoop_configuration import PropertyEntry
from .property_catalogue import ConvertedProperty

_SECRET = re.compile(
    r"(?i)pass(?:word|wd)?$|keypass|storepass|licensekey|auth\.users$|token|secret"
)
_LONGEST = 100


class ImportedProperty(NamedTuple):
    """What became of a property.

    Attributes:
        entry: Where it is, with its value.
        converted: What it is in nutbeam.
    """

    entry: PropertyEntry
    converted: ConvertedProperty

    @property
    def shown_value(self) -> str:
        """The value for people: short, and without secrets."""
        if _SECRET.search(self.entry.name) and self.entry.value:
            return "***"
        value = without_login(" ".join(self.entry.value.split()))
        return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"


class OtherDefault(NamedTuple):
    """An option whose default is another one than Nutch's, and that nothing sets.

    Attributes:
        option: Its name.
        value: Its default.
        nutch_value: The value that would be Nutch's default.
        property_name: The property.
    """

    option: str
    value: str
    nutch_value: str
    property_name: str


class ConfigurationReport(NamedTuple):
    """What became of a folder conf.

    Attributes:
        folder: The folder.
        version: The version of Nutch.
        config_file: The file that was written.
        properties: The properties that differ from Nutch's defaults.
        files: The files.
        remarks: Entries of files that do not count, and why.
        other_defaults: Defaults that differ, and are not written.
    """

    folder: str
    version: str
    config_file: str
    properties: tuple[ImportedProperty, ...]
    files: tuple[ImportedFile, ...]
    remarks: tuple[str, ...]
    other_defaults: tuple[OtherDefault, ...]

    def lines(self) -> Iterator[str]:
        """Yields the report for people."""
        yield (
            f"Nutch {self.version}, {self.folder}: {len(self.properties)} properties differ from its "
            f"defaults; written to {self.config_file}"
        )
        for outcome in ("mapped", "not needed", "not supported"):
            properties = [each for each in self.properties if each.converted.outcome == outcome]
            files = [each for each in self.files if each.outcome == outcome]
            if properties or files:
                yield ""
                yield f"{outcome}:"
            for each in properties:
                yield f"  {each.entry.name} = {each.shown_value}: {_answer(each)} ({each.entry.place})"
            for file in files:
                copy = f" → {file.copy}" if file.copy else ""
                yield f"  {file.name}{copy}: {file.text}"
        if self.remarks:
            yield ""
            yield "to know:"
            yield from (f"  {remark}" for remark in self.remarks)
        if self.other_defaults:
            yield ""
            yield "defaults that differ, and stay nutbeam's:"
            for default in self.other_defaults:
                yield (
                    f"  {default.option} = {default.value or 'empty'}, in Nutch {default.nutch_value or 'empty'} "
                    f"({default.property_name})"
                )

    def record(self) -> dict[str, Any]:
        """Returns the report for programs."""
        return {
            "folder": self.folder,
            "version": self.version,
            "config_file": self.config_file,
            "properties": [
                {
                    "name": each.entry.name, "value": each.shown_value, "file": each.entry.file,
                    "line": each.entry.line, "outcome": each.converted.outcome,
                    "options": dict(each.converted.options), "note": each.converted.note,
                    "fault": each.converted.fault,
                }
                for each in self.properties
            ],
            "files": [
                {"name": file.name, "outcome": file.outcome, "text": file.text, "copy": file.copy}
                for file in self.files
            ],
            "remarks": list(self.remarks),
            "other_defaults": [default._asdict() for default in self.other_defaults],
        }  # fmt: skip


def _answer(each: ImportedProperty) -> str:
    converted = each.converted
    options = ", ".join(
        f"{name} = {without_login(text) or 'empty'}" for name, text in converted.options.items()
    )
    if converted.fault:
        return converted.fault + (f"; the rest is {options}" if options else "")
    return "; ".join(filter(None, (options, converted.note)))
