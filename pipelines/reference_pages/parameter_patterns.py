"""Regular expressions by which Dataflow checks the values of parameters, before it starts a machine.

They take each text that the command line takes, except odd forms such as ``-0``, and refuse most others. The launch
script checks what they cannot, such as largest numbers. They are written in what POSIX, RE2, Java and JavaScript have in
common.
"""

from ...web.base.options import BYTES, DURATIONS, Option

_WHOLE_NUMBER = "[0-9]+(_[0-9]+)*"
_NUMBER = rf"({_WHOLE_NUMBER}[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?"
_SIZE_SUFFIX = "([kKmMgGtT][iI]?)?[bB]?"
_BOOLEANS = ("true", "yes", "on", "1", "false", "no", "off", "0")
_ANY_TEXT, _SOME_TEXT = ".*", ".+"
ARGUMENT_PATTERN = _SOME_TEXT


def parameter_pattern(option: Option) -> str:
    """Returns the regular expression that a whole text matches if it is a value of an option.

    >>> declared = Option("top_n", int, 10, "", item=int, minimum=1)
    >>> parameter_pattern(declared)
    ' *[+]?[0-9]+(_[0-9]+)* *'
    """
    if option.type is not tuple:
        item = _item_pattern(option)
        if not option.optional:
            return item
        return f"({item}| *)" if option.item is str else f"({item}| *({_any_case('none')})? *)"
    item = _item_pattern(option)
    if item == _ANY_TEXT or option.separator == " ":
        return _ANY_TEXT
    return f" *(({item})( *, *({item}))*)? *"


def _item_pattern(option: Option) -> str:
    if option.item is bool:
        return f" *({'|'.join(map(_any_case, _BOOLEANS))}) *"
    if option.item is not str:
        return _number_pattern(option)
    if option.pattern:
        return _portable(option.pattern)
    if option.choices and not option.plugins:
        texts = "|".join(map(_escaped, filter(None, option.choices)))
        return f"({texts})?" if "" in option.choices else f"({texts})"
    return _ANY_TEXT


def _number_pattern(option: Option) -> str:
    signs = "[-+]" if option.minimum is None or option.minimum < 0 else "[+]"
    if option.unit in DURATIONS:
        suffix = f" *({'|'.join(DURATIONS)})?"
    elif option.unit in BYTES:
        suffix = f" *{_SIZE_SUFFIX}"
    else:
        number = _WHOLE_NUMBER if option.item is int else _NUMBER
        return f" *{signs}?{number} *"
    return f" *{signs}?{_NUMBER}{suffix} *"


def _any_case(word: str) -> str:
    """Returns what matches a word in capital and small letters.

    >>> _any_case("on"), _any_case("1")
    ('[oO][nN]', '1')
    """
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in word)


def _escaped(text: str) -> str:
    """Returns what matches just a text; brackets, because not all engines know an escaped ``-``."""
    return "".join(c if c.isalnum() or c in "_-/ " else f"[{c}]" for c in text)


def _portable(pattern: str) -> str:
    r"""Returns a pattern of an option for other engines.

    >>> _portable(r"|(?:a|b)=[^\s/]+")
    '((a|b)=[^ /]+)?'
    """
    plain = pattern.replace("(?:", "(").replace(r"\s", " ")
    return f"({plain.removeprefix('|')})?" if plain.startswith("|") else f"({plain})"
