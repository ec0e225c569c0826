"""Ctrl-C: one line, exit code 130, and what was fetched is kept."""

import signal
import subprocess
import sys
import time

import pytest
from crawling import reach

from nutbeam.web.simweb.server import SimWeb


@pytest.mark.parametrize("client", ["requests", pytest.param("aiohttp", marks=pytest.mark.long)])
def test_interrupt_during_fetch_keeps_what_was_fetched(tmp_path, client):
    table = tmp_path / "table"
    with SimWeb(hosts=2, pages=40, seed=7, crawl_delay=0, latency=0.2) as web:
        words = ["crawl", str(table), *web.seeds, *reach(web), "--progress", "false"]
        words += ["--http_client", client]
        crawl = subprocess.Popen(
            [sys.executable, "-P", "-m", "nutbeam.pipelines", *words, "--flush_seconds", "600"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 30
        while len(web.requests()) < 20 and time.monotonic() < deadline:
            time.sleep(0.05)
        crawl.send_signal(signal.SIGINT)
        error = crawl.communicate(timeout=20)[1]
    assert error == "nutbeam crawl: interrupted\n"
    assert crawl.returncode == 130
    batches = sorted((table / "batches").iterdir())
    # Nothing was to be flushed for ten minutes, so only the interrupt can have done it.
    assert list((batches[-1] / "pages").glob("p*.parquet"))
