import pytest

from nutbeam.pipelines.running.job_failures import from_text, user_error
from nutbeam.web.base.errors import JobFailed, NothingToDo, UsageError, UserError

PYTHON = """\
Traceback (most recent call last):
  File "apache_beam/runners/common.py", line 1498, in apache_beam.runners.common.DoFnRunner.process
    return self.do_fn_invoker.invoke_process(windowed_value)
  File "/w/site-packages/nutbeam/transforms/operations.py", line 60, in check
    raise {error}
{module}{error}: {message}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/w/site-packages/apache_beam/runners/worker/sdk_worker.py", line 311, in _execute
    response = task()
               ^^^^^^
{module}{error}: {message} [while running 'CheckWorker']
"""
PRISM = "Pipeline job-001 failed in state FAILED: bundle inst001 stage-001 failed:"
FLINK = "Pipeline BeamApp-root-1-2_3-4 failed in state FAILED: "
JAVA = "java.lang.RuntimeException: Error received from SDK harness for instruction 2: "
STACK = """
\tat org.apache.beam.runners.fnexecution.control.FnApiControlClient$ResponseStreamObserver.onNext(\
FnApiControlClient.java:180)
\tat org.apache.beam.vendor.grpc.v1p60p1.io.grpc.stub.ServerCalls.onMessage(ServerCalls.java:262)
\t... 1 more
"""


@pytest.mark.parametrize("kind", [UsageError, UserError, JobFailed])
@pytest.mark.parametrize(
    ("before", "after"), [("", ""), (PRISM, ""), (FLINK + JAVA, STACK), (FLINK + JAVA, "\n\n")]
)
def test_our_own_error_is_found_in_the_traceback_of_a_runner(before, after, kind):
    text = PYTHON.format(
        module="nutbeam.web.base.errors.", error=kind.__name__, message="the\nreason"
    )
    error = user_error(RuntimeError(f"{before}{text}{after}"))
    assert (type(error), str(error)) == (kind, "the reason")


def test_an_error_with_an_exit_code_of_its_own():
    text = PYTHON.format(
        module="nutbeam.web.base.errors.", error="NothingToDo", message="nothing to fetch"
    )
    error = user_error(RuntimeError(FLINK + JAVA + text + STACK))
    assert (type(error), error.exit_code) == (NothingToDo, 1)


def test_dataflow_raises_an_exception_of_its_own():
    class DataflowRuntimeException(Exception):
        pass

    text = PYTHON.format(module="nutbeam.web.base.errors.", error="UserError", message="disk full")
    raised = DataflowRuntimeException(f"Dataflow pipeline failed. State: FAILED, Error:\n{text}")
    assert (type(user_error(raised)), str(user_error(raised))) == (UserError, "disk full")


def test_our_error_has_priority_over_errors_that_it_caused():
    text = PYTHON.format(module="nutbeam.web.base.errors.", error="UserError", message="disk full")
    assert str(from_text(text + "\nTraceback (most recent call last):\nValueError: later")) == (
        "disk full"
    )


@pytest.mark.parametrize(
    ("before", "after"), [("", ""), (PRISM, ""), (FLINK + JAVA, STACK), (FLINK, "\n\n")]
)
def test_another_exception_names_its_step(before, after):
    text = PYTHON.format(module="", error="OSError", message="disk\nfull")
    assert str(from_text(before + text + after)) == ("OSError: disk full (in step 'CheckWorker')")


# Each as it came from the cluster that is named.
KNOWN = {
    "Prism, nutbeam": (
        PYTHON.format(module="", error="ModuleNotFoundError", message="No module named 'nutbeam'"),
        (
            "package 'nutbeam' is missing on the workers: leave out --deliver false, or install it "
            "in their image"
        ),
    ),
    "Prism, a plug-in": (
        PYTHON.format(module="", error="ModuleNotFoundError", message="No module named 'my.rules'"),
        (
            "package 'my.rules' is missing on the workers: --plugin_package my, or install it "
            "in their image"
        ),
    ),
    "Flink, slots": (
        FLINK + "java.util.concurrent.TimeoutException: Timeout has occurred: 15000 ms",
        "the cluster has no free slot: wait for a job to end, or add workers",
    ),
    "Flink, network memory": (
        FLINK
        + "java.io.IOException: Insufficient number of network buffers: required 512, but only 508 "
        "available. The total number of network buffers is currently set to 4096 of 32768 bytes each.",
        (
            "a TaskManager has too little network memory (512 buffers were needed, 508 were free): "
            "set taskmanager.memory.network.min and taskmanager.memory.network.max to 256m or more"
        ),
    ),
    "Prism, slow workers": (
        (
            "jobFailed job-001[job]: prism worker[job-001[job]_ref_Environment_default_environment_1] "
            "didn't get control connection to localhost:37489 after 1m0s"
        ),
        (
            "the workers did not begin in the 1m0s for which Prism waits: run the command again "
            "when the machine is less busy"
        ),
    ),
    "Flink, worker without nutbeam": (
        FLINK + "java.util.concurrent.TimeoutException: Waited 3 minutes (plus 327354 nanoseconds "
        "delay) for SettableFuture@5e328863[status=PENDING]",
        (
            "the workers do not begin: most often a package is missing on them, their log says which; "
            "leave out --deliver false, or install it in their image"
        ),
    ),
    "Flink, boot": (
        FLINK + "java.lang.IllegalStateException: Process died with exit code 1",
        (
            "the workers do not start (their boot program failed): see their log; they need Python, "
            "Beam, and nutbeam's dependencies or a package index to install them from"
        ),
    ),
    "Flink, worker's program": (
        FLINK + "java.io.IOException: error=2, No such file or directory",
        (
            "the workers do not start: '/opt/worker', the process_command of --environment_options, "
            "cannot be run on their machine"
        ),
    ),
    "Flink, no worker pool": (
        FLINK + "java.net.ConnectException: finishConnect(..) failed: Connection refused",
        (
            "the workers do not start: most often no worker pool answers at the address in "
            "--environment_config, from where a TaskManager is"
        ),
    ),
    "Flink, options": (
        FLINK + "java.lang.IllegalArgumentException: Parallelism must be at least one",
        "IllegalArgumentException: Parallelism must be at least one",
    ),
    "Flink, its job server's jar": (
        (
            "Unable to fetch remote job server jar at https://repo.org/a/b-2.77.0.jar: HTTP Error 404: Not "
            "Found. Also failed to fetch from Google Maven mirror at https://m.org/a/b-2.77.0.jar: "
            "<urlopen error [Errno -2] Name or service not known>. If no Internet access at runtime, ..."
        ),
        (
            "the job server cannot be fetched from 'https://repo.org/a/b-2.77.0.jar' (HTTP Error 404: "
            "Not Found): give its jar (--flink_job_server_jar, --spark_job_server_jar) or another "
            "--flink_version, or start the job server elsewhere and give --runner=PortableRunner"
        ),
    ),
    "Prism, its program": (
        (
            "Unable to fetch remote prism binary at https://g.com/v2.77.0/prism-linux-amd64.zip: "
            "<urlopen error [Errno -2] Name or service not known>"
        ),
        (
            "Prism cannot be fetched from 'https://g.com/v2.77.0/prism-linux-amd64.zip' (Name or "
            "service not known): build it with go install "
            "github.com/apache/beam/sdks/v2/go/cmd/prism, and give --prism_location"
        ),
    ),
    "nothing": ("", "no reason was given"),
}


@pytest.mark.parametrize("case", KNOWN)
def test_errors_of_clusters_become_one_helpful_line(case):
    text, line = KNOWN[case]
    error = from_text(text, "/opt/worker")
    assert (type(error), str(error)) == (JobFailed, line)


def test_a_long_message_is_cut():
    assert len(str(from_text("x" * 10_000))) <= 500
