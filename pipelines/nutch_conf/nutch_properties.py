"""Converts properties of Nutch to options of nutbeam, with unit and form.

What is known about them is in ``property_catalogue.py``; what depends on several properties is converted in
``joint_properties.py``.
"""

import re
from collections.abc import Mapping

from ...web.base.options import DURATIONS, LONGEST_S
from ...web.base.wording import quote_value
from ..base.suggestions import suggestion
from .joint_properties import JOINT_PROPERTIES, convert_classes, convert_scope_of_normalizers
from .property_catalogue import (
    ConvertedProperty,
    PropertyOption,
    no_such_class,
    properties_of_options,
    read_catalogue,
    split_list,
)

# With the letters that Java's numbers may end with.
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)([fFdDlL]?)")
_FACTORS = {"ms": 0.001, "minutes": 60.0}


def known_properties() -> frozenset[str]:
    """Returns the names of all properties that the catalogue has."""
    tables = read_catalogue()
    own = ("renamed", "part_of", "rule_files", "not_needed", "always", "not_supported")
    return frozenset(properties_of_options()).union(
        JOINT_PROPERTIES, *(tables[table] for table in own)
    )


def convert_property(
    name: str, value: str, properties: Mapping[str, str] | None = None
) -> ConvertedProperty:
    """Returns what a property with a value is in nutbeam.

    Args:
        name: Name of the property.
        value: Its value.
        properties: All properties that were set, with this one: some mean something together, such as
            ``http.proxy.host`` and ``http.proxy.port``.

    >>> convert_property("http.timeout", "2500").options
    {'timeout': '2.5'}
    >>> convert_property("db.fetch.schedule.class", "org.apache.nutch.crawl.AdaptiveFetchSchedule")
    ConvertedProperty(options={'schedule': 'adaptive'}, note='', fault='')
    >>> convert_property("http.useHttp2", "true").note
    'all requests are HTTP/1.1, which every server speaks'
    >>> convert_property("fetcher.publisher", "true").fault
    'nothing is published; --log_format json writes an object for each event'
    >>> convert_property("http.timout", "1").fault
    "Nutch has no property 'http.timout'; did you mean 'http.timeout'?"
    """
    tables = read_catalogue()
    properties = properties or {name: value}
    name, value = tables["renamed"].get(name, name), value.strip()
    if name in JOINT_PROPERTIES:
        return JOINT_PROPERTIES[name](value, properties)
    if name in tables["part_of"]:
        return _convert_part(name, properties)
    if name in tables["rule_files"]:
        return _convert_rule_file(name, value)
    if name in tables["lists"]:
        return convert_classes(name, value, properties)
    if name in tables["always"]:
        return _compare(value, *tables["always"][name])
    if name in properties_of_options():
        return _convert_value(name, value)
    if name in tables["not_needed"]:
        return ConvertedProperty(note=tables["not_needed"][name])
    if name in tables["not_supported"]:
        return _unsupported(value, tables["not_supported"][name])
    if name.startswith("urlnormalizer.scope."):
        return convert_scope_of_normalizers(name, value)
    for prefix, advice in tables["prefixes"]["not_supported"].items():
        if name.startswith(prefix):
            return _unsupported(value, advice)
    for prefix, reason in tables["prefixes"]["not_needed"].items():
        if name.startswith(prefix):
            return ConvertedProperty(note=reason)
    near = suggestion(name, known_properties())
    return ConvertedProperty(fault=f"Nutch has no property {quote_value(name)}{near}")


def _compare(value: str, usual_value: str, advice: str) -> ConvertedProperty:
    """Returns what a property is for which one value is what nutbeam always does."""
    if value.lower() != usual_value.lower():
        return ConvertedProperty(fault=advice)
    return ConvertedProperty(note=f"it is always {quote_value(value)}" if value else "it is empty")


def _unsupported(value: str, advice: str) -> ConvertedProperty:
    return ConvertedProperty(fault=advice) if value else ConvertedProperty(note="it is empty")


def _convert_part(name: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts a property that another one reads: it means nothing without that one."""
    owner = read_catalogue()["part_of"][name]
    verb = "it is part of" if owner in properties else "it means nothing without"
    return ConvertedProperty(note=f"{verb} {owner}")


def _convert_rule_file(name: str, value: str) -> ConvertedProperty:
    usual = read_catalogue()["rule_files"][name]
    if value in ("", usual):
        return ConvertedProperty(note=f"{usual} in the folder of --url_rules_dir is read")
    return ConvertedProperty(
        fault=f"put the file as {usual} into a folder, and give that as --url_rules_dir"
    )


def _convert_value(name: str, value: str) -> ConvertedProperty:
    """Converts the value of a property that options name, by their types."""
    converted = {}
    for option in properties_of_options()[name]:
        try:
            text = _converted_text(name, value, option)
        except ValueError as error:
            return ConvertedProperty(fault=str(error))
        if text is not None:
            converted[option.name] = text
    if converted:
        return ConvertedProperty(converted)
    return ConvertedProperty(note="it is empty: the usual value counts")


def _converted_text(name: str, value: str, option: PropertyOption) -> str | None:
    """Returns the value as typed on our command line; None if it is empty and means the usual one.

    Raises:
        ValueError: It is none that Nutch understands.
    """
    values = read_catalogue()["values"].get(name)
    if values and value:
        by_word = {each.lower(): own for each, own in values.items()}
        word = value if "," in value else value.rpartition(".")[2]
        own = by_word.get(word.lower())
        if own is None and name.endswith(".class"):
            raise ValueError(no_such_class(value))
        if own is None:
            raise ValueError(f"it must be one of {', '.join(values)}, got {quote_value(value)}")
        return str(own)
    if option.kind == "list":
        return ",".join(each.replace(",", "\\,") for each in split_list(value))
    if option.kind == "text":
        return value
    if not value:
        return None
    if option.kind == "true-or-false":
        if value.lower() not in ("true", "false"):
            raise ValueError(f"it must be true or false, got {quote_value(value)}")
        return value.lower()
    return _converted_number(name, value, option)


def _converted_number(name: str, value: str, option: PropertyOption) -> str:
    tables = read_catalogue()
    match = _NUMBER.fullmatch(value)
    # In a time, 30d is meant as 30 days.
    if match is None or (match[2] in ("d", "D") and option.unit in DURATIONS):
        unit = {"ms": " of milliseconds", "minutes": " of minutes"}
        what = unit.get(tables["units"].get(name), "")
        raise ValueError(f"it must be a number{what}, got {quote_value(value)}")
    number = float(match[1])
    if number < 0 and name in tables["limits"]:
        return str(LONGEST_S) if name == "http.time.limit" else "-1"
    if option.unit in DURATIONS and name in tables["units"]:
        factor = {"ms": 0.001, "minutes": 60.0}[tables["units"][name]]
        number = float(f"{number * factor / DURATIONS[option.unit]:.15g}")
    if option.kind == "number":
        return f"{number:g}" if float(f"{number:g}") == number else repr(number)
    if number != int(number):
        raise ValueError(f"it must be a whole number, got {quote_value(value)}")
    return str(int(number))
