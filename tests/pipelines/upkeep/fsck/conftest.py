"""Tables with a batch in each phase, and fsck, for tests of what fsck finds."""

import json

import pytest
from crawling import (
    in_each_phase,
    nutbeam,
    tree,
)
from simulated_web import served_web
from web_tables import copied_folder

from nutbeam.io.snapshots.heartbeats import BEAT

web = served_web(hosts=2, pages=8, scope="session")


@pytest.fixture(scope="session")
def original(web, tmp_path_factory):
    """A table with several tablets and a batch in each phase; tests only read it."""
    return in_each_phase(tmp_path_factory.mktemp("fsck") / "table", web)


table = copied_folder()


@pytest.fixture
def fsck(capsys):
    """Runs fsck and returns its record; checks that it changes and deletes nothing.

    A repair may remove what failed commands have left for ``status``.
    """

    def run(folder, *words, code=0):
        before = tree(folder, ignore=())
        capsys.readouterr()
        assert nutbeam("fsck", folder, *words, "--format", "json") == code
        after = tree(folder, ignore=())
        kept = {name: before[name] for name in before if not name.endswith(BEAT)}
        assert {name: after.get(name) for name in kept} == kept
        if "--repair" not in words:
            assert after == before
        return json.loads(capsys.readouterr().out)

    return run
