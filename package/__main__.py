"""``python -m nutbeam COMMAND ...``: the same as ``nutbeam COMMAND ...``."""

from nutbeam.pipelines.command_line.cli import script

script()
