"""The files of lists that the command line reads in place of the modules of all commands."""

from collections.abc import Mapping
from pathlib import Path

from ...web.base.options import Option
from ..as_in_nutch.nutch_pages import FLAGS_FILE, flag_lines
from ..base.command import CommandModule
from ..command_line.arguments import command_options
from ..command_line.commands import COMMANDS
from ..command_line.completion import VALUES_FILE, option_values
from ..command_line.config import FILE, option_lines
from ..command_line.help_pages import HELP_FILE, joined_pages
from ..command_line.usage import command_help, usual_options
from ..nutch_conf.property_catalogue import PROPERTIES_FILE, option_properties

_FOLDER = "pipelines/command_line"


def write_option_files(root: Path, command_modules: Mapping[str, CommandModule]) -> None:
    """Writes the help, and the lists of options with their commands, properties, flags of Nutch and values.

    Args:
        root: Folder of the repository.
        command_modules: The modules of all commands, by command.
    """
    options_of: dict[str, list[Option]] = {}
    with_own_formats: dict[str, list[Option]] = {}
    for command, module in command_modules.items():
        options_of[command] = list(command_options(module).values())
        own_format = usual_options(COMMANDS[command], module)[-1]
        with_own_formats[command] = [
            own_format if each.name == own_format.name else each for each in options_of[command]
        ]
    names = {command: [each.name for each in options] for command, options in options_of.items()}
    properties = option_properties([each for options in options_of.values() for each in options])
    pages = {
        command: command_help(command, COMMANDS[command], module)
        for command, module in command_modules.items()
    }
    texts = {
        f"{_FOLDER}/{FILE}": option_lines(names),
        f"pipelines/nutch_conf/{PROPERTIES_FILE}": properties,
        f"{_FOLDER}/{VALUES_FILE}": option_values(with_own_formats),
        f"pipelines/as_in_nutch/{FLAGS_FILE}": flag_lines(options_of),
        f"{_FOLDER}/{HELP_FILE}": joined_pages(pages),
    }
    for path, text in texts.items():
        (root / path).write_text(text, "utf-8")
