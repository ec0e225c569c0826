"""Checks the local job servers that Beam itself starts: Prism, and those of Flink and Spark."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...web.base.errors import UsageError

_PATIENCE_S = 5.0
_ELSEWHERE = "start the job server elsewhere and give --runner=PortableRunner"


def check_prism(beam_values: Mapping[str, Any]) -> None:
    """Checks that ``--prism_location`` is Prism.

    Args:
        beam_values: Beam's options, by name.

    Raises:
        UsageError: The reason, in one line.
    """
    location = beam_values.get("prism_location")
    problem = _not_prism(Path(location)) if location and _names_file(location) else ""
    if problem:
        raise UsageError(
            f"--prism_location must be Prism's program, a zip with it, or a page of Beam's "
            f"releases on GitHub, got {location!r}: {problem}"
        )


def _names_file(location: str) -> bool:
    return ":" not in location or Path(location).exists()


def _no_file(path: Path) -> str:
    """Returns the reason if there is no file at a path; empty if there is one."""
    if path.is_file():
        return ""
    return "it is a folder" if path.is_dir() else "there is no such file"


def _not_prism(path: Path) -> str:
    """Returns the reason why Beam cannot start a file as Prism; empty if it probably can."""
    if not zipfile.is_zipfile(path):
        return _no_file(path) or _not_prism_program(path)
    with zipfile.ZipFile(path) as content:  # Beam looks for this name
        return "" if path.stem in content.namelist() else f"it has no file {path.stem!r}"


def _not_prism_program(program: Path) -> str:
    """Runs a program to list its options; returns the reason if it is not Prism."""
    if not os.access(program, os.X_OK):  # Beam would make any file executable
        return "it is not executable"
    try:
        answer = subprocess.run(
            [program.absolute(), "-h"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_PATIENCE_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ""
    except OSError as error:
        return f"it cannot be run ({(error.strerror or str(error)).lower()})"
    return "" if b"job_port" in answer.stdout else "it is another program"


def check_java(runner: str, beam_values: Mapping[str, Any]) -> None:
    """Checks that a job server in Java can be started.

    Args:
        runner: ``flinkrunner`` or ``sparkrunner``.
        beam_values: Beam's options, by name.

    Raises:
        UsageError: Java is missing, or the given file is not a job server.
    """
    java = beam_values.get("job_server_java_launcher", "java")
    uber = runner == "flinkrunner" and beam_values.get("flink_submit_uber_jar")
    if not uber and shutil.which(java) is None:
        raise UsageError(
            f"--runner={beam_values['runner']} starts a job server in Java, and "
            f"{java!r} is not found: install Java, or {_ELSEWHERE}"
        )
    name = runner.replace("runner", "_job_server_jar")
    jar = beam_values.get(name)
    problem = (_no_file(Path(jar)) or _not_started(jar)) if jar and _names_file(jar) else ""
    if problem:
        raise UsageError(
            f"--{name} must be the jar of Beam's job server, got {jar!r}: {problem}; "
            f"leave it out to let Beam fetch it, or {_ELSEWHERE}"
        )


def _not_started(jar: str) -> str:
    """Returns the reason why Java cannot start a jar; empty if it probably can."""
    try:
        with zipfile.ZipFile(jar) as content:
            if b"Main-Class:" in content.read("META-INF/MANIFEST.MF"):
                return ""
    except (OSError, KeyError, zipfile.BadZipFile):
        pass
    return "it is no jar that can be started"
