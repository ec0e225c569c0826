"""Makes the tables of Nutch's properties: versions, default, and what each is in nutbeam."""

from collections.abc import Iterator

from ..nutch_conf.nutch_properties import convert_property, known_properties
from ..nutch_conf.property_catalogue import (
    properties_of_options,
    read_catalogue,
    read_defaults,
)

SECTIONS = {
    "Options": "These properties are options; their values are converted.",
    "Not needed": "These properties change nothing here. They are accepted; a note says why they are not needed.",
    "One value only": "For these properties one value is what nutbeam always does. Another value is refused.",
    "Not supported": "These properties are refused, with what to do instead.",
}
_UNITS = {"ms": "milliseconds in Nutch", "minutes": "minutes in Nutch"}


def property_rows() -> Iterator[tuple[str, tuple[str, str, str, str]]]:
    """Yields the section of each property and its row: name, versions, defaults, what it is here."""
    for name in sorted({*read_defaults(), *known_properties()}):
        versions = read_defaults().get(name, ())
        values = list(dict.fromkeys(value for _, value in versions))
        shown = ", ".join(f"`{value}`" if value else "empty" for value in values)
        section, text = describe_property(name)
        ranges = ", ".join(versions_of for versions_of, _ in versions)
        yield section, (f"`{name}`", ranges or "not in the file", shown, text)


def describe_property(name: str) -> tuple[str, str]:
    """Returns the section of a property, and what it is here.

    >>> describe_property("http.timeout")
    ('Options', '`--timeout`, milliseconds in Nutch')
    >>> describe_property("fetcher.parse")
    ('Options', '`--parse_while_fetching`')
    """
    tables = read_catalogue()
    if name in tables["renamed"]:
        return "Options", f"an older name of `{tables['renamed'][name]}`"
    if name in tables["part_of"]:
        return "Options", f"read together with `{tables['part_of'][name]}`"
    if name in tables["rule_files"]:
        return "Options", f"`{tables['rule_files'][name]}` in the folder of `--url_rules_dir`"
    if name in tables["always"]:
        value, advice = tables["always"][name]
        return (
            "One value only",
            f"always `{value}`; otherwise: {advice}" if value else f"empty; otherwise: {advice}",
        )
    if name in properties_of_options():
        return "Options", _describe_options(name)
    if name in tables["not_needed"]:
        return "Not needed", tables["not_needed"][name]
    converted = convert_property(name, "x")
    return ("Not supported", converted.fault) if converted.fault else ("Not needed", converted.note)


def _describe_options(name: str) -> str:
    if name == "plugin.includes":
        options = sorted({words.split()[0] for words in read_catalogue()["plugins"].values()})
        return f"the plug-ins switch on names in {', '.join(f'`--{each}`' for each in options)}"
    flags = ", ".join(f"`--{option.name}`" for option in properties_of_options()[name])
    unit = _UNITS.get(read_catalogue()["units"].get(name, ""))
    return f"{flags}, {unit}" if unit else flags
