"""Launches Flex Templates as their launcher does, and runs what they have staged on Prism."""

import itertools
import json
import os
import subprocess
import sys
import sysconfig

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_job_api_pb2, beam_runner_api_pb2
from apache_beam.runners.portability.portable_runner import JobServiceHandle
from apache_beam.runners.portability.prism_runner import PrismJobServer
from gcs_server import PROJECT
from here import ROOT
from running import PRISM, TOOLS

MAIN = ROOT / "templates" / "dataflow" / "main.py"
BOOT = TOOLS / "beam-boot"
WORKER = ROOT / "tests" / "flink" / "beam-worker"
BUCKET = "bucket"
IMAGE = "us-central1-docker.pkg.dev/my-project-123/crawls/nutbeam:1"
_ENDED = {beam_job_api_pb2.JobState.DONE, beam_job_api_pb2.JobState.FAILED,
          beam_job_api_pb2.JobState.CANCELLED}  # fmt: skip
# Prism's bound for the start of a worker: too short for a busy machine, and no option changes it.
_TOO_LATE = "didn't get control connection"


class Launcher:
    """Starts templates against a Cloud Storage, as the Flex Template launcher does."""

    def __init__(self, server):
        self._server, self._numbers = server, itertools.count(1)
        server.make_bucket(BUCKET)

    def launch(self, command, folder, parameters):
        """Runs the launch script of a command; returns the job that it has staged.

        Args:
            command: Which template.
            folder: Working folder, away from any nutbeam.toml.
            parameters: Texts by name, as ``--parameters`` of gcloud gives them.
        """
        named = {"command": command} | parameters
        return self._launched(
            *self._start([MAIN], command, folder, named, {"NUTBEAM_IMAGE": IMAGE})
        )

    def submit(self, command, folder, parameters):
        """Submits a command from a machine of one's own, as ``nutbeam`` does; returns the job."""
        words = ["-m", "nutbeam", command, "--no_wait_until_finish"]
        return self._launched(*self._start(words, command, folder, parameters, {}))

    def refuse(self, command, folder, parameters, **environ):
        """Runs the launch script of a command, which fails; returns what it says."""
        named = {"command": command} | parameters
        done, _ = self._start([MAIN], command, folder, named, environ | {"NUTBEAM_IMAGE": IMAGE})
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        return done.stderr

    def _launched(self, done, place):
        assert done.returncode == 0, done.stderr
        return Job(self._server, json.loads(self._server.read(place)), done.stdout)

    def _start(self, script, command, folder, parameters, environ):
        number = next(self._numbers)
        place = f"gs://{BUCKET}/staging/template_launches/{number}/job_object"
        launched = {
            "job_name": f"nutbeam-{command}-{number}",
            "labels": '{"goog-dataflow-provided-template-type": "flex"}',
            "project": PROJECT,
            "region": "us-central1",
            "runner": "DataflowRunner",
            "service_account_email": f"crawler@{PROJECT}.iam.gserviceaccount.com",
            "staging_location": f"gs://{BUCKET}/staging",
            "temp_location": f"gs://{BUCKET}/temp",
            "template_location": place,
        }
        words = [f"--{name}={value}" for name, value in sorted((launched | parameters).items())]
        clean = {n: v for n, v in os.environ.items() if not n.startswith(("NUTBEAM", "GOOGLE"))}
        done = subprocess.run(
            [sys.executable, *script, *words], cwd=folder, timeout=300,
            env={**clean, **self._server.environ, **environ},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done, place


class Job:
    """A staged job.

    Attributes:
        record: What the launcher would send to Dataflow.
        pipeline: The graph.
        size: Of the graph, in bytes.
        said: What the launcher printed.
    """

    def __init__(self, server, record, said):
        self._server, self.record, self.said = server, record, said
        data = server.read(record["environment"]["sdkPipelineOptions"]["options"]["pipelineUrl"])
        self.size = len(data)
        self.pipeline = beam_runner_api_pb2.Pipeline.FromString(data)

    def environments(self):
        """Returns the environments of the graph."""
        return list(self.pipeline.components.environments.values())

    def artifacts(self):
        """Returns (name on the worker, its bytes in the bucket) of all that environments need."""
        return [self._artifact(need) for env in self.environments() for need in env.dependencies]

    def _artifact(self, need):
        assert need.type_urn == common_urns.artifact_types.URL.urn
        url = beam_runner_api_pb2.ArtifactUrlPayload.FromString(need.type_payload).url
        role = beam_runner_api_pb2.ArtifactStagingToRolePayload.FromString(need.role_payload)
        return role.staged_name, self._server.read(url)


class Prism:
    """A Prism server; its workers are processes that Beam's boot program starts, as in an image.

    Args:
        folder: Where artifacts and what the workers need are kept.
        environ: Further variables of the workers.
    """

    def __init__(self, folder, environ=None):
        self._folder, self._environ = folder, environ or {}

    def __enter__(self):
        self._server = PrismJobServer(
            PipelineOptions([f"--prism_location={PRISM}", "--prism_log_level=warn"])
        )
        self._service = self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop()

    def run(self, job, bare=False):
        """Runs a staged graph: the same bytes, but that its environment is one that runs here.

        Args:
            job: What was staged.
            bare: The workers have Beam and our libraries, and not nutbeam, unless it was staged.
        """
        pipeline = beam_runner_api_pb2.Pipeline()
        pipeline.CopyFrom(job.pipeline)
        staged = dict(job.artifacts())
        for environment in pipeline.components.environments.values():
            assert environment.urn == common_urns.environments.DOCKER.urn
            environment.urn = common_urns.environments.PROCESS.urn
            environment.payload = self._process(bare).SerializeToString()
            for need in environment.dependencies:  # Prism has no way to a bucket
                role = beam_runner_api_pb2.ArtifactStagingToRolePayload.FromString(
                    need.role_payload
                )
                path = self._folder / role.staged_name
                path.write_bytes(staged[role.staged_name])
                need.type_urn = common_urns.artifact_types.FILE.urn
                need.type_payload = beam_runner_api_pb2.ArtifactFilePayload(
                    path=str(path)
                ).SerializeToString()
        for _ in range(3):
            handle = JobServiceHandle(self._service, PipelineOptions([]))
            _, messages, states = handle.submit(pipeline)
            last = next(state.state for state in states if state.state in _ENDED)
            if last == beam_job_api_pb2.JobState.DONE:
                return
            said = "\n".join(m.message_response.message_text for m in messages)
            if _TOO_LATE not in said:
                break
        raise AssertionError(said)

    def _process(self, bare):
        libraries = sysconfig.get_path("purelib")
        environ = {
            "BEAM_BOOT": str(BOOT),
            # Only the second line heeds the .pth file by which nutbeam is installed here.
            "LIBRARIES": libraries if bare else f"import site; site.addsitedir({libraries!r})",
            "TMPDIR": str(self._folder),
            "WORKER_PYTHON": sys.executable,
            **self._environ,
        }
        return beam_runner_api_pb2.ProcessPayload(command=str(WORKER), env=environ)
