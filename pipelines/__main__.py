"""``python -m nutbeam.pipelines COMMAND ...``: the same as ``nutbeam COMMAND ...``."""

from .command_line.cli import script

script()
