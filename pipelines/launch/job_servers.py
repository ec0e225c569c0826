"""The job servers that Beam starts by itself on this machine: Prism, and Java's of Flink and Spark."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    JobServerOptions,
    PipelineOptions,
    PrismRunnerOptions,
    SparkRunnerOptions,
    StandardOptions,
)

from ...web.base.errors import UsageError
from .beam_internals import prism_pages

PATIENCE_S = 5.0
_ELSEWHERE = "start the job server elsewhere and give --runner=PortableRunner"


def check_prism(options: PipelineOptions) -> None:
    """Refuses a ``--prism_location`` that is not Prism.

    Raises:
        UsageError: In one line, what it is.
    """
    location = options.view_as(PrismRunnerOptions).prism_location
    if location:
        problem = _not_prism(location)
        if problem:
            raise UsageError(
                f"--prism_location must be Prism's program, a zip with it, or a page of Beam's "
                f"releases on GitHub, got {location!r}: {problem}"
            )


def _not_prism(location: str) -> str:
    """Returns why Beam could not start what is at a location; empty if it might."""
    path = Path(location)
    if "://" in location and not path.exists():
        pages = prism_pages()
        foreign = bool(pages) and location.startswith(("http://", "https://"))
        foreign = foreign and not location.startswith(pages)
        return "Beam takes no other page" if foreign else ""
    if not path.is_file():
        return "it is a folder" if path.is_dir() else "there is no such file"
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as content:  # Beam looks for this name
            return "" if path.stem in content.namelist() else f"it has no file {path.stem!r}"
    if not os.access(path, os.X_OK):  # Beam would make it so, whatever it is
        return "it is not executable"
    return _says_not(path)


def _says_not(program: Path) -> str:
    """Asks a program for its options; returns why it is not Prism."""
    try:
        said = subprocess.run(
            [program.absolute(), "-h"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ""
    except OSError as error:
        return f"it cannot be run ({(error.strerror or str(error)).lower()})"
    return "" if b"job_port" in said.stdout else "it is another program"


def check_java(runner: str, options: PipelineOptions) -> None:
    """Refuses a job server in Java that could not be started.

    Args:
        runner: ``flinkrunner`` or ``sparkrunner``.
        options: Beam's.

    Raises:
        UsageError: Java is missing, or what is named is no job server.
    """
    flink, spark = options.view_as(FlinkRunnerOptions), options.view_as(SparkRunnerOptions)
    java = options.view_as(JobServerOptions).job_server_java_launcher
    uber = runner == "flinkrunner" and flink.flink_submit_uber_jar
    if not uber and shutil.which(java) is None:
        raise UsageError(
            f"--runner={options.view_as(StandardOptions).runner} starts a job server in Java, and "
            f"{java!r} is not found: install Java, or {_ELSEWHERE}"
        )
    name = runner.replace("runner", "_job_server_jar")
    jar = {"flinkrunner": flink.flink_job_server_jar, "sparkrunner": spark.spark_job_server_jar}
    problem = _no_jar(jar[runner])
    if problem:
        raise UsageError(
            f"--{name} must be the jar of Beam's job server, got {jar[runner]!r}: {problem}; "
            f"leave it out to let Beam fetch it, or {_ELSEWHERE}"
        )


def _no_jar(jar: str | None) -> str:
    """Returns why Java could not start a jar; empty if it might, or Beam is to fetch it."""
    if not jar or (":" in jar and not Path(jar).exists()):
        return ""
    if not Path(jar).is_file():
        return "it is a folder" if Path(jar).is_dir() else "there is no such file"
    try:
        with zipfile.ZipFile(jar) as content:
            started = b"Main-Class:" in content.read("META-INF/MANIFEST.MF")
    except (OSError, KeyError, zipfile.BadZipFile):
        started = False
    return "" if started else "it is no jar that can be started"
