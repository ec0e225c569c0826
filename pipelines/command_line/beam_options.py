"""Parses Beam's own options."""

import argparse
from typing import NoReturn

from apache_beam.options.pipeline_options import PipelineOptions

from ...web.base.errors import UsageError, one_line


def beam_parser() -> argparse.ArgumentParser:
    """Returns a parser of all Beam options; it raises ``UsageError``."""
    parser = _BeamParser(add_help=False, allow_abbrev=False)
    for options in PipelineOptions.__subclasses__():
        if options.__module__.startswith("apache_beam."):
            options._add_argparse_args(parser)  # type: ignore[arg-type]
    return parser


class _BeamParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(one_line(message))
