"""The Flex Templates: for each job what Dataflow asks for, made from the declarations of options."""

from typing import Any

from ...web.base.options import BYTES, DURATIONS, Option, default_text, value_text
from ..base.command import Argument
from ..command_line.arguments import command_options
from ..command_line.cli import load
from ..command_line.commands import COMMANDS
from .parameter_patterns import ARGUMENT_PATTERN, parameter_pattern

# The commands that have a Flex Template: the jobs that change the table, and a whole round.
TEMPLATES = (
    "inject", "sitemap", "generate", "fetch", "parse", "updatedb", "invertlinks", "dedup", "filterdb", "compact",
    "mergelinkdb", "purge", "round", "webgraph", "linkrank", "scoreupdater",
    "index", "clean", "updatehostdb",
)  # fmt: skip
JOB_PARAMETER = "command"
# Options that no template has, with the reason. The launcher sets Beam's own options.
NOT_IN_TEMPLATES = {
    "config": "a file of the machine where the command is typed",
    "deliver": "the image has nutbeam, and is the workers' image too",
    "format": "the launcher's output is not read",
    "metrics_file": "nobody reads the launcher's disk",
    "metrics_port": "nobody reaches the launcher",
    "plugin_package": "the image has the packages of plug-ins",
    "progress": "the launcher has no terminal",
    "trace_to": "the launcher ends before the job does",
}


def template(command: str) -> dict[str, Any]:
    """Returns the metadata of the Flex Template of a command."""
    module = load(command)
    options = [o for o in command_options(module).values() if o.name not in NOT_IN_TEMPLATES]
    return {
        "name": f"nutbeam {command}",
        "description": COMMANDS[command].help,
        "streaming": False,
        "supportsAtLeastOnce": False,
        "supportsExactlyOnce": True,
        "parameters": [
            _job_parameter(command),
            *(_argument(argument) for argument in module.ARGUMENTS),
            *(_parameter(option) for option in options),
        ],
    }


def _job_parameter(command: str) -> dict[str, Any]:
    """Returns the parameter that says which job it is: the image is the same for all."""
    return {
        "name": JOB_PARAMETER,
        "label": _label(JOB_PARAMETER),
        "helpText": f"The job of this template: {command}.",
        "isOptional": False,
        "regexes": [command],
        "paramType": "TEXT",
        "groupName": "arguments",
        "defaultValue": command,
    }


def _argument(argument: Argument) -> dict[str, Any]:
    return {
        "name": argument.name,
        "label": _label(argument.name),
        "helpText": argument.help,
        "isOptional": argument.nargs in ("?", "*"),
        "regexes": [ARGUMENT_PATTERN],
        "paramType": "TEXT",
        "groupName": "arguments",
    }


def _parameter(option: Option) -> dict[str, Any]:
    parameter: dict[str, Any] = {
        "name": option.name,
        "label": _label(option.name) + (f" ({option.unit})" if option.unit else ""),
        "helpText": option.help + (f" Nutch: {option.nutch}." if option.nutch else ""),
        "isOptional": True,
        "regexes": [parameter_pattern(option)],
        "paramType": _param_type(option),
        "groupName": option.group,
    }
    if default_text(option):
        parameter["defaultValue"] = default_text(option)
    if parameter["paramType"] == "ENUM":
        texts = [value_text(option, choice) for choice in option.choices if choice != ""]
        parameter["enumOptions"] = [{"value": text, "label": text} for text in texts]
    return parameter


def _param_type(option: Option) -> str:
    if option.type is tuple:
        return "TEXT"
    if option.choices:
        return "ENUM"
    if option.item is bool:
        return "BOOLEAN"
    # The value of an option with a unit may have a suffix, which NUMBER would refuse.
    suffixed = option.unit in DURATIONS or option.unit in BYTES
    return "TEXT" if option.item is str or suffixed else "NUMBER"


def _label(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]
