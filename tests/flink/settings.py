"""Flink's settings: those of its distribution, those that we publish, and what Flink makes of them.

A TaskManager starts as ``taskmanager.sh`` of the distribution starts it: Flink's own calculator
(``TaskExecutorProcessUtils``, called by ``BashJavaUtils``) makes Java's options of the settings.
"""

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
STOCK = HERE / "stock-config.yaml"
COMPOSE = HERE.parents[1] / "templates" / "flink" / "docker-compose.yaml"
CALCULATOR = "org.apache.flink.runtime.util.bash.BashJavaUtils"
RESULT = "BASH_JAVA_UTILS_EXEC_RESULT:"
TASK_MANAGER, JOB_MANAGER = "GET_TM_RESOURCE_PARAMS", "GET_JM_RESOURCE_PARAMS"
# Where the published cluster is, in place of the one on this machine.
_PLACES = ("jobmanager.rpc.address",)


def published() -> dict[str, str]:
    """Returns the settings of the Compose file, without addresses."""
    services = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    lines = services["jobmanager"]["environment"]["FLINK_PROPERTIES"].splitlines()
    settings = dict(line.split(": ", 1) for line in lines)
    return {name: value for name, value in settings.items() if name not in _PLACES}


def write_config(folder: Path, settings: Mapping[str, object]) -> None:
    """Writes ``config.yaml`` as somebody does who adds lines to that of the distribution."""
    folder.mkdir(exist_ok=True)
    lines = "".join(f"{name}: {value}\n" for name, value in settings.items())
    (folder / "config.yaml").write_text(STOCK.read_text("utf-8") + lines)


def java_words(java: str, jar: Path, command: str, folder: Path) -> tuple[list[str], list[str]]:
    """Returns (Java's options, Flink's) that Flink calculates for a process.

    Args:
        java: The program.
        jar: A jar that contains Flink.
        command: ``TASK_MANAGER`` or ``JOB_MANAGER``.
        folder: The folder of ``config.yaml``.

    Raises:
        ValueError: Flink refuses the settings.
    """
    call = [java, "-XX:TieredStopAtLevel=1", "-cp", str(jar), CALCULATOR, command]
    done = subprocess.run(
        [*call, "--configDir", str(folder)], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(RESULT)]
    if done.returncode or len(lines) != 2:
        raise ValueError(f"Flink refuses the settings:\n{done.stdout}{done.stderr}")
    java_options, flink_options = (shlex.split(line.removeprefix(RESULT)) for line in lines)
    return java_options, flink_options
