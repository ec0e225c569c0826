"""Takes over Nutch's folder conf: writes ``nutbeam.toml`` and the files that it names, and a report."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ...web.base.errors import UsageError
from ...web.base.options import default_text, parse_value, value_text
from ..base.command import DEFAULT_CONFIG, CommandModule, configuration
from .conf_files import FILES, ImportedFile, has_proxy_login, import_files, plugins_of
from .conf_report import ConfigurationReport, ImportedProperty, OtherDefault
from .conf_settings import OptionsOfCommands, Setting, config_lines, lines_of_settings
from .copy_checks import faults_of_copies
from .hadoop_configuration import VARIABLE, Configuration, PropertyEntry, read_configuration
from .nutch_properties import convert_property
from .property_catalogue import ConvertedProperty, read_defaults

CONFIGURATION_FILES = ("nutch-default.xml", "nutch-site.xml")
_NEWEST = "1.22"
# Options whose default has another form than Nutch's and the same meaning, or is of a plug-in that is off.
_SAME_MEANING = ("min_interval", "max_interval", "rank_rounds", "detect_language", "file_parent")
_VERSION = re.compile(r"Nutch-(\d+)\.(\d+)")
# Read for the files, and not an option by themselves.
_FILE_PROPERTIES = {file.property_name: file.usual_name for file in FILES if file.property_name}


def import_configuration(
    conf_folder: str, out_folder: str, modules: Mapping[str, CommandModule]
) -> ConfigurationReport:
    """Converts Nutch's configuration; writes nothing unless all of it can be read.

    Properties that have Nutch's default are not written.

    Args:
        conf_folder: Nutch's folder conf, with ``nutch-site.xml``.
        out_folder: Where ``nutbeam.toml`` and copies of files are written; it must have no such file.
        modules: The modules of all commands, as in ``Invocation.modules``.

    Raises:
        UsageError: Files are missing or cannot be read; the message has all faults, with their places.
    """
    folder, out, options = Path(conf_folder), Path(out_folder), OptionsOfCommands(modules)
    if not folder.is_dir():
        raise UsageError(
            f"--conf must be Nutch's folder conf, got {conf_folder!r}: it is no folder"
        )
    if not any((folder / name).is_file() for name in CONFIGURATION_FILES):
        raise UsageError(
            f"--conf must be Nutch's folder conf, got {conf_folder!r}: it has no {CONFIGURATION_FILES[1]}"
        )
    read = read_configuration(folder, CONFIGURATION_FILES)
    with configuration():
        version = _version_of(read)
        entries = _changed_entries(read, version)
        values = {name: entry.value for name, entry in entries.items()}
        parts, faults = _active_parts(values, version)
        files, file_faults = import_files(folder, entries, parts)
        faults = [*read.faults, *faults, *file_faults]
        properties = [_import_property(*entry, values, files) for entry in entries.items()]
        properties, settings, wishes = _check_all(properties, files, options, faults)
    shown = Path() if out.resolve() == Path.cwd() else out.resolve()
    lines = config_lines(settings, shown, f"Nutch {version}, {conf_folder}", options)
    _write(out, lines, files)
    return ConfigurationReport(
        conf_folder, version, str(out / DEFAULT_CONFIG), tuple(properties), tuple(files), read.remarks + wishes,
        tuple(_other_defaults(version, {setting.name for setting in settings}, options)),
    )  # fmt: skip


def _version_of(read: Configuration) -> str:
    """Returns the version of Nutch that its default file has; the newest without such a file."""
    entry = read.entries.get("http.agent.version")
    match = _VERSION.search(entry.value) if entry else None
    if match is None or entry is None or entry.file != CONFIGURATION_FILES[0]:
        return _NEWEST
    return f"{match[1]}.{match[2]}"


def _number(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def default_of(name: str, version: str) -> str | None:
    """Returns a property's default in a version of Nutch, or in the nearest one; None if it has none.

    >>> default_of("http.content.limit", "1.15"), default_of("http.content.limit", "2.3")
    ('65536', '65536')
    """
    wanted = (
        (2, 4) if version.startswith("2.") else max((1, 9), min(_number(version), _number(_NEWEST)))
    )
    for versions, value in read_defaults().get(name, ()):
        first, _, last = versions.partition("-")
        if _number(first) <= wanted <= _number(last or first):
            return value.replace("VERSION", version)
    return None


def _changed_entries(read: Configuration, version: str) -> dict[str, PropertyEntry]:
    """Returns the properties that differ from the version's defaults, by the names that we know."""
    changed = {}
    for name, entry in read.entries.items():
        if " ".join(entry.value.split()) == default_of(name, version):
            continue
        is_usual = name == "http.agent.version" or "${" in (default_of(name, version) or "")
        if entry.file == CONFIGURATION_FILES[0] and is_usual:
            continue
        old = (
            name == "db.ignore.internal.links" and default_of(f"linkdb{name[2:]}", version) is None
        )
        changed["linkdb.ignore.internal.links" if old else name] = entry
    return changed


def _active_parts(values: Mapping[str, str], version: str) -> tuple[frozenset[str], list[str]]:
    """Returns the plug-ins that are on, and what the schedule reads; and faults."""
    includes = values.get("plugin.includes") or default_of("plugin.includes", version) or ""
    schedule = values.get("db.fetch.schedule.class", "").rpartition(".")[2]
    parts = {
        "AdaptiveFetchSchedule": {"Adaptive"},
        "MimeAdaptiveFetchSchedule": {"Adaptive", "MimeAdaptive"},
    }
    faults = []
    try:
        plugins = plugins_of(includes, values.get("plugin.excludes", ""))
    except ValueError as error:
        faults = [str(error)]
        plugins = plugins_of(default_of("plugin.includes", version) or "", "")
    return plugins | parts.get(schedule, set()), faults


def _import_property(
    name: str, entry: PropertyEntry, values: Mapping[str, str], files: Iterable[ImportedFile]
) -> ImportedProperty:
    """Converts a property, under the name that it has today."""
    if unknown := VARIABLE.search(entry.value):
        fault = f"{unknown[0]} stands for no property: write its value"
        return ImportedProperty(entry, ConvertedProperty(fault=fault))
    if name in ("http.proxy.username", "http.proxy.password") and has_proxy_login(values):
        note = "it is in the file of --http_credentials"
        return ImportedProperty(entry, ConvertedProperty(note=note))
    usual_name = _FILE_PROPERTIES.get(name)
    if usual_name is None:
        return ImportedProperty(entry, convert_property(name, entry.value, values))
    file_name = entry.value.strip() or usual_name
    texts = [file.text for file in files if file.name == file_name]
    return ImportedProperty(
        entry, ConvertedProperty(note="; ".join(texts) or "no plug-in reads it")
    )


def _check_all(
    properties: list[ImportedProperty],
    files: list[ImportedFile],
    options: OptionsOfCommands,
    faults: Iterable[str] = (),
) -> tuple[list[ImportedProperty], list[Setting], tuple[str, ...]]:
    """Returns the properties, the lines of the file, and what commands still want.

    Values that options refuse are not supported.

    Raises:
        ValueError: There were faults before, or copied files are refused by their readers; the message
            has all, with the names of the files, and mostly with the lines.
    """
    properties = [options.refuse_wrong_value(each) for each in properties]
    with tempfile.TemporaryDirectory(prefix="nutbeam-conf-") as scratch:
        base = Path(scratch)
        _write_copies(base, files)
        texts = [*faults, *faults_of_copies(base, files)]
        if texts:
            raise ValueError("; ".join(_with_names(text, base, files) for text in texts))
        while True:
            settings = list(lines_of_settings(properties, files, options))
            refusals = options.refusals(settings, base)
            culprits = [
                (at, text)
                for at, each in enumerate(properties)
                for names, text in refusals
                if names & {*each.converted.options}
            ]
            if not culprits:
                copies = {setting.name for setting in settings if setting.is_copy}
                texts = [
                    _with_names(text, base, files) for names, text in refusals if names & copies
                ]
                if texts:
                    raise ValueError("; ".join(dict.fromkeys(texts)))
                wishes = tuple(dict.fromkeys(text for _, text in refusals))
                return properties, settings, wishes
            at, text = culprits[0]
            fault = ConvertedProperty(fault=_with_names(text, base, files))
            properties[at] = properties[at]._replace(converted=fault)


def _with_names(text: str, base: Path, files: Iterable[ImportedFile]) -> str:
    """Returns a message about copies with the names of their originals."""
    for file in files:
        if file.copy:
            text = text.replace(str(base / file.copy), file.name)
    return text.replace(f"{base}/", "")


def _write_copies(base: Path, files: Iterable[ImportedFile]) -> None:
    for file in files:
        if file.copy:
            path = base / file.copy
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600 if file.is_secret else 0o644)
            path.write_bytes(file.data)


def _write(out: Path, lines: Iterable[str], files: list[ImportedFile]) -> None:
    """Writes the copies, then the file, so that a file that is there names only files that are there.

    What is there already, byte for byte, stays: the same import may run again.

    Raises:
        UsageError: One of them is there already with another content, or cannot be written.
    """
    text = "".join(lines).encode()
    contents = {file.copy: file.data for file in files if file.copy} | {DEFAULT_CONFIG: text}
    try:
        for name, content in contents.items():
            if (out / name).exists() and (out / name).read_bytes() != content:
                raise UsageError(
                    f"{str(out / name)!r} is there already: give another folder, or remove it"
                )
        out.mkdir(parents=True, exist_ok=True)
        _write_copies(out, files)
        (out / DEFAULT_CONFIG).write_bytes(text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{str(out)!r} must be a folder that can be written: {reason}") from error


def _other_defaults(
    version: str, names: set[str], options: OptionsOfCommands
) -> Iterator[OtherDefault]:
    """Yields the options that nothing sets, and whose default differs from Nutch's."""
    for name in read_defaults():
        value = default_of(name, version)
        if (
            value is None
            or name in _FILE_PROPERTIES
            or name == "http.agent.version"
            or "${" in value
        ):
            continue
        for option, text in convert_property(name, value).options.items():
            declared = options.by_name[option][0][1]
            own, in_nutch = (
                default_text(declared),
                value_text(declared, parse_value(declared, text)),
            )
            is_known = option in names or option in _SAME_MEANING or name == "plugin.includes"
            if not is_known and own != in_nutch:
                yield OtherDefault(option, own, in_nutch, name)
