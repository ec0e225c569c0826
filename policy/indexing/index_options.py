"""Options of an index: its name, its pages and their documents, and the writers of these.

A file names several writers and what each gets: Nutch's index-writers.xml with exchanges.xml, or toml::

    [[writer]]
    name = "main"
    kind = "solr"
    url = "http://localhost:8983/solr/nutch"
    only = "host == 'example.org'"        # or: otherwise = true
    copy = { title = ["search"] }
    rename = { tstamp = "fetched" }
    remove = ["segment"]
"""

import tomllib
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

from ...web.base.dataclass import dataclass
from ...web.base.joined_options import joined_options
from ...web.base.options import option
from ...web.base.wording import quote_value
from ...web.plugins.plugin_files import PLUGIN_FORM, PLUGIN_NAME
from ...web.plugins.plugin_options import PluginOptions
from ...web.rule_files.rule_files import RuleFile, read_elements, read_rule_file
from ..components.index_routes import FieldMapping, IndexRoute, IndexRoutes, WriterRule
from ..components.index_schema import DEFAULT_INDEX
from ..inlinks.edges import BestOptions
from ..scoring.scoring import ScoringOptions
from .index_decisions import IndexDecisionOptions
from .index_filter import IndexFilterOptions


@dataclass(frozen=True)
class IndexWriterOptions(PluginOptions):
    """Options of an index and its writers."""

    GROUP = "index"

    index: str = option(
        DEFAULT_INDEX,
        "Name of the index; each has its own writers, and knows what they hold.",
        pattern=r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}",
    )
    writer: str = option(
        "tantivy",
        "Kind of the writer: tantivy, jsonl, csv, parquet, opensearch, elasticsearch, solr, dummy, "
        "or that of a plug-in.",
        pattern=PLUGIN_NAME,
        form=PLUGIN_FORM,
        plugins=True,
    )
    writer_parameters: tuple[str, ...] = option(
        (),
        "Parameters of the writer, each as `name=value`: for a writer of files `path=folder`, for "
        "a server `url=http://localhost:8983/solr/nutch`.",
        nutch="solr.server.url, elastic.rest.host",
    )
    index_writers: str = option(
        "",
        "File with several writers and what each gets: toml, or Nutch's index-writers.xml. "
        "Its writers rabbit, kafka and cloudsearch are left out, unless plug-ins with these names "
        "are installed.",
        nutch="indexer.indexwriters.file",
        takes="path",
    )
    exchanges: str = option(
        "",
        "Nutch's exchanges.xml, which says what each writer of --index_writers gets.",
        nutch="exchanges.exchanges.file",
        takes="path",
    )


def routes_of(options: IndexWriterOptions) -> IndexRoutes:
    """Returns the writers that options choose.

    Raises:
        ValueError: A file or a parameter is wrong; the message quotes it.

    >>> options = IndexWriterOptions(writer="jsonl", writer_parameters=("path=out",))
    >>> routes_of(options).writers[0].parameters
    {'path': 'out'}
    """
    if options.index_writers:
        if options.writer_parameters:
            raise ValueError(
                "--writer_parameters is for --writer, "
                f"got --index_writers {quote_value(options.index_writers)}, too"
            )
        xml = options.index_writers.endswith(".xml")
        file = read_rule_file(options.index_writers, flag="--index_writers")
        if not xml and options.exchanges:
            raise ValueError(
                f"--exchanges needs --index_writers to be XML, got {quote_value(options.index_writers)}"
            )
        if not xml:
            return read_routes(file)
        return read_nutch_routes(
            file,
            read_rule_file(options.exchanges, flag="--exchanges") if options.exchanges else None,
        )
    if options.exchanges:
        raise ValueError(f"--exchanges needs --index_writers, got {quote_value(options.exchanges)}")
    pairs = [text.partition("=") for text in options.writer_parameters]
    for name, sign, value in pairs:
        if not name or not sign:
            raise ValueError(
                f"--writer_parameters must have name=value, got {quote_value(name + sign + value)}"
            )
    parameters = {name: value for name, _, value in pairs}
    return IndexRoutes((WriterRule(options.writer, options.writer, parameters),))


@joined_options
class IndexMakingOptions(IndexFilterOptions, IndexDecisionOptions, ScoringOptions, BestOptions):
    """Options of which pages an index gets, and of the documents that are made of them."""


@joined_options
class IndexTableOptions(IndexMakingOptions, IndexWriterOptions):
    """Options of index, without those of launching."""

    GROUP = "index"

    embedding: str = option(
        "",
        "Plug-in that makes a vector of each chunk of a page, of 256 words at most; search then also "
        "ranks pages by them. For the writer tantivy.",
        pattern=f"|{PLUGIN_NAME}",
        form=PLUGIN_FORM,
        plugins=True,
    )


_KINDS = {"elastic": "elasticsearch", "opensearch1x": "opensearch"}
# Kinds of Nutch's writers that are not built in.
FOREIGN_KINDS = ("rabbit", "kafka", "cloudsearch")
# Parameters whose names are others than ours; those of servers are in io/indexing.
_PARAMETERS = {"outpath": "path"}
_OWN = {"name", "kind", "only", "otherwise", "copy", "rename", "remove"}


def read_routes(file: RuleFile) -> IndexRoutes:
    """Returns the writers of a toml file.

    Raises:
        ValueError: It is not toml, or a writer is wrong; the message names the file.

    >>> text = '[[writer]]\\nname = "a"\\nkind = "dummy"\\npath = "x"'
    >>> read_routes(RuleFile("index.toml", text)).writers[0].parameters
    {'path': 'x'}
    """
    try:
        content = tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file.name} must be toml: {error}") from None
    records = content.pop("writer", None)
    if content or not isinstance(records, list) or not records:
        strange = f", got {quote_value(next(iter(content)))}" if content else ""
        raise ValueError(f"{file.name} must have only [[writer]] sections{strange}")
    try:
        writers = tuple(map(_read_writer, records))
        routes = tuple(route for record in records for route in _read_route(record))
        if all(route.expr == "True" for route in routes):
            routes = ()
        return IndexRoutes(writers, routes)
    except ValueError as error:
        raise ValueError(f"{file.name}: {error}") from None


def _read_writer(record: dict[str, Any]) -> WriterRule:
    for name in ("name", "kind"):
        if not isinstance(record.get(name), str) or not record[name]:
            raise ValueError(
                f"a writer needs the text {name!r}, got {quote_value(record.get(name))}"
            )
    parameters = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in record.items()
        if name not in _OWN
    }
    copy, rename = (_read_table(record, name) for name in ("copy", "rename"))
    mapping = FieldMapping(
        tuple((source, _read_names(targets, "copy")) for source, targets in copy.items()),
        tuple((source, _read_name(target)) for source, target in rename.items()),
        _read_names(record.get("remove", []), "remove"),
    )
    return WriterRule(record["name"], record["kind"], parameters, mapping)


def _read_table(record: dict[str, Any], name: str) -> dict[str, Any]:
    match record.get(name, {}):
        case dict() as fields:
            return fields
        case value:
            raise ValueError(f"{name} must be a table of fields, got {quote_value(value)}")


def _read_name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"rename must have names of fields, got {quote_value(value)}")
    return value


def _read_names(value: Any, what: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{what} must have names of fields, got {quote_value(value)}")
    return tuple(names)


def _read_route(record: dict[str, Any]) -> Iterator[IndexRoute]:
    only, otherwise = record.get("only", ""), record.get("otherwise", False)
    if not isinstance(only, str) or not isinstance(otherwise, bool) or (only and otherwise):
        raise ValueError(
            f"writer {quote_value(record['name'])} must have only = an expression, or otherwise = true"
        )
    yield IndexRoute("" if otherwise else only or "True", (record["name"],))


def read_nutch_routes(writers: RuleFile, exchanges: RuleFile | None = None) -> IndexRoutes:
    """Returns the writers of Nutch's index-writers.xml, and the routes of its exchanges.xml.

    With routes, writers that none of them names are left out.

    Raises:
        ValueError: A file is not XML, or lacks names; the message has all faults, with the files.
    """
    faults: list[str] = []
    rules = read_elements(writers, "writer", _nutch_writer, faults)
    routes = read_elements(exchanges, "exchange", _nutch_route, faults) if exchanges else ()
    if faults:
        raise ValueError("; ".join(faults))
    try:
        index_routes = IndexRoutes(rules, routes)
    except ValueError as error:
        raise ValueError(f"{(exchanges or writers).name}: {error}") from None
    # Nutch lists all its writers in one file. Those that get nothing are not opened.
    named = {name for route in routes for name in route.writers}
    unused = {rule.name for rule in rules} - named
    return index_routes.drop_writers(unused) if named else index_routes


def _nutch_writer(file: RuleFile, element: Element) -> WriterRule:
    parts = _attribute(file, element, "class").split(".")
    kind = parts[-2] if len(parts) > 1 else parts[-1]
    copies, renames, removed = (
        element.findall(f"mapping/{action}/field") for action in ("copy", "rename", "remove")
    )
    changes = (
        tuple((_attribute(file, f, "source"), _target_names(file, f)) for f in copies),
        tuple((_attribute(file, f, "source"), _target_names(file, f)[0]) for f in renames),
        tuple(_attribute(file, f, "source") for f in removed),
    )
    name, nutch_parameters = _attribute(file, element, "id"), _parameters(element, "parameters")
    parameters = {_PARAMETERS.get(key, key): value for key, value in nutch_parameters.items()}
    try:
        mapping = FieldMapping(*changes)
    except ValueError as error:
        raise ValueError(f"{file.name}: writer {quote_value(name)}: {error}") from None
    return WriterRule(name, _KINDS.get(kind, kind), parameters, mapping)


def _nutch_route(file: RuleFile, element: Element) -> IndexRoute:
    names = tuple(_attribute(file, one, "id") for one in element.findall("writers/writer"))
    if element.get("class") == "default" or element.get("id") == "default":
        return IndexRoute("", names)
    expr = _parameters(element, "params").get("expr", "")
    if not expr.strip():
        raise ValueError(f"{file.name}: exchange {quote_value(element.get('id'))} has no expr")
    return IndexRoute(expr, names)


def _parameters(element: Element, name: str) -> dict[str, str]:
    params = element.findall(f"{name}/param")
    return {param.get("name", ""): param.get("value", "") for param in params}


def _target_names(file: RuleFile, element: Element) -> tuple[str, ...]:
    text = _attribute(file, element, "dest")
    return tuple(name.strip() for name in text.split(",") if name.strip()) or (text,)


def _attribute(file: RuleFile, element: Element, name: str) -> str:
    value = (element.get(name) or "").strip()
    if not value:
        raise ValueError(f"{file.name}: a {element.tag} has no {name}")
    return value
