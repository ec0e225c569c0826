"""completion: prints a script that completes commands, options and their values in a shell.

The script has the lists in it, so that no key starts Python. ``make docs`` writes the values of options
into ``option_values.txt``, because importing the modules of all commands takes seconds.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import Option
from ..base.command import DONE, Argument, Invocation
from .commands import COMMANDS
from .config import listed_options

VALUES_FILE = "option_values.txt"
ARGUMENTS = (Argument("shell", "The shell: bash, zsh or fish."),)
_SWITCH = ("true", "false")


@dataclass(frozen=True)
class Options:
    """Options of completion: none of its own."""


def run(invocation: Invocation) -> int:
    shell = str(invocation.arguments["shell"])
    if shell not in _SCRIPTS:
        raise UsageError(f"the shell must be one of {', '.join(_SCRIPTS)}, got {shell!r}")
    print(_SCRIPTS[shell](), end="")
    return DONE


def option_values(options_of: Mapping[str, Iterable[Option]]) -> str:
    """Returns the content of the file of values: ``COMMAND --OPTION: VALUES``; ``*`` is any command.

    >>> mode = Option("mode", str, "host", "", choices=("host", "domain"))
    >>> option_values({"domainstats": [mode], "crawlcomplete": [mode]})
    '* --mode: host domain\\n'
    """
    by_option: dict[str, dict[str, str]] = {}
    for command, options in options_of.items():
        for option in options:
            choices = _SWITCH if option.item is bool else tuple(filter(None, option.choices))
            by_option.setdefault(option.flag, {})[command] = " ".join(map(str, choices))
    lines = []
    for flag, by_command in sorted(by_option.items()):
        usual = max(by_command.values(), key=list(by_command.values()).count)
        special = {name: words for name, words in by_command.items() if words != usual}
        lines += [f"{name} {flag}: {words}\n" for name, words in special.items() if words]
        lines += [f"* {flag}: {usual}\n"] if usual else []
    return "".join(lines)


def _read_values() -> dict[tuple[str, str], str]:
    """Returns the values of options, by command (``*`` for the others) and flag."""
    values = {}
    for line in Path(__file__).with_name(VALUES_FILE).read_text("utf-8").splitlines():
        place, _, words = line.partition(": ")
        command, _, flag = place.partition(" ")
        values[command, flag] = words
    return values


def _flags(command: str) -> str:
    names = (name for name, commands in listed_options().items() if command in commands)
    return " ".join(["--help", "--help_all", *(f"--{name}" for name in sorted(names))])


def _bash() -> str:
    options = "".join(f'        {name}) flags="{_flags(name)}" ;;\n' for name in COMMANDS)
    return f"""\
# Completion of nutbeam for bash. To install it:
#   nutbeam completion bash > ~/.local/share/bash-completion/completions/nutbeam
# or, without the package bash-completion, in ~/.bashrc:
#   source <(nutbeam completion bash)
_nutbeam() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}"
    local command="${{COMP_WORDS[1]}}" flags="" values=""
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ] || {{ [ "$command" = help ] && [ "$COMP_CWORD" = 2 ]; }}; then
        COMPREPLY=($(compgen -W "{" ".join(COMMANDS)} help nutch --version" -- "$word"))
        return
    fi
    if [ "$word" = "=" ]; then word=""; fi
    if [ "$before" = "=" ]; then before="${{COMP_WORDS[COMP_CWORD - 2]}}"; fi
{_value_cases()}
    if [ -n "$values" ]; then
        COMPREPLY=($(compgen -W "$values" -- "$word"))
        return
    fi
    case "$word" in
        -*) ;;
        *) return ;;  # a file
    esac
    case "$command" in
{options}    esac
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
}}
complete -o default -F _nutbeam nutbeam
"""


def _value_cases() -> str:
    """Returns the case statement that sets ``values`` for a command and the flag before a word."""
    values = _read_values()
    special = {place: words for place, words in values.items() if place[0] != "*"}
    lines = [
        f'        "{command} {flag}") values="{words}" ;;'
        for (command, flag), words in special.items()
    ]
    usual = ((flag, words) for (command, flag), words in values.items() if command == "*")
    lines += [f'        *" {flag}") values="{words}" ;;' for flag, words in usual]
    fallback = '        "completion completion") values="bash zsh fish" ;;'
    return "\n".join(['    case "$command $before" in', *lines, fallback, "    esac"])


def _zsh() -> str:
    described = "".join(
        f"        {shlex.quote(f'{name}:{command.help}')}\n" for name, command in COMMANDS.items()
    )
    options = "".join(f'        {name}) flags="{_flags(name)}" ;;\n' for name in COMMANDS)
    return f"""\
#compdef nutbeam
# Completion of nutbeam for zsh. To install it, write it into a folder of $fpath:
#   nutbeam completion zsh > ~/.zfunc/_nutbeam
# and have in ~/.zshrc, before compinit: fpath=(~/.zfunc $fpath)
_nutbeam() {{
    local command="${{words[2]}}" before="${{words[CURRENT - 1]}}" flags="" values=""
    local -a commands
    commands=(
{described}        'help:Show the help of a command.'
    )
    if (( CURRENT == 2 )) || [[ "$command" == help && CURRENT -eq 3 ]]; then
        _describe command commands
        return
    fi
    if [[ "$PREFIX" == --*=* ]]; then
        before="${{PREFIX%%=*}}"
        compset -P '*='
    fi
{_value_cases()}
    if [[ -n "$values" ]]; then
        compadd -- ${{=values}}
        return
    fi
    if [[ "$PREFIX" != -* ]]; then
        _files
        return
    fi
    case "$command" in
{options}    esac
    compadd -- ${{=flags}}
}}
compdef _nutbeam nutbeam
"""


def _fish() -> str:
    lines = [
        "# Completion of nutbeam for fish. To install it:",
        "#   nutbeam completion fish > ~/.config/fish/completions/nutbeam.fish",
    ]
    for name, declared in COMMANDS.items():
        lines.append(
            f"complete -c nutbeam -n __fish_use_subcommand -f -a {name} -d {shlex.quote(declared.help)}"
        )
    lines.append(
        "complete -c nutbeam -n __fish_use_subcommand -f -a help -d 'Show the help of a command.'"
    )
    lines.append(
        f"complete -c nutbeam -n '__fish_seen_subcommand_from help' -f -a '{' '.join(COMMANDS)} nutch'"
    )
    lines.append(
        "complete -c nutbeam -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'"
    )
    values = _read_values()
    for option, commands in listed_options().items():
        by_values: dict[str, list[str]] = {}
        for command in sorted(commands):
            words = values.get((command, f"--{option}")) or values.get(("*", f"--{option}"), "")
            by_values.setdefault(words, []).append(command)
        for words, names in by_values.items():
            choices = f" -x -a '{words}'" if words else " -r"
            lines.append(
                f"complete -c nutbeam -n '__fish_seen_subcommand_from {' '.join(names)}' -l {option}{choices}"
            )
    return "\n".join([*lines, ""])


_SCRIPTS: Mapping[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
