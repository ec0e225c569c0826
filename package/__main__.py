"""The program ``nutbeam``, and ``python -m nutbeam COMMAND ...``, which does the same."""

import os
import sys
from typing import NoReturn


def script() -> NoReturn:
    """Runs the command of this process, without the working folder on Python's path."""
    from nutbeam.web.base.imports import safe_environment

    safe = safe_environment(os.environ)
    if safe.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):
        # Python has put the working folder on the path already.
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], safe)
    from nutbeam.pipelines.command_line import cli

    cli.script()


if __name__ == "__main__":
    script()
