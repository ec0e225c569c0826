"""What becomes of the files in Nutch's folder conf: most are read as they are, under an option."""

import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from ...policy.indexing.index_options import FOREIGN_KINDS
from ...web.base.errors import UsageError
from ...web.base.wording import quote_value
from ...web.rule_files.rule_files import RuleFile, entries, read_xml
from .hadoop_configuration import PropertyEntry
from .property_catalogue import read_catalogue

RULES_FOLDER = "rules"  # the folder of --url_rules_dir
CREDENTIALS = "credentials.txt"
_LARGEST_FILE = 256 << 20


class ImportedFile(NamedTuple):
    """What became of a file.

    Attributes:
        name: Its name in the folder conf.
        outcome: ``mapped``, ``not needed`` or ``not supported``.
        text: The option that reads it, or why not.
        copy: Its path in the new folder; empty if it has none.
        option: The option that names the copy; empty if none does.
        data: The content of the copy.
        is_secret: Whether only the owner may read the copy.
    """

    name: str
    outcome: str
    text: str
    copy: str = ""
    option: str = ""
    data: bytes = b""
    is_secret: bool = False


class ConfFileKind(NamedTuple):
    """A file that Nutch reads.

    Attributes:
        usual_name: Its name, unless a property has another one.
        property_name: That property; empty if there is none.
        plugins: The plug-ins that read it, one of which must be on; none: it is always read.
        option: The option that reads it.
    """

    usual_name: str
    property_name: str
    plugins: tuple[str, ...]
    option: str


FILES = (
    ConfFileKind("regex-urlfilter.txt", "urlfilter.regex.file", ("urlfilter-regex",), ""),
    ConfFileKind("regex-normalize.xml", "urlnormalizer.regex.file", ("urlnormalizer-regex",), ""),
    *(
        ConfFileKind(usual_name, name, plugins, "")
        for name, usual_name, plugins in (
            ("urlfilter.automaton.file", "automaton-urlfilter.txt", ("urlfilter-automaton",)),
            ("urlfilter.prefix.file", "prefix-urlfilter.txt", ("urlfilter-prefix",)),
            ("urlfilter.suffix.file", "suffix-urlfilter.txt", ("urlfilter-suffix",)),
            ("urlfilter.domain.file", "domain-urlfilter.txt", ("urlfilter-domain",)),
            (
                "urlfilter.domaindenylist.file",
                "domaindenylist-urlfilter.txt",
                ("urlfilter-domaindenylist", "urlfilter-domainblacklist"),
            ),
            ("urlfilter.fast.file", "fast-urlfilter.txt", ("urlfilter-fast",)),
            (
                "db.ignore.external.exemptions.file",
                "db-ignore-external-exemptions.txt",
                ("urlfilter-ignoreexempt",),
            ),
            ("urlnormalizer.protocols.file", "protocols.txt", ("urlnormalizer-protocol",)),
            ("urlnormalizer.hosts.file", "host-urlnormalizer.txt", ("urlnormalizer-host",)),
            ("urlnormalizer.slashes.file", "slashes.txt", ("urlnormalizer-slash",)),
        )
    ),
    ConfFileKind("adaptive-mimetypes.txt", "db.fetch.schedule.mime.file", ("MimeAdaptive",), "mime_rates"),
    ConfFileKind("adaptive-host-specific-intervals.txt", "", ("Adaptive",), "host_intervals"),
    ConfFileKind("index-writers.xml", "indexer.indexwriters.file", (), "index_writers"),
    ConfFileKind("exchanges.xml", "exchanges.exchanges.file", ("exchange-jexl",), "exchanges"),
    ConfFileKind("httpclient-auth.xml", "http.auth.file", ("protocol-httpclient",), "http_credentials"),
    ConfFileKind("subcollections.xml", "subcollections.config", ("subcollection",), "subcollections_file"),
    ConfFileKind("mimetype-filter.txt", "mimetype.filter.file", ("mimetype-filter",), "mimetype_file"),
    ConfFileKind("goldstandard.txt", "cosine.goldstandard.file", ("scoring-similarity",), "goldstandard_file"),
    ConfFileKind("stopwords.txt", "scoring.similarity.stopword.file", ("scoring-similarity",), "stopword_file"),
)  # fmt: skip
# Files with rules that have no counterpart, and what to do.
UNSUPPORTED_FILES = {
    "cookies.txt": "cookies for single hosts cannot be given; --http_cookies keeps those of servers",
    "regex-parsefilter.txt": "write a parse filter as a plug-in, or use --index_expr",
    "naivebayes-train.txt": "write a parse filter as a plug-in",
    "host-protocol-mapping.txt": "one HTTP client fetches from all hosts",
    "jsoup-extractor.xml": "write a parse filter as a plug-in",
}
# Files that are not read, and why.
NEEDLESS_FILES = {
    "parse-plugins.xml": "the type of a page chooses its parser",
    "domain-suffixes.xml": "the list of public suffixes is built in",
    "tika-mimetypes.xml": "types of documents are built in",
    "tika-config.xml": "there is no Tika",
    "schema.xml": "it is for Solr, which keeps it",
    "solrindex-mapping.xml": "fields are renamed in the file of --index_writers",
    "log4j.properties": "--log_level and --log_format set what is logged",
    "log4j2.xml": "--log_level and --log_format set what is logged",
    "agents.txt": "a crawler has one name",
}


def import_files(
    folder: Path, entries: Mapping[str, PropertyEntry], plugins: frozenset[str]
) -> tuple[list[ImportedFile], list[str]]:
    """Reads the files that Nutch would read, and returns what becomes of each; and all faults.

    A fault is that a file is missing, or cannot be read.

    Args:
        folder: The folder conf.
        entries: The properties that are set.
        plugins: The plug-ins that are on, and ``Adaptive`` or ``MimeAdaptive`` for the schedule.
    """
    imported: list[ImportedFile] = []
    faults: list[str] = []

    def add(read: Callable[[], Iterable[ImportedFile]], before: str = "") -> None:
        try:
            imported.extend(read())
        except (ValueError, UsageError) as error:
            faults.append(f"{before}{error}")

    for file in FILES:
        entry = entries.get(file.property_name)
        named = entry is not None and entry.value.strip() not in ("", file.usual_name)
        before = f"{entry.place}: {entry.name}: " if entry and named else ""
        add(functools.partial(_import_named, file, folder, entry, plugins), before)
    for path in sorted(folder.glob("regex-normalize-*.xml")):
        add(functools.partial(_import_scoped, folder, path.name))
    imported = _with_proxy_login(imported, {name: entry.value for name, entry in entries.items()})
    writers = b"".join(file.data for file in imported if file.option == "index_writers")
    routes = [file for file in imported if file.option == "exchanges"]
    imported = [file for file in imported if file.option != "exchanges"]
    for route_file in routes:
        add(functools.partial(_keep_routes, route_file, writers))
    for name, advice in UNSUPPORTED_FILES.items():
        add(functools.partial(_refuse_entries, folder, name, advice))
    for name, reason in NEEDLESS_FILES.items():
        if (folder / name).is_file():
            imported.append(ImportedFile(name, "not needed", reason))
    return imported, faults


def _import_named(
    file: ConfFileKind, folder: Path, entry: PropertyEntry | None, plugins: frozenset[str]
) -> list[ImportedFile]:
    """Imports a file, which a property may name.

    Raises:
        ValueError: It is missing, or cannot be read.
    """
    name = (entry.value.strip() if entry else "") or file.usual_name
    if file.plugins and not plugins & {*file.plugins}:
        text = f"its plug-in is off: {' or '.join(file.plugins)}"
        is_there = (folder / name).is_file()
        return [ImportedFile(name, "not needed", text)] if is_there else []
    if (folder / name).is_file():
        return _import_file(file, name, _read(folder, name), plugins)
    if name != file.usual_name:
        raise ValueError(
            f"{folder} has no file {quote_value(name)}, which {file.property_name} names"
        )
    if not file.option and name not in ("regex-urlfilter.txt", "regex-normalize.xml"):
        raise ValueError(f"{folder} has no file {name}, which plug-in {file.plugins[0]} needs")
    return []


def _import_scoped(folder: Path, name: str) -> list[ImportedFile]:
    return [_copy_rule_file(name, name, _read(folder, name))]


def _refuse_entries(folder: Path, name: str, advice: str) -> list[ImportedFile]:
    if (folder / name).is_file() and has_entries(_read(folder, name)):
        return [ImportedFile(name, "not supported", advice)]
    return []


def has_proxy_login(properties: Mapping[str, str]) -> bool:
    """Returns whether the properties have a proxy, and a user name and a password for it."""
    names = ("http.proxy.host", "http.proxy.username", "http.proxy.password")
    return all(properties.get(name, "").strip() for name in names)


def _with_proxy_login(
    imported: list[ImportedFile], properties: Mapping[str, str]
) -> list[ImportedFile]:
    """Returns the files; the login for the proxy is a line of the logins."""
    if not has_proxy_login(properties):
        return imported
    host, port, user, password = (
        properties.get(f"http.proxy.{name}", "").strip()
        for name in ("host", "port", "username", "password")
    )
    line = f"http://{host}:{port or 8080} basic {user} {password}\n".encode()
    others = [file for file in imported if file.option != "http_credentials"]
    logins = [file for file in imported if file.option == "http_credentials"] or [
        ImportedFile(
            "http.proxy.password", "mapped", "--http_credentials reads the login for the proxy",
            CREDENTIALS, "http_credentials", b"", True,
        )
    ]  # fmt: skip
    return [*others, *(file._replace(data=file.data + line) for file in logins)]


def has_entries(data: bytes) -> bool:
    """Returns whether a file of lines has one that is no comment.

    >>> has_entries(b"# a\\n\\n"), has_entries(b"<a/>")
    (False, True)
    """
    return any(True for _ in entries(data.decode("utf-8", "replace")))


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"only files of {folder} are read, got {quote_value(name)}")
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError(f"{name} is larger than {_LARGEST_FILE:,} bytes")
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or os.strerror(error.errno or 0)).lower()
        raise ValueError(f"{name} must be a readable file: {reason}") from error


def _import_file(
    file: ConfFileKind, name: str, data: bytes, plugins: frozenset[str]
) -> list[ImportedFile]:
    if not file.option:
        return [_copy_rule_file(name, file.usual_name, data)]
    if file.option == "index_writers":
        return _import_writers(name, data, plugins)
    if file.option == "http_credentials":
        return import_credentials(name, data)
    if file.option == "host_intervals" and not has_entries(data):
        return [ImportedFile(name, "not needed", "it has no lines")]
    base = Path(name).name
    return [ImportedFile(name, "mapped", f"--{file.option} reads it", base, file.option, data)]


def _copy_rule_file(name: str, usual_name: str, data: bytes) -> ImportedFile:
    text = "it is read from the folder of --url_rules_dir"
    return ImportedFile(name, "mapped", text, f"{RULES_FOLDER}/{usual_name}", "", data)


def _import_writers(name: str, data: bytes, plugins: frozenset[str]) -> list[ImportedFile]:
    """Takes the writers over whose plug-ins are on: Nutch's file lists all that there are."""
    root = read_xml(RuleFile(name, data.decode("utf-8", "replace")))
    left_out, kept = [], []
    for writer in root.findall("writer"):
        kind = (writer.get("class") or "").split(".")[-2:][0]
        ids = {f"indexer-{kind}", f"indexer-{_PLUGIN_OF_KIND.get(kind, kind)}"}
        if kind in FOREIGN_KINDS and ids & plugins:
            left_out.append(writer.get("id") or kind)
        if kind in FOREIGN_KINDS or not ids & plugins:
            root.remove(writer)
        else:
            kept.append(writer.get("id") or kind)
    imported = []
    if left_out:
        text = f"there is no writer for {', '.join(left_out)}: write a plug-in"
        imported.append(ImportedFile(name, "not supported", text))
    if kept:
        copy = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        text = f"--index_writers reads it, with {', '.join(kept)}"
        imported.append(
            ImportedFile(name, "mapped", text, Path(name).name, "index_writers", copy, True)
        )
    return imported or [ImportedFile(name, "not needed", "none of its writers is on")]


_PLUGIN_OF_KIND = {"elasticrest": "elastic-rest", "opensearch1x": "opensearch-1x"}


def _keep_routes(file: ImportedFile, writers: bytes) -> list[ImportedFile]:
    """Returns exchanges.xml with the writers that are taken over; Nutch ignores others, too.

    Args:
        file: The file.
        writers: The file of the writers; empty without any.
    """
    text = writers.decode() or "<writers/>"
    ids = {each.get("id") for each in read_xml(RuleFile("", text)).findall("writer")}
    root = read_xml(RuleFile(file.name, file.data.decode("utf-8", "replace")))
    for exchange in root.findall("exchange"):
        for route in exchange.findall("writers"):
            for writer in route.findall("writer"):
                if writer.get("id") not in ids:
                    route.remove(writer)
        if not exchange.findall("writers/writer"):
            root.remove(exchange)
    if not root.findall("exchange"):
        return [ImportedFile(file.name, "not needed", "none of its writers is on")]
    return [file._replace(data=ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))]


def import_credentials(name: str, data: bytes) -> list[ImportedFile]:
    r"""Converts Nutch's ``httpclient-auth.xml`` to lines for ``--http_credentials``.

    >>> xml = b'<auth-configuration><credentials username="me" password="x y"><authscope host="a.example" '
    >>> xml += b'port="443" scheme="BASIC"/></credentials></auth-configuration>'
    >>> import_credentials("auth.xml", xml)[0].data
    b'https://a.example basic me x y\n'
    """
    lines, faults = [], []
    root = read_xml(RuleFile(name, data.decode("utf-8", "replace")))
    for credentials in root.findall("credentials"):
        user, password = credentials.get("username") or "", credentials.get("password") or ""
        for element in credentials:
            host, port = element.get("host") or "", element.get("port") or ""
            scheme = (element.get("scheme") or "basic").lower()
            if element.tag == "default" or not host:
                faults.append("logins for all hosts: write a line for each host")
            elif scheme not in ("basic", "digest"):
                faults.append(f"the scheme {scheme} for {host}: only basic and digest are spoken")
            else:
                lines += [f"{origin} {scheme} {user} {password}" for origin in _origins(host, port)]
    imported = [ImportedFile(name, "not supported", fault) for fault in faults]
    if lines:
        text = "--http_credentials reads the lines made of it"
        content = "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode()
        imported.append(
            ImportedFile(name, "mapped", text, CREDENTIALS, "http_credentials", content, True)
        )
    return imported or [ImportedFile(name, "not needed", "it has no logins")]


def _origins(host: str, port: str) -> list[str]:
    if port == "443":
        return [f"https://{host}"]
    if port in ("80", ""):
        return [f"http://{host}", *([] if port else [f"https://{host}"])]
    return [f"http://{host}:{port}", f"https://{host}:{port}"]


def plugins_of(value: str, excludes: str) -> frozenset[str]:
    """Returns the plug-ins of Nutch that ``plugin.includes`` switches on.

    Raises:
        ValueError: It is no regular expression.

    >>> sorted(plugins_of("urlfilter-(regex|fast)|indexer-solr", ""))
    ['indexer-solr', 'urlfilter-fast', 'urlfilter-regex']
    """
    tables = read_catalogue()
    names = [*tables["plugins"], *tables["plugins_built_in"]["names"].split(), *_OTHER_PLUGINS]
    try:
        included = re.compile("".join(value.split()))
        excluded = re.compile("".join(excludes.split()) or "(?!)")
    except re.error as error:
        raise ValueError(f"plugin.includes must be a regular expression: {error}") from None
    return frozenset(
        name for name in names if included.fullmatch(name) and not excluded.fullmatch(name)
    )


_OTHER_PLUGINS = ("parsefilter-regex", "parsefilter-naivebayes",
                  *(f"indexer-{kind}" for kind in FOREIGN_KINDS))  # fmt: skip
