"""Runners that start a job server here, and what is named as one but is none."""

import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.portability.api import beam_job_api_pb2_grpc as api_grpc
from apache_beam.runners.portability.local_job_service import LocalJobServicer
from crawling import nutbeam
from job_server import run
from running import NO_PRISM, PRISM

from nutbeam.pipelines.launch.runner_checks import check_runner
from nutbeam.pipelines.running import runner

SEED = "http://a.example.com/"


def refused(folder, capsys, *beam_args):
    """Returns the one line and the exit code of a command; nothing was written."""
    table = folder / "table"
    code = nutbeam("inject", table, SEED, "--shared_path", *beam_args)
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), table.exists()) == ("", 1, False)
    return err.removeprefix("nutbeam inject: ").rstrip("\n"), code


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def file_of(folder, kind):
    """Makes what is not Prism; returns its path."""
    path = folder / "file.zip"
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("text")
    elif kind == "script":
        program(path, "#!/bin/sh\necho another\n")
    elif kind == "no program":
        program(path, "text")
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as content:
            content.writestr("other", "text")
    return path


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("none", "there is no such file"),
        ("folder", "it is a folder"),
        ("text", "it is not executable"),
        ("script", "it is another program"),
        ("no program", "it cannot be run (exec format error)"),
        ("zip", "it has no file 'file'"),
    ],
)
def test_a_prism_location_that_is_not_prism(kind, problem, tmp_path, capsys):
    path = file_of(tmp_path, kind)
    before = path.stat().st_mode if path.exists() else 0
    line, code = refused(tmp_path, capsys, "--runner=PrismRunner", f"--prism_location={path}")
    assert line == (
        "--prism_location must be Prism's program, a zip with it, or a page of Beam's releases on "
        f"GitHub, got {str(path)!r}: {problem}"
    )
    assert code == 2
    # Beam makes a program of whatever is named.
    assert not path.exists() or path.stat().st_mode == before
    assert kind != "text" or not path.stat().st_mode & stat.S_IEXEC


def test_a_page_that_beam_does_not_take(tmp_path, capsys):
    words = ("--runner=PrismRunner", "--prism_location=http://127.0.0.1:1/prism.zip")
    line, code = refused(tmp_path, capsys, *words)
    assert line.endswith(
        "not an Apache Beam Github Release page URL or download URL: http://127.0.0.1:1/prism.zip"
    )
    assert code == 3


@pytest.mark.prism
@pytest.mark.skipif(not PRISM.exists(), reason=NO_PRISM)
def test_prism_itself(tmp_path):
    words = ("--runner=PrismRunner", f"--prism_location={PRISM}")
    assert run("inject", tmp_path / "table", SEED, *words)[0] == 0


@pytest.mark.parametrize("runner", ["FlinkRunner", "SparkRunner"])
@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("none", "there is no such file"),
        ("folder", "it is a folder"),
        ("text", "it is no jar that can be started"),
        ("zip", "it is no jar that can be started"),
    ],
)
def test_a_jar_that_is_no_job_server(kind, problem, runner, tmp_path, capsys):
    path, java = file_of(tmp_path, kind), program(tmp_path / "java", "#!/bin/sh\n")
    name = f"--{runner.lower().replace('runner', '_job_server_jar')}"
    words = (f"--runner={runner}", f"{name}={path}", f"--job_server_java_launcher={java}")
    line, code = refused(tmp_path, capsys, *words)
    assert line == (
        f"{name} must be the jar of Beam's job server, got {str(path)!r}: {problem}; leave it out "
        "to let Beam fetch it, or start the job server elsewhere and give --runner=PortableRunner"
    )
    assert code == 2


def test_java_that_is_not_there(tmp_path, capsys):
    words = ("--runner=FlinkRunner", "--job_server_java_launcher=/no/java")
    line, code = refused(tmp_path, capsys, *words)
    assert line == (
        "--runner=FlinkRunner starts a job server in Java, and '/no/java' is not found: install "
        "Java, or start the job server elsewhere and give --runner=PortableRunner"
    )
    assert code == 2


@pytest.mark.long
def test_a_job_server_that_ends_at_once(tmp_path):
    java, jar = program(tmp_path / "java", "#!/bin/sh\nexit 7\n"), tmp_path / "any.jar"
    with zipfile.ZipFile(jar, "w") as content:
        content.writestr("META-INF/MANIFEST.MF", "Main-Class: a.B\n")
    words = ("--runner=FlinkRunner", f"--flink_job_server_jar={jar}", "--shared_path",
             f"--job_server_java_launcher={java}")  # fmt: skip
    # In a process of its own: what Beam's threads say goes to standard error.
    code, out, err = run("inject", tmp_path / "table", SEED, *words)
    assert (code, out, err) == (
        3, "",
        ("nutbeam inject: the job server that Beam has started here ended at once, with code 7: "
        "--log_level debug shows its messages\n"),
    )  # fmt: skip
    assert not (tmp_path / "table").exists()


class Described(api_grpc.JobServiceServicer):
    """A job server that describes its options as Flink's does, and takes no jobs."""

    def DescribePipelineOptions(self, request, context):
        kinds = api.PipelineOptionType
        described = (("parallelism", kinds.INTEGER, "-1"), ("object_reuse", kinds.BOOLEAN, "false"),
                     ("execution_mode_for_batch", kinds.STRING, "PIPELINED"))  # fmt: skip
        return api.DescribePipelineOptionsResponse(
            options=[
                api.PipelineOptionDescriptor(name=name, type=kind, default_value=default)
                for name, kind, default in described
            ]
        )


@pytest.fixture(scope="module")
def describing():
    """Options that name a job server which describes its own."""
    server = grpc.server(ThreadPoolExecutor(2))
    api_grpc.add_JobServiceServicer_to_server(Described(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield ("--runner=PortableRunner", f"--job_endpoint=localhost:{port}")
    server.stop(None).wait()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--tabel_x", "3"], "unknown option '--tabel_x': neither Beam nor the job server has it"),
        (
            ["--object-reuse"],
            (
                "unknown option '--object-reuse': neither Beam nor the job server has it; "
                "did you mean '--object_reuse'?"
            ),
        ),
        (["--object_reuse", "false"], "--object_reuse takes no value, got 'false'"),
        (["--object_reuse=false"], "--object_reuse takes no value, got 'false'"),
        (
            ["--execution_mode_for_batch=BATCHFORCED"],
            (
                "--execution_mode_for_batch must be one of BATCH, BATCH_FORCED, PIPELINED, "
                "PIPELINED_FORCED, got 'BATCHFORCED'"
            ),
        ),
    ],
)
def test_options_that_a_job_server_does_not_have(describing, words, reason, tmp_path, capsys):
    assert refused(tmp_path, capsys, *describing, *words) == (reason, 2)


def test_a_value_that_flink_refuses_later_without_a_job_server(tmp_path, capsys):
    words = ("--runner=FlinkRunner", "--execution_mode_for_batch=BATCHFORCED")
    line, code = refused(tmp_path, capsys, *words)
    assert (line.endswith(", got 'BATCHFORCED'"), code) == (True, 2)


def test_options_of_beam_of_plug_ins_and_of_the_job_server_pass(describing):
    class Others(PipelineOptions):
        @classmethod
        def _add_argparse_args(cls, parser):
            parser.add_argument("--option_of_a_plug_in")

    words = ["--object_reuse", "--execution_mode_for_batch", "BATCH_FORCED", "--parallelism=2",
             "--option_of_a_plug_in=x", "--sdk_location", "container"]  # fmt: skip
    check_runner("portablerunner", [*describing, *words])


def test_a_job_that_fails_soon_after_it_was_submitted_is_not_called_submitted(
    tmp_path, capsys, monkeypatch
):
    table = tmp_path / "table"
    assert nutbeam("inject", table, SEED) == 0
    monkeypatch.setattr(runner, "_LOOK_S", 600.0)  # the machine may be busy
    server = LocalJobServicer()
    port = server.start_grpc_server()
    try:
        words = ("--runner=PortableRunner", f"--job_endpoint=localhost:{port}",
                 "--environment_type=PROCESS", "--environment_options=process_command=/no/program",
                 "--one_worker_urls", 0, "--deliver", "false", "--shared_path")  # fmt: skip
        capsys.readouterr()
        assert nutbeam("next", table, *words) == 3
    finally:
        server.stop()
    out, err = capsys.readouterr()
    assert out == ""
    assert "beam:env:process:v1" in err  # this server starts no processes
