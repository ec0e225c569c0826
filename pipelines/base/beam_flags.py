"""The flags that Beam declares, and what its parser knows of them."""

from typing import TYPE_CHECKING, NoReturn

from ...web.base.errors import UsageError, one_line

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser


def beam_parser(*, plugins: bool = False) -> "ArgumentParser":
    """Returns a parser of all Beam options; it raises ``UsageError``.

    Args:
        plugins: Whether it has the options, too, that other packages have declared to Beam.
    """
    import argparse

    from apache_beam.options.pipeline_options import PipelineOptions  # late: it takes a second

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise UsageError(one_line(message))

    # Of two options of one name the later counts, as two packages may declare the same.
    parser = Parser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for options in PipelineOptions.__subclasses__():
        if plugins or options.__module__.startswith("apache_beam."):
            options._add_argparse_args(parser)  # type: ignore[arg-type]
    return parser


def takes_value(flag: str) -> bool:
    """Returns whether a flag of Beam takes a value; one that Beam does not know may."""
    action = beam_flag(flag, beam_parser())[1]
    return action is None or action.nargs != 0


def beam_flag(flag: str, parser: "ArgumentParser") -> tuple[str, "Action | None"]:
    """Returns a flag as Beam spells it, and what Beam's parser knows of it."""
    beams = parser._option_string_actions
    flag = flag if flag in beams else f"--{flag.removeprefix('--').replace('-', '_')}"
    return flag, beams.get(flag)
