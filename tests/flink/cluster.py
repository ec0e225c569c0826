"""A real Flink cluster on loopback: JobManager, TaskManagers, Beam's job server, worker processes.

::

    with Cluster() as cluster:
        nutbeam("crawl", table, *seeds, *cluster.options)

All of it comes out of build/tools/flink-job-server.jar (tests/flink/pom.xml) and
build/tools/beam-boot. ``NUTBEAM_TEST_FLINK=1.20`` names another version of Flink. Ports are chosen by
the system; nothing outlives the ``with``.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from . import settings
from .processes import Keeper, Process, marked
from .settings import COMPOSE, published, write_config

HERE = Path(__file__).resolve().parent
TOOLS = Path(os.environ.get("NUTBEAM_TOOLS") or HERE.parents[1] / "build" / "tools")
FLINK = os.environ.get("NUTBEAM_TEST_FLINK", "")
JAR = TOOLS / (f"flink-job-server-{FLINK}.jar" if FLINK else "flink-job-server.jar")
BOOT = TOOLS / "beam-boot"
DEADLINE_S = 240.0  # of anything that is waited for: the machine may be busy
# How long a worker without work waits for the next stage; without that each stage starts its own.
# A job starts again later (the published delay), or it would get the worker that has died.
CACHE_S = 30
# Network memory: bytes of a buffer, and buffers for a shuffle that a step writes, by default.
BUFFER, SHUFFLE_BUFFERS = 32 << 10, 512
JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
JAVA_OPTIONS = (
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.showShortLogName=true",
)
OPENS = ("lang", "util", "nio", "net", "io", "time", "util.concurrent")
ENDED = ("FINISHED", "FAILED", "CANCELED")
# What the tests' cluster has besides the published settings: nothing about memory.
OWN = {
    "io.tmp.dirs": "{folder}",
    "restart-strategy.fixed-delay.attempts": "{attempts}",
    "heartbeat.interval": "2000",
    "heartbeat.timeout": "60000",
    "pekko.ask.timeout": "60 s",
    "jobmanager.rpc.port": "{rpc}",
    "rest.port": "{rest}",
}


def missing() -> str:
    """Returns what is missing to start a cluster, and the cure; empty if nothing is."""
    absent = [] if _java() else ["Java"]
    absent += [str(path) for path in (JAR, BOOT, COMPOSE) if not path.exists()]
    cure = "install Java 17; make test-flink makes the rest"
    return f"Flink needs {', '.join(absent)}: {cure}" if absent else ""


class Cluster:
    """A cluster for the length of a ``with`` block.

    Args:
        task_managers: How many; each has one slot, and so one Python worker.
        attempts: How often Flink starts a failed job again.
        more_settings: Settings of Flink that differ from the published ones.
        bare: Whether workers have nutbeam's libraries but not nutbeam itself,
            nor what else is installed in development mode.
        short: Whether Java is to save the time in which it would get faster.

    Attributes:
        folder: Logs, configuration and temporary files; removed at the end.
    """

    def __init__(
        self,
        task_managers: int = 2,
        *,
        attempts: int = 10,
        more_settings: Mapping[str, str] = MappingProxyType({}),
        bare: bool = False,
        short: bool = True,
    ) -> None:
        self.task_managers = task_managers
        self._attempts, self._bare, self._settings = attempts, bare, more_settings
        self._options = [*JAVA_OPTIONS, *(["-XX:TieredStopAtLevel=1"] if short else [])]
        self._java: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        if missing():
            raise RuntimeError(missing())
        for left in (2, 1, 0):
            try:
                self._start()
                return self
            except RuntimeError:
                self.close()
                if not left:
                    raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes and removes the folder; may be called twice."""
        self._keeper.close()
        for process in self._java.values():
            process.wait()

    @property
    def mark(self) -> str:
        """What the environment of each process of the cluster holds."""
        return self._keeper.mark

    @property
    def environment(self) -> dict[str, str]:
        """For processes that must not outlive the cluster."""
        return self._keeper.environment

    @property
    def beam_args(self) -> list[str]:
        """What a pipeline needs to run here; batch shuffles, so that little is done twice."""
        return [
            "--runner=PortableRunner",
            f"--job_endpoint=localhost:{self.job_port}",
            f"--parallelism={self.task_managers}",
            "--environment_type=PROCESS",
            f"--environment_options=process_command={HERE / 'beam-worker'}",
            "--execution_mode_for_batch=BATCH_FORCED",
            f"--environment_cache_millis={CACHE_S * 1000}",
        ]

    @property
    def options(self) -> list[str]:
        """What a nutbeam command needs to run here; workers find nutbeam unless they are bare."""
        deliver = [] if self._bare else ["--deliver", "false"]
        return ["--shared_path", *deliver, *self.beam_args]

    def rest(self, path: str, method: str = "GET") -> Any:
        """Asks the JobManager; returns the decoded answer."""
        request = urllib.request.Request(f"http://localhost:{self.rest_port}{path}", method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def jobs(self) -> dict[str, str]:
        """Returns the state of each job, by id."""
        return {job["id"]: job["status"] for job in self.rest("/jobs")["jobs"]}

    def running(self) -> list[str]:
        """Returns the ids of the jobs that have not ended."""
        return [job for job, state in self.jobs().items() if state not in ENDED]

    def failures(self, job: str) -> list[str]:
        """Returns what has failed in a job, whether it was recovered or not."""
        history = self.rest(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"]
        return [f"{entry.get('taskName')}: {entry['exceptionName']}" for entry in history]

    def network_buffers(self) -> int:
        """Returns the buffers of network memory that each TaskManager has."""
        managers = self.rest("/taskmanagers")["taskmanagers"]
        return min(one["memoryConfiguration"]["networkMemory"] for one in managers) // BUFFER

    def buffers_of_steps(self, job: str) -> list[int]:
        """Returns how many buffers each step of a job needs for the shuffles that it writes."""
        steps = self.rest(f"/jobs/{job}/plan")["plan"]["nodes"]
        written = Counter(source["id"] for step in steps for source in step.get("inputs", ()))
        return [number * SHUFFLE_BUFFERS for number in written.values()]

    def cancel(self) -> None:
        """Cancels all jobs that have not ended, and waits for that."""
        for job in self.running():
            with contextlib.suppress(urllib.error.HTTPError):  # it has just ended
                self.rest(f"/jobs/{job}?mode=cancel", "PATCH")
        wait_for(lambda: not self.running(), "cancelled jobs")

    def processes(self) -> list[Process]:
        """Returns all processes of the cluster, of its workers and of what those started."""
        return marked(self.mark)

    def workers(self) -> list[Process]:
        """Returns the Python workers."""
        return [
            p for p in self.processes() if "apache_beam.runners.worker.sdk_worker_main" in p.command
        ]

    def task_manager_pids(self) -> list[int]:
        """Returns the ids of the living TaskManagers."""
        named = self._java.items()
        return [p.pid for name, p in named if name.startswith("taskmanager") and p.poll() is None]

    def replace_task_manager(self, pid: int) -> None:
        """Kills a TaskManager, but not its worker, and starts another one in its place."""
        (process,) = [process for process in self._java.values() if process.pid == pid]
        process.kill()
        process.wait()
        self._run_task_manager()

    def logs(self) -> str:
        """Returns the last lines of each process' log."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{path.name}:\n{path.read_text()[-3000:]}" for path in logs)

    def _start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nutbeam-flink-"))
        self._keeper = Keeper(self.folder)
        self._java = {}
        rpc, self.rest_port, self.job_port, self.artifact_port, expansion = free_ports(5)
        values = {
            "rpc": rpc,
            "rest": self.rest_port,
            "folder": self.folder,
            "attempts": self._attempts,
        }
        own = {name: value.format_map(values) for name, value in OWN.items()}
        write_config(self.folder / "conf", published() | own | self._settings)
        self._run_flink("jobmanager", JOB_MANAGER, settings.JOB_MANAGER)
        for _ in range(self.task_managers):
            self._run_task_manager()
        self._run(
            "jobserver", "-Xmx1g", "-jar", JAR, f"--flink-master=localhost:{self.rest_port}",
            "--job-host=localhost", f"--job-port={self.job_port}", f"--artifact-port={self.artifact_port}",
            f"--expansion-port={expansion}", f"--artifacts-dir={self.folder / 'artifacts'}",
        )  # fmt: skip
        self._wait_for_slots(self.task_managers)
        self._wait(lambda: _answers(self.job_port), "the job server")

    def _run_task_manager(self) -> None:
        number = sum(name.startswith("taskmanager") for name in self._java)
        self._run_flink(f"taskmanager{number}", TASK_MANAGER, settings.TASK_MANAGER)

    def _run_flink(self, name: str, main: str, calculation: str) -> None:
        """Starts a process of Flink as the scripts of its distribution do."""
        folder = self.folder / "conf"
        java_options, options = settings.java_words(_java(), JAR, calculation, folder)
        more = published().get("env.java.opts.taskmanager", "").split()
        self._run(name, *java_options, *more, "-cp", JAR, main, "-c", folder, *options)

    def _run(self, name: str, *words: object) -> None:
        opens = [f"--add-opens=java.base/java.{part}=ALL-UNNAMED" for part in OPENS]
        libraries = sysconfig.get_path("purelib")
        environment = {
            **self.environment,
            "BEAM_BOOT": str(BOOT),
            "WORKER_PYTHON": sys.executable,
            "LIBRARIES": libraries
            if self._bare
            else f"import site; site.addsitedir({libraries!r})",
            "TMPDIR": str(self.folder),
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            self._java[name] = subprocess.Popen(
                [_java(), *self._options, *opens, *map(str, words)], cwd=self.folder,
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def _wait_for_slots(self, number: int) -> None:
        def there() -> bool:
            with contextlib.suppress(OSError):
                return bool(self.rest("/overview")["slots-total"] == number)
            return False

        self._wait(there, f"{number} slots")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        def done() -> bool:
            ended = [name for name in ("jobmanager", "jobserver") if self._ended(name)]
            if ended:
                raise RuntimeError(f"{ended} ended before it was up:\n{self.logs()}")
            return condition()

        wait_for(done, what)

    def _ended(self, name: str) -> bool:
        return name in self._java and self._java[name].poll() is not None


def wait_for(condition: Callable[[], Any], what: str, seconds: float = DEADLINE_S) -> Any:
    """Waits until a condition is true, and returns what it gave.

    Raises:
        RuntimeError: It took too long.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.05)
    return found


def free_ports(count: int) -> list[int]:
    """Returns ports of loopback that are free now."""
    with contextlib.ExitStack() as sockets:
        opened = [
            sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [int(one.getsockname()[1]) for one in opened]


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("localhost", port), timeout=5):
        return True
    return False


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None) or shutil.which("java") or ""


def started(**parameters: Any) -> Iterator[Cluster]:
    """For fixtures: a cluster, or a skip that says what is missing."""
    import pytest

    if missing():
        pytest.skip(missing())
    with Cluster(**parameters) as cluster:
        yield cluster
