"""``python -m nutbeam.pipelines COMMAND ...``: the same as ``nutbeam COMMAND ...``."""

from .cli import script

script()
