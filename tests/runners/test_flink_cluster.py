"""Nothing that a cluster started outlives it, however its test ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from flink.cluster import Cluster, missing, wait_for
from flink.processes import NAME, Keeper, end, marked
from here import TESTS

HERE = TESTS
# Starts a cluster and a job that does not end, and says so.
ENDLESS = """
import sys
sys.path.insert(0, sys.argv[1])
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from flink.cluster import Cluster, wait_for

def sleep(_):
    import time
    time.sleep(3600)

with Cluster(1) as cluster:
    pipeline = beam.Pipeline(options=PipelineOptions(cluster.beam_args))
    pipeline | beam.Create([1]) | beam.Map(sleep)
    pipeline.run()
    wait_for(cluster.workers, "a worker")
    print(cluster.mark, cluster.folder, flush=True)
    wait_for(lambda: False, "somebody who ends this", 3600)
"""


def test_a_process_is_found_by_its_mark_though_its_parent_is_gone(tmp_path):
    keeper = Keeper(tmp_path / "folder")
    try:
        child = "import subprocess, sys; subprocess.Popen(['sleep', '600'])"
        subprocess.run([sys.executable, "-c", child], env=keeper.environment, check=True)
        (found,) = marked(keeper.mark)
        assert found.command == "sleep 600"
        assert found.parent != os.getpid()
        assert marked(keeper.mark[:-1]) == []  # a mark is compared as a whole
    finally:
        keeper.close()
    assert marked(keeper.mark) == []
    keeper.close()


def test_the_folder_goes_with_the_processes(tmp_path):
    folder = tmp_path / "folder"
    (folder / "conf").mkdir(parents=True)
    Keeper(folder).close()
    assert not folder.exists()


def test_processes_without_the_mark_are_not_ended():
    with subprocess.Popen(["sleep", "600"], env={**os.environ, NAME: "other"}) as other:
        try:
            end("one")
            assert other.poll() is None
        finally:
            other.kill()


def test_missing_programs_and_files_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr("flink.cluster.JAR", tmp_path / "no.jar")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "Java" in missing()
    assert str(tmp_path / "no.jar") in missing()
    assert "make test-flink" in missing()
    with pytest.raises(RuntimeError, match=r"no\.jar"), Cluster():
        pass


@pytest.mark.flink
@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_cluster_whose_test_is_ended(flink, number):
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(HERE)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        assert words, "the cluster did not start"
        mark, folder = words
        assert len(marked(mark)) >= 5  # three of Flink, boot program and worker
        os.kill(process.pid, number)
        process.wait()
    wait_for(lambda: not marked(mark), "the end of all processes")
    wait_for(lambda: not Path(folder).exists(), "the end of the folder")
    assert marked(flink.mark)  # those of others live on
