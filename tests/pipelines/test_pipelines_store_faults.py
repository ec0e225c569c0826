"""Stores that refuse in the middle of a job: one line, nothing changes, the same again ends right."""

import pytest
from crawling import latest_snapshot, manifest_of, nutbeam, state_of
from flaky_proxy import Proxy
from made_up import MadeUpWeb
from short_form import first

from nutbeam.io.storage.place_addresses import place_of

WEB = MadeUpWeb()
BUSY, DENIED = (429, 503), (403,)


@pytest.fixture
def proxied(kind, stores, monkeypatch, hurried):
    """A proxy before a store's server, and a table behind it whose batch is parsed."""
    with Proxy(stores.server(kind).url) as proxy:
        for name, value in stores.environ(kind, proxy.url).items():
            monkeypatch.setenv(name, value)
        table = stores.address(kind)
        assert nutbeam("inject", table, *WEB.urls(range(20))) == 0
        assert nutbeam("generate", table, "--top_n", 10) == 0
        (batch,) = manifest_of(table).batches
        WEB.fetch(table, batch, "f")
        yield proxy, table


def refuse(proxy, code, after=0, methods=("PUT", "POST")):
    """Makes a store refuse all requests of some methods, from the so-many-th on."""
    left = [after]

    def refuses(method, path):
        if method not in methods:
            return False
        left[0] -= 1
        proxy.refused += left[0] < 0
        return left[0] < 0

    proxy.code, proxy.refuses = code, refuses


def heal(proxy):
    proxy.refuses = lambda method, path: False


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["gs", "s3"])
@pytest.mark.parametrize("code", [*BUSY, *DENIED])
def test_refused_requests_of_reading_commands_are_reported(proxied, code, capsys):
    proxy, table = proxied
    refuse(proxy, code, methods=("GET", "HEAD", "PUT", "POST"))
    for words in (["readdb", table], ["pages", table], ["history", table], ["generate", table]):
        capsys.readouterr()
        assert nutbeam(*words) in (2, 3)
        check(capsys.readouterr().err, table, code)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", first(1, ["gs", "s3"]))
@pytest.mark.parametrize("after", first(2, [0, 5, 1, 2, 3]))
@pytest.mark.parametrize("job", ["inject", "generate", "updatedb", "compact"])
def test_writes_that_are_refused(proxied, job, after, capsys):
    proxy, table = proxied
    snapshot, before = latest_snapshot(place_of(table)), state_of(table)
    more = {"inject": WEB.urls(range(30, 40)), "compact": ["--full", "true"]}.get(job, [])
    words = [job, table, *more, "--operation", "mine"]
    code = BUSY[after % 2]
    refuse(proxy, code, after)
    capsys.readouterr()
    failed = nutbeam(*words)
    error = capsys.readouterr().err
    heal(proxy)
    if failed:  # else it had written all before
        assert failed in (2, 3)
        check(error, table, code)
        assert latest_snapshot(place_of(table)) == snapshot
        assert state_of(table).equals(before)
    assert proxy.refused or not failed
    assert nutbeam("fsck", table) == 0
    assert nutbeam(*words) == 0
    assert latest_snapshot(place_of(table)) == snapshot + 1
    assert nutbeam("fsck", table) == 0


def check(error, table, code):
    assert error.count("\n") == 1, error
    assert "internal error" not in error
    assert table in error, error
    word = "permission denied" if code in DENIED else f"the store answers {code}, again and again"
    assert word in error, error
