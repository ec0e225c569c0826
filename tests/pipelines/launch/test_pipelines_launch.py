import contextlib
import http.server
import json
import os
import re
import sys
import threading

import pytest
from crawling import nutbeam, statuses_of
from free_ports import free_port
from job_server import LIBRARIES, JobServer, missing, run
from plugins import install_example
from simulated_web import SimWeb

from nutbeam.pipelines.launch.delivery import wheel_of
from nutbeam.pipelines.launch.launch import LaunchOptions, launch_args, preflight, workers_elsewhere
from nutbeam.pipelines.running.runner import make_pipeline
from nutbeam.web.base.errors import Unavailable, UsageError

PORTABLE = ("--runner=PortableRunner", "--job_endpoint=flink:8099")
DATAFLOW = ("--runner=DataflowRunner", "--project=my-project", "--region=us-central1",
            "--temp_location=gs://bucket/tmp")  # fmt: skip
SHARED = LaunchOptions(shared_path=True)
EDITABLE = f"import site; site.addsitedir({LIBRARIES!r})"  # all that is installed here


def on_prism(test):
    """Marks a test that needs Prism and Beam's boot program."""
    return pytest.mark.prism(pytest.mark.skipif(bool(missing()), reason=missing())(test))


@pytest.mark.parametrize(
    ("beam_args", "elsewhere"),
    [
        ([], False),
        (["--runner=DirectRunner", "--direct_num_workers=2"], False),
        (["--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"], False),
        (["--runner=BundleBasedDirectRunner"], False),
        (["--runner=PrismRunner"], False),
        (["--runner", "prism"], False),
        (["--runner=PortableRunner", "--job_endpoint=h:1"], True),
        (["--runner=portable", "--job_endpoint=h:1", "--environment_type=PROCESS"], True),
        (["--runner=PortableRunner", "--job_endpoint=h:1", "--environment_type=loopback"], False),
        (["--runner=PortableRunner", "--job_endpoint=embed"], False),
        (["--runner=FlinkRunner", "--flink_master=h:1"], True),
        (["--runner=FlinkRunner", "--flink_master=[local]"], False),
        (["--runner=FlinkRunner"], True),
        (["--runner=SparkRunner"], False),
        (["--runner=SparkRunner", "--spark_master_url=spark://h:7077"], True),
        (["--runner=DataflowRunner"], True),
    ],
)
def test_which_workers_are_elsewhere(beam_args, elsewhere):
    assert workers_elsewhere(beam_args) == elsewhere


@pytest.mark.parametrize(
    "words",
    [
        ("crawl", "http://a.com/", "--connect_to", "a.com:80:127.0.0.1:1"),
        ("inject", "http://a.com/"),
        ("generate",),
        ("fetch", "--connect_to", "a.com:80:127.0.0.1:1"),
        ("parse",),
        ("updatedb",),
        ("dedup",),
        ("round", "--connect_to", "a.com:80:127.0.0.1:1"),
        ("pages",),
    ],
)
def test_a_folder_of_this_machine_is_refused_for_workers_elsewhere(words, tmp_path, capsys):
    command, *rest = words
    table = tmp_path / "table"
    assert nutbeam(command, table, *rest, *PORTABLE) == 2
    assert capsys.readouterr().err == (
        f"nutbeam {command}: the table {str(table)!r} is a folder of this machine, which workers "
        "of PortableRunner may not find: give --shared_path if they share it, or an address that "
        "all can reach\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_job_server_that_is_not_there(tmp_path, capsys):
    endpoint = f"localhost:{free_port()}"
    words = ("--runner=PortableRunner", f"--job_endpoint={endpoint}", "--shared_path")
    # Not 2: a scheduler may try again.
    assert nutbeam("inject", tmp_path / "table", "http://a.com/", *words) == 3
    assert capsys.readouterr().err == (
        f"nutbeam inject: no job server answers at --job_endpoint {endpoint!r}: "
        "connection refused\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        (None, "--runner=PortableRunner needs --job_endpoint=HOST:PORT of a job server"),
        ("flink", "--job_endpoint must be HOST:PORT, got 'flink'"),
        ("http://flink", "--job_endpoint must be HOST:PORT, got 'http://flink'"),
        ("localhost:99999", "--job_endpoint must be HOST:PORT, got 'localhost:99999'"),
    ],
)
def test_endpoints_that_are_none(endpoint, message):
    beam_args = ["--runner=PortableRunner", *([f"--job_endpoint={endpoint}"] if endpoint else [])]
    with pytest.raises(UsageError, match=re.escape(message)):
        preflight("table", SHARED, beam_args)


@pytest.mark.parametrize("environment", ["PROCES", "process"])
def test_environments_that_are_none(environment):
    message = f"--environment_type must be one of DOCKER, EXTERNAL, LOOPBACK, PROCESS, got {environment!r}"
    with pytest.raises(UsageError, match=re.escape(message)):
        preflight("table", SHARED, [*PORTABLE, f"--environment_type={environment}"])


def test_a_job_server_at_an_unknown_host_is_refused():
    message = "no job server answers at --job_endpoint 'no.such.host.invalid:1': "
    with pytest.raises(Unavailable, match=re.escape(message)):
        preflight("t", SHARED, ["--runner=PortableRunner", "--job_endpoint=no.such.host.invalid:1"])


@pytest.mark.long
def test_a_port_where_something_else_listens():
    with (
        rest({}) as address,
        pytest.raises(Unavailable, match=f"^the server at --job_endpoint '{address}' is no job"),
    ):
        preflight("table", SHARED, ["--runner=PortableRunner", f"--job_endpoint={address}"])


@contextlib.contextmanager
def rest(answers):
    """Serves JSON by path, as a JobManager's REST interface does; yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path, "no")).encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


OVERVIEW = {"taskmanagers": 2, "slots-total": 2, "slots-available": 0, "jobs-running": 1}
NATIVE = [{"key": "kubernetes.cluster-id", "value": "flink"}]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"/overview": OVERVIEW}, "has no free slot, all 2 are taken: wait for a job to end, or"),
        ({"/overview": {**OVERVIEW, "slots-total": 0}}, "has no slots: start TaskManagers"),
        ({}, "no Flink cluster answers at --flink_master '127.0.0.1:"),
        ({"/overview": {"other": 1}}, "no Flink cluster answers at --flink_master '127.0.0.1:"),
        ({"/overview": {**OVERVIEW, "slots-available": 1}}, None),
        ({"/overview": OVERVIEW, "/jobmanager/config": NATIVE}, None),
    ],
)
def test_a_flink_cluster_without_a_free_slot_is_refused(answers, message):
    """What Flink 1.19 answers; tests on a real cluster are in test-flink."""
    with rest(answers) as address:
        args = ["--runner=FlinkRunner", f"--flink_master={address}", "--flink_submit_uber_jar"]
        if message is None:
            preflight("table", SHARED, args)
            return
        with pytest.raises(Unavailable, match=re.escape(message)) as caught:
            preflight("table", SHARED, args)
    assert repr(address) in str(caught.value)


def test_a_flink_cluster_that_is_not_there():
    args = ["--runner=FlinkRunner", f"--flink_master=localhost:{free_port()}",
            "--flink_submit_uber_jar"]  # fmt: skip
    with pytest.raises(Unavailable, match=r"no Flink cluster answers at .*: connection refused$"):
        preflight("table", SHARED, args)


def test_options_that_dataflow_needs(monkeypatch):
    pytest.importorskip("google.cloud.dataflow")
    monkeypatch.delenv("CLOUDSDK_COMPUTE_REGION", raising=False)
    monkeypatch.setenv("PATH", "")  # no gcloud, which may know a region
    with pytest.raises(UsageError) as caught:
        preflight("gs://bucket/table", LaunchOptions(), ["--runner=DataflowRunner"])
    assert str(caught.value) == "DataflowRunner needs --project, --region, --temp_location"
    with pytest.raises(UsageError, match=r"^DataflowRunner needs --temp_location$"):
        preflight("gs://bucket/table", LaunchOptions(), DATAFLOW[:3])


@pytest.mark.parametrize("named", [None, "/no/such/file.json"])
def test_credentials_that_are_missing(named, monkeypatch, tmp_path):
    pytest.importorskip("google.cloud.dataflow")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.delenv("CLOUDSDK_CONFIG", raising=False)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    if named:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", named)
    with pytest.raises(UsageError) as caught:
        preflight("gs://bucket/table", LaunchOptions(), DATAFLOW)
    hint = f": GOOGLE_APPLICATION_CREDENTIALS names {named!r}" if named else ""
    assert str(caught.value) == (
        f"no Google Cloud credentials{hint}; run gcloud auth application-default login, or let "
        "GOOGLE_APPLICATION_CREDENTIALS name a key file"
    )
    preflight("gs://bucket/table", LaunchOptions(), [*DATAFLOW, "--no_auth"])


def test_client_libraries_that_are_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.cloud.storage", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'nutbeam[gcp]'")) as caught:
        preflight("gs://bucket/table", LaunchOptions(), DATAFLOW)
    assert "'google.cloud.storage' is not installed" in str(caught.value)


@pytest.mark.long
def test_workers_elsewhere_get_nutbeam_first_and_then_the_plug_ins(tmp_path, monkeypatch):
    install_example(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    wheel = wheel_of("headings-filter", tmp_path)
    for named in ("headings-filter", str(wheel)):
        options = LaunchOptions(plugin_package=(named,))
        first, second = launch_args(options, PORTABLE)
        assert re.fullmatch(r"--extra_package=/.*/nutbeam-[^/]+-py3-none-any\.whl", first)
        assert second.endswith("/headings_filter-1.0-py3-none-any.whl")
        assert launch_args(options, PORTABLE) == [first, second]  # made once
        assert launch_args(options, []) == []
    assert launch_args(LaunchOptions(deliver=False, plugin_package=("x",)), PORTABLE) == []
    # What the user gives besides may need nutbeam.
    beam_args = [*launch_args(LaunchOptions(), PORTABLE), *PORTABLE, "--extra_package=mine.whl"]
    given = make_pipeline(beam_args)._options.get_all_options()["extra_packages"]
    assert [os.path.basename(path)[:7] for path in given] == ["nutbeam", "mine.wh"]  # noqa: PTH119


def test_a_filter_that_is_nowhere_is_refused_for_workers_elsewhere(tmp_path, monkeypatch):
    from nutbeam.pipelines.parse import Options

    install_example(tmp_path / "site")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path / "site"))
        wheel = str(wheel_of("headings-filter", tmp_path))
    beam_args = ["--runner=DataflowRunner"]

    def check(**options):
        """Whether it gets as far as to ask for what Dataflow needs."""
        with pytest.raises(UsageError) as caught:
            preflight("gs://b/t", Options(parse_filters=("headings",), **options), beam_args)
        return "Dataflow" in str(caught.value)

    assert not check()
    assert check(plugin_package=(wheel,))  # its wheel is enough, here it is not installed
    assert check(deliver=False)  # the workers' image may have it: they will see
    with pytest.raises(UsageError, match="'headings-filter' is not installed here"):
        preflight("t", Options(plugin_package=(wheel,)), [])


@pytest.fixture(scope="module")
def bare():
    """Workers that have nutbeam's libraries, but not nutbeam."""
    with JobServer(PIP_NO_INDEX="1") as server:
        yield server


@on_prism
def test_a_plug_in_is_used_by_workers_that_have_nothing(bare, tmp_path):
    install_example(tmp_path / "site")
    table = tmp_path / "table"
    with SimWeb(hosts=2, pages=4, seed=7, crawl_delay=0) as web:
        assert nutbeam("inject", table, *web.seeds) == 0
        connect_to = [word for mapping in web.connect_to for word in ("--connect_to", mapping)]
        code, printed, said = run(
            "round", "table", *connect_to, "--server_delay", 0, "--shared_path", *bare.options,
            "--plugin_package", "headings-filter", "--parse_filters", "headings",
            "--log_format", "json", cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"),
        )  # fmt: skip
        assert code == 0, f"{printed}\n{bare.log()[-5000:]}"
    *_, end = map(json.loads, said.splitlines())  # the workers have their own logs
    assert (end["event"], end["exit_code"]) == ("end", 0)
    assert statuses_of(table)[web.seeds[0]] == "db_fetched"
    code, printed, _ = run("pages", table)
    found = [json.loads(line) for line in printed.splitlines()]
    assert len(found) == len(web.seeds)
    assert all(page["metadata"]["headings"] for page in found)
    messages = [json.loads(line)["msg"] for line in bare.log().splitlines() if line[:1] == "{"]
    workers = [m.removeprefix("[SDK] ") for m in messages if m.startswith("[SDK] {")]
    fields = [json.loads(message) for message in workers]
    assert {"INFO"} <= {one["severity"] for one in fields}
    assert all(one["worker"] and one["logger"] for one in fields)


@on_prism
def test_packages_that_are_missing_on_workers_are_reported_in_one_line(bare, tmp_path):
    table = tmp_path / "table"
    inject = ("inject", table, "http://a.com/", "--shared_path", *bare.options)
    code, _, said = run(*inject, "--deliver", "false")
    assert (code, said) == (3, (
        "nutbeam inject: package 'nutbeam' is missing on the workers: leave out --deliver false, "
        "or install it in their image\n"
    ))  # fmt: skip
    assert list(tmp_path.iterdir()) == []  # not even a folder
    inject = ("inject", "/proc/self/cwd/t", "http://a.com/", "--shared_path", *bare.options)
    code, _, said = run(*inject, cwd=tmp_path)
    assert (code, said) == (2, (
        "nutbeam inject: the workers do not find the table '/proc/self/cwd/t': its folder is not "
        "shared with them, although --shared_path says so\n"
    ))  # fmt: skip
    assert list(tmp_path.iterdir()) == []
    assert nutbeam("inject", table, "http://a.com/") == 0
    assert nutbeam("generate", table) == 0
    nowhere = ("--connect_to", "a.com:80:127.0.0.1:1", "--server_delay", 0, "--fetch_retries", 0)
    assert nutbeam("fetch", table, *nowhere[:-2]) == 0  # else there is nothing to parse
    install_example(tmp_path / "site")
    parse = ("parse", table, "--shared_path", *bare.options, "--parse_filters", "headings")
    code, _, said = run(*parse, PYTHONPATH=str(tmp_path / "site"))
    assert (code, said) == (2, (
        "nutbeam parse: on the workers: no parse filter 'headings' is installed: there is none; "
        "--plugin_package sends its package to them\n"
    ))  # fmt: skip


@on_prism
def test_another_version_of_beam_on_the_workers(tmp_path):
    # As if: another one would have to be downloaded.
    other = "import apache_beam.version as v; v.__version__ = '2.60.0'"
    with JobServer(EDITABLE, other) as server:
        words = ("--shared_path", "--deliver", "false", *server.options)
        code, _, said = run("inject", tmp_path / "new" / "t", "http://a.com/", *words)
    assert code == 3
    assert re.fullmatch(
        r"nutbeam inject: the workers have Beam '2\.60\.0', the launcher '[\d.]+': "
        r"install the same version on both\n", said,
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == []
