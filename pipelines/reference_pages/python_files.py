"""Writes the modules of ``nutbeam.Table`` that follow from declarations; ``make docs`` calls it.

The methods follow from the commands, their keywords from the options, and the fields of a page from
the columns of pages. So each is declared once.
"""

import functools
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from ...policy.components.columns import Column
from ...policy.components.views import views
from ...policy.components.vocabulary import CHANGE_COLUMNS, shown_type
from ...web.base.errors import UserError
from ...web.base.options import BYTES, DURATIONS, Option, default_text
from ...web.base.wording import singular
from ..api.calls import PRINTING
from ..base.command import TABLE, CommandModule
from ..command_line.arguments import command_options
from ..command_line.commands import COMMANDS, Command

_FOLDER = Path("pipelines", "api")
_MADE = "``make docs`` writes this file, and a test compares it."
# Of the items of columns whose declarations have none.
_MEANINGS = {
    ("links", "url"): "URL of the target.", ("links", "anchor"): "Text of the link.",
    ("links", "rel"): "Its attribute ``rel``, or None.",
    ("headers", "name"): "Name of the header, as the server sent it.",
    ("headers", "value"): "Its value.",
}  # fmt: skip
# Commands whose options are keywords of functions that are written by hand.
READERS = ("explain", "parsechecker")
# What programs may give besides texts, by what an option takes.
_TAKES = {
    "": (), "path": ("os.PathLike[str]",), "number": ("int",), "time": ("int", "datetime.date"),
}  # fmt: skip
_ARROW = {
    pa.large_string(): "str", pa.large_binary(): "bytes", pa.bool_(): "bool", pa.float32(): "float",
    pa.float64(): "float", pa.date32(): "datetime.date",
    pa.timestamp("ms", "UTC"): "datetime.datetime",
    pa.map_(pa.large_string(), pa.large_string()): "Mapping[str, str]",
}  # fmt: skip


def python_files(command_modules: Mapping[str, CommandModule]) -> dict[Path, str]:
    """Returns the text of each module by its path in the repository.

    Args:
        command_modules: The modules of all commands.
    """
    methods = {name: command for name, command in COMMANDS.items() if command.method}
    taking = {name: command_options(command_modules[name]) for name in (*methods, *READERS)}
    return {
        _FOLDER / "job_keywords.py": _keyword_module(taking),
        _FOLDER / "table_jobs.py": _method_module(methods, command_modules),
        _FOLDER / "table_pages.py": _page_module(views()["pages"].columns),
    }


def keyword_class(command: str) -> str:
    """Returns the name of the class of a command's keywords.

    >>> keyword_class("import_warc")
    'ImportWarcKeywords'
    """
    return "".join(word.capitalize() for word in command.split("_")) + "Keywords"


def _keyword_module(taking: Mapping[str, Mapping[str, Option]]) -> str:
    owners = defaultdict[tuple[str, str, str], list[str]](list)
    for command, options in taking.items():
        for option in options.values():
            if option.name not in PRINTING:
                owners[option.name, keyword_type(option), _meaning(option)].append(command)
    groups = defaultdict[tuple[str, ...], list[tuple[str, str, str]]](list)
    for field, commands in owners.items():
        groups[tuple(commands)].append(field)
    parts = [
        f'"""The options of each command as keywords, for type checkers and editors.\n\n{_MADE}\n"""',
        (
            "import datetime\nimport os\nfrom collections.abc import Iterable, Sequence\n"
            "from typing import Literal, TypedDict"
        ),
        _typed_dict("PipelineKeywords", ("TypedDict",), "Keywords of pipelines.", [
            ("beam_args", "Sequence[str]", "Options of Beam, as on the command line: [\"--runner=FlinkRunner\", …]."),
        ]),
    ]  # fmt: skip
    bases = defaultdict[str, list[str]](list)
    for number, (sharing, fields) in enumerate(groups.items(), 1):
        if len(sharing) == 1:
            continue
        name = f"_Shared{number}"
        parts.append(_typed_dict(name, ("TypedDict",), f"Of {', '.join(sharing)}.", fields))
        for command in sharing:
            bases[command].append(name)
    for command in taking:
        own = groups.get((command,), [])
        more = ["PipelineKeywords"] if COMMANDS[command].beam else []
        classes = (*bases[command], *more)
        parts.append(
            _typed_dict(keyword_class(command), classes, f"Options of ``nutbeam {command}``.", own)
        )
    return "\n\n\n".join(parts) + "\n"


def _typed_dict(
    name: str, bases: Sequence[str], doc: str, fields: Iterable[tuple[str, str, str]]
) -> str:
    lines = [f"class {name}({', '.join(bases)}, total=False):", f'    """{doc}"""', ""]
    for field, kind, meaning in fields:
        lines += [f"    {field}: {kind}", f"    {_quoted(meaning)}"]
    return "\n".join(lines).rstrip()


def _quoted(text: str) -> str:
    """Returns a text as a docstring."""
    raw = "r" if "\\" in text else ""
    return f'{raw}"""{text} """' if text.endswith('"') else f'{raw}"""{text}"""'


def keyword_type(option: Option) -> str:
    """Returns the type of a keyword.

    >>> keyword_type(Option("server_delay", float, 5.0, "", unit="s", item=float))
    'float | str | datetime.timedelta'
    >>> keyword_type(Option("scope", str, "host", "", choices=("host", "any")))
    "Literal['host', 'any']"
    >>> keyword_type(Option("ports", tuple, (), "", item=int, optional=True))
    'Iterable[int] | str | None'
    """
    kind = " | ".join([option.item.__name__, *_TAKES[option.takes]])
    if option.choices and not option.plugins:
        kind = f"Literal[{', '.join(map(repr, option.choices))}]"
    if option.type is tuple:  # a text is read as on the command line
        alone = "os.PathLike[str] | str" if option.takes == "path" else "str"
        kind = "Iterable[str]" if kind == "str" else f"Iterable[{kind}] | {alone}"
    elif option.unit in DURATIONS:
        kind += " | str | datetime.timedelta"
    elif option.unit in BYTES:
        kind += " | str"
    return f"{kind} | None" if option.optional else kind


def _meaning(option: Option) -> str:
    default = default_text(option)
    unit = f" Unit: {option.unit}." if option.unit else ""
    return f"{option.help}{unit} Default: {default or 'none'}."


def _method_module(
    methods: Mapping[str, Command], command_modules: Mapping[str, CommandModule]
) -> str:
    results = ", ".join(sorted({command.returns for command in methods.values()}))
    keywords = "\n".join(f"    {name}," for name in sorted(map(keyword_class, methods)))
    head = f'''"""The jobs of a table as methods, as the commands of the command line declare them.

{_MADE}
"""

import os
from typing import TYPE_CHECKING, TypeAlias, Unpack

from .calls import call_command, with_options
from .results import {results}

if TYPE_CHECKING:
    from .job_keywords import (
{_indent(keywords)}
    )

TableAddress: TypeAlias = str | os.PathLike[str]


class TableJobs:
    """The jobs of a table.

    Each method runs the command of its name in this process, unless ``beam_args`` names another
    runner, and returns what the command prints. docs/reference/options.md has the options; they are
    keywords. ``progress=True`` shows progress on standard error.

    Attributes:
        address: Address of the table.
    """

    address: str
'''
    texts = [_method(name, c, command_modules[name]) for name, c in methods.items()]
    return "\n".join([head, *texts])


def _indent(text: str) -> str:
    return re.sub("^", "    ", text, flags=re.MULTILINE)


def _method(name: str, command: Command, module: CommandModule) -> str:
    parameters, words, docs = ["self"], [], []
    for argument in module.ARGUMENTS:
        if argument.help.startswith(TABLE.help[:-1]):
            words.append("self.address")
            continue
        star = "*" if argument.nargs in ("*", "+") else ""
        parameters.append(f"{star}{argument.name}: TableAddress")
        words.append(f"{star}{argument.name}")
        docs.append(f"            {argument.name}: {argument.help.rstrip('.')}.")
    arguments = ("\n\n        Args:\n" + "\n".join(docs)) if docs else ""
    comma = "," if len(words) == 1 else ""
    call = f'call_command("{name}", ({", ".join(words)}{comma}), options)'
    return f'''
    @with_options("{name}")
    def {command.method}({", ".join(parameters)}, **options: "Unpack[{keyword_class(name)}]") -> {command.returns}:
        """{command.help}

        It does what ``nutbeam {name}`` does.{arguments}
        """
        return {command.returns}.of({call})
'''


def _page_module(columns: Iterable[Column]) -> str:
    nested = [c for c in columns if pa.types.is_large_list(c.type)]
    parts = [
        f'"""A page of a table, as a record with the columns of the view ``pages``.\n\n{_MADE}\n"""',
        "import dataclasses\nimport datetime\nfrom collections.abc import Mapping",
        *(_record_class(_item_class(c), f"An item of ``{c.name}``: {c.meaning}", _fields_of(c)) for c in nested),
        _record_class(
            "TablePage", "A page of a table; a column that was not read is None.",
            [(c.name, _type_of(c), c.meaning) for c in (*columns, *CHANGE_COLUMNS)],
        ),
        "# The columns that are lists, with the class of their items.\nNESTED: Mapping[str, type] = {"
        + ", ".join(f'"{c.name}": {_item_class(c)}' for c in nested) + "}",
    ]  # fmt: skip
    return "\n\n\n".join(parts) + "\n"


def _item_class(column: Column) -> str:
    words = singular(column.name).split("_")
    return f"Page{''.join(map(str.capitalize, words))}"


def _fields_of(column: Column) -> Iterator[tuple[str, str, str]]:
    meanings = {item.name: item.meaning for item in column.items}
    for field in column.type.value_type:
        meaning = meanings.get(field.name) or _MEANINGS[column.name, field.name]
        yield field.name, _python_type(field.type), meaning


def _type_of(column: Column) -> str:
    if pa.types.is_large_list(column.type):
        return f"tuple[{_item_class(column)}, ...]"
    return _python_type(shown_type(column))


def _python_type(kind: pa.DataType) -> str:
    return "int" if pa.types.is_integer(kind) else _ARROW[kind]


def _record_class(name: str, doc: str, fields: Iterable[tuple[str, str, str]]) -> str:
    fields = list(fields)
    attributes = "\n".join(f"        {field}: {meaning}" for field, _, meaning in fields)
    lines = [f"    {field}: {kind} | None = None" for field, kind, _ in fields]
    lines[0] = lines[0].replace("url: str | None = None", 'url: str = ""')
    raw = "r" if "\\" in attributes else ""
    return f'''@dataclasses.dataclass(frozen=True, slots=True)
class {name}:
    {raw}"""{doc}

    Attributes:
{attributes}
    """

''' + "\n".join(lines)


@functools.cache
def _formatter() -> str:
    program = Path(sys.executable).with_name("ruff")
    tool = str(program) if program.exists() else shutil.which("ruff")
    if tool is None:
        raise UserError("make docs needs ruff, to format the modules that it writes")
    return tool


def formatted(text: str) -> str:
    """Returns the text of a module as ``ruff format`` writes it."""
    done = subprocess.run(
        [_formatter(), "format", "--line-length=100", "-"],
        input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout
