"""Checks, before a job writes anything, that a runner can run it: servers, slots, programs, credentials."""

import contextlib
import importlib
import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from ...web.base.errors import Unavailable, UsageError, one_line
from ...web.base.safe_json import read_json
from .job_server_options import DescribedOptions, check_choices, check_described, described_options

_PATIENCE_S = 5.0
_GCP_MODULES = ("google.auth", "google.cloud.storage", "google.cloud.dataflow",
                "google_auth_httplib2")  # fmt: skip
# Beam's short names of environments; it takes "beam:env:..." in full, too.
_ENVIRONMENTS = ("DOCKER", "EXTERNAL", "LOOPBACK", "PROCESS")
_ELSEWHERE = "start the job server elsewhere and give --runner=PortableRunner"


def check_runner(runner: str, beam_args: Sequence[str]) -> None:
    """Checks that a runner can run a job.

    Args:
        runner: Its name in lower case, see ``runner_of``.
        beam_args: Beam's options, as on the command line.

    Raises:
        UsageError: The missing part, or what is wrong of the options, in one line.
        Unavailable: A server does not answer, or has no free slot.
    """
    # By the names of the options: Beam documents these, and not all classes that have them.
    options = PipelineOptions(list(beam_args))
    beam_values = options.get_all_options()
    _check_environment(beam_values.get("environment_type"))
    if runner == "portablerunner":
        check_described(beam_args, _ask_job_server(beam_values.get("job_endpoint")))
    if runner in ("flinkrunner", "sparkrunner"):
        check_choices(beam_args)
        check_java(runner, beam_values)
    if runner == "prismrunner":
        check_prism(beam_values)
    if runner in ("flinkrunner", "portablerunner"):
        _check_flink(beam_values.get("flink_master"))
    if runner == "dataflowrunner":
        _check_gcp(options.view_as(GoogleCloudOptions))


def _check_environment(environment: str | None) -> None:
    if environment and environment not in _ENVIRONMENTS and not environment.startswith("beam:env:"):
        raise UsageError(
            f"--environment_type must be one of {', '.join(_ENVIRONMENTS)}, got {environment!r}"
        )


def _ask_job_server(endpoint: str | None) -> DescribedOptions:
    """Returns what a job server says of its options."""
    if not endpoint:
        raise UsageError("--runner=PortableRunner needs --job_endpoint=HOST:PORT of a job server")
    if endpoint == "embed":
        return ()
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise UsageError(f"--job_endpoint must be HOST:PORT, got {endpoint!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE_S).close()
    except OSError as error:
        raise Unavailable(
            f"no job server answers at --job_endpoint {endpoint!r}: {_reason(error)}"
        ) from error
    # The endpoint may be another server, such as a forwarded port: Beam would wait for minutes.
    return described_options(endpoint, 2 * _PATIENCE_S)


def _check_flink(master: str | None) -> None:
    """Checks that the JobManager has a free slot, if its address is given."""
    if not master or master.startswith("["):
        return
    address = master.strip() if "://" in master else f"http://{master.strip()}"
    try:
        overview = _ask(f"{address}/overview")
        total, free = int(overview["slots-total"]), int(overview["slots-available"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            f"no Flink cluster answers at --flink_master {master!r}: {_reason(error)}"
        ) from error
    if free or _makes_slots(address):
        return
    if not total:
        raise Unavailable(f"the Flink cluster at {master!r} has no slots: start TaskManagers")
    raise Unavailable(
        f"the Flink cluster at {master!r} has no free slot, all {total} are taken: "
        "wait for a job to end, or add TaskManagers"
    )


def _makes_slots(address: str) -> bool:
    """Returns whether a cluster starts TaskManagers when a job needs them."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        keys = {str(entry["key"]) for entry in _ask(f"{address}/jobmanager/config")}
        return any(key.startswith(("kubernetes.cluster-id", "yarn.")) for key in keys)
    return False


def _ask(url: str) -> Any:
    # Without the proxy of the environment, which is for the web, not for a cluster.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=_PATIENCE_S) as answer:
        return read_json(answer.read(1 << 20))


def _reason(error: BaseException) -> str:
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, OSError):
        error = error.reason
    if isinstance(error, OSError) and not isinstance(error, urllib.error.HTTPError):
        return (error.strerror or str(error) or type(error).__name__).lower()
    return one_line(f"{type(error).__name__}: {error}", 200)


def _check_gcp(options: GoogleCloudOptions) -> None:
    for name in _GCP_MODULES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise UsageError(
                f"DataflowRunner needs Google's client libraries, {name!r} is not installed: "
                "pip install 'nutbeam[gcp]'"
            ) from error
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner

    needed_values = {
        "project": options.project,
        "region": options.region or DataflowRunner().get_default_gcp_region(),
        "temp_location": options.temp_location or options.staging_location,
    }
    absent = [f"--{name}" for name, value in needed_values.items() if not value]
    if absent:
        raise UsageError(f"DataflowRunner needs {', '.join(absent)}")
    if not options.no_auth:
        _check_credentials()


def _check_credentials() -> None:
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError

    try:
        google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    except DefaultCredentialsError as error:
        named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
        hint = f": GOOGLE_APPLICATION_CREDENTIALS names {named!r}" if named else ""
        raise UsageError(
            f"no Google Cloud credentials{hint}; run gcloud auth application-default login, "
            "or let GOOGLE_APPLICATION_CREDENTIALS name a key file"
        ) from error
    except GoogleAuthError as error:
        reason = one_line(error, 200)
        raise UsageError(f"Google Cloud credentials cannot be used: {reason}") from error


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
