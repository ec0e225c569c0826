"""Keeps the working folder off the module search path of Python processes.

Anyone who can write into the working folder could otherwise run code, and a file ``random.py`` there
would replace Python's own module. ``PYTHONPATH``, installed packages and ``.pth`` files still count.
"""

import os
from collections.abc import Mapping

# Python's own variable: no working folder for -c and -m, also in processes that Beam starts.
SAFE = {"PYTHONSAFEPATH": "1"}


def safe_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a process, changed so that its Python ignores the working folder.

    An empty part of ``PYTHONPATH``, and ``.``, mean the working folder, too, and are removed.
    To keep a folder there, write its path.

    >>> safe_environment({"PYTHONPATH": ":/plug-ins::./:x"})
    {'PYTHONPATH': '/plug-ins:x', 'PYTHONSAFEPATH': '1'}
    """
    safe = dict(environment) | SAFE
    if "PYTHONPATH" in safe:
        parts = safe["PYTHONPATH"].split(os.pathsep)
        safe["PYTHONPATH"] = os.pathsep.join(
            part for part in parts if os.path.normpath(part) != os.curdir
        )
    return safe
