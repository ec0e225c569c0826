"""A command imports Beam without its connectors; who asks for one later gets the real one."""

import json
import subprocess
import sys

import pytest
from waiting import PATIENCE

from nutbeam.pipelines.running.beam_import import CONNECTORS

LOADED = """
import json, sys
from nutbeam.pipelines.command_line import cli
cli.load("crawl")
import apache_beam as beam
early = sorted(sys.modules)
"""
# Each way to ask for a connector, and the module that has it.
WAYS = {
    "beam.io.ReadFromMongoDB": "apache_beam.io.mongodbio",
    "beam.io.gcp.pubsub.ReadFromPubSub": "apache_beam.io.gcp.pubsub",
    "__import__('apache_beam.io.avroio').io.avroio.ReadFromAvro": "apache_beam.io.avroio",
    "__import__('apache_beam.io', fromlist=['parquetio']).parquetio.WriteToParquet": "apache_beam.io.parquetio",
}
NAMES = "from apache_beam.io import *; print(json.dumps([early, sorted(globals())]))"


def printed(code):
    return json.loads(
        subprocess.run(
            [sys.executable, "-c", code], check=True, timeout=PATIENCE, capture_output=True, text=True
        ).stdout
    )  # fmt: skip


def test_a_command_imports_no_connector_but_all_names_of_beam_can_be_imported():
    early, names = printed(LOADED + NAMES)
    assert not {*CONNECTORS, "pymongo", "yaml"} & {*early}
    _, all_names = printed("import json; import apache_beam as beam; early = 0;" + NAMES)
    assert {*all_names} - {*names} == set()


@pytest.mark.parametrize("way", WAYS)
def test_each_way_gives_the_real_connector(way):
    code = f"{LOADED}found = {way}; module = sys.modules[found.__module__]"
    code += "\nprint(json.dumps([found.__module__, getattr(module, found.__name__) is found]))"
    assert printed(code) == [WAYS[way], True]


def test_a_version_that_was_not_tried_is_imported_whole():
    code = "from nutbeam.pipelines.running import beam_import; beam_import.TRIED = ()" + LOADED
    assert {*CONNECTORS} - {*printed(code + "print(json.dumps(early))")} == set()
