"""Reads Nutch's configuration files in XML."""

from xml.etree import ElementTree

from ...web.rule_files.rule_files import RuleFile


def read_xml(file: RuleFile) -> ElementTree.Element:
    """Returns the root of a file, names without namespaces; declarations of entities are refused.

    Raises:
        ValueError: It is not XML; the message names the file and the place.

    >>> read_xml(RuleFile("a.xml", "<a><b/></a>")).tag
    'a'
    """
    if "<!ENTITY" in file.text or "<!DOCTYPE" in file.text:
        raise ValueError(f"{file.name} must be XML without a document type")
    try:
        root = ElementTree.fromstring(file.text.encode())
    except ElementTree.ParseError as error:
        raise ValueError(f"{file.name} must be XML: {error}") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root
