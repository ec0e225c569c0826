"""Says in Python what messages say for a shell: options as keywords, ``name=value`` for ``--name value``."""

import re
from collections.abc import Container

QUOTED_TEXT = r"(?<!\w)'(?:[^'\\]|\\.)*'|(?<!\w)\"(?:[^\"\\]|\\.)*\""
PLACEHOLDER = r"[A-Z][A-Z_|]*(?![\w-])"
_BOOLEANS = ("true", "false")
# A word after an option that is its value, and no word of the sentence.
_VALUE = (
    rf"{QUOTED_TEXT}|{PLACEHOLDER}|(?:[Tt]rue|[Ff]alse)\b|[\w.*-]*[/:=][^\s;)]*[\w/]|\w[\w-]*(?:\.[\w-]+)+"
    r"|[\w.*-]+(?:,[\w.*-]+)+|-?\d(?:[\w.]*\w)?"
)
OPTION = rf"--(?P<name>[a-z]\w*)(?:[ =](?P<value>{_VALUE}))?"
_OPTION_OR_QUOTED = re.compile(f"{OPTION}|{QUOTED_TEXT}")
_AS_A_NAME = re.compile(r" (?:must|needs|may|is|has|takes|does|stands|or|of)\b")


def in_keywords(message: str, switches: Container[str]) -> str:
    """Returns a message with its options as keywords; values that it quotes stay as they are.

    Args:
        message: The message.
        switches: Names of the options that are true or false.

    >>> in_keywords("add --agent_name NAME or --dry_run, got '--x 1'", {"dry_run"})
    "add agent_name=NAME or dry_run=True, got '--x 1'"
    """

    def replacement(match: "re.Match[str]") -> str:
        return keyword_of(match, message, switches) if match["name"] else match[0]

    return _OPTION_OR_QUOTED.sub(replacement, message)


def keyword_of(match: "re.Match[str]", message: str, switches: Container[str]) -> str:
    """Returns the keyword for an option in a message.

    Args:
        match: A match of ``OPTION`` in the message.
        message: The message.
        switches: Names of the options that are true or false.
    """
    if match["value"]:
        return f"{match['name']}={as_python(match['value'])}"
    alone = _AS_A_NAME.match(message, match.end()) or match["name"] not in switches
    return match["name"] if alone else f"{match['name']}=True"


def as_python(value: str) -> str:
    """Returns a value of a command line as Python writes it.

    >>> [as_python(text) for text in ("3", "2.5", "true", "URL", "'a b'", "host", "80,8000-8999")]
    ['3', '2.5', 'True', 'URL', "'a b'", "'host'", "[80, '8000-8999']"]
    """
    if value.lower() in _BOOLEANS:
        return value.capitalize()
    if "," in value and not value.startswith(("'", '"')):
        return f"[{', '.join(as_python(each) for each in value.split(','))}]"
    plain = re.fullmatch(rf"-?\d+(?:\.\d+)?|{QUOTED_TEXT}|{PLACEHOLDER}", value)
    return value if plain else repr(value)
