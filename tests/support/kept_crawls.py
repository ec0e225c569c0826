"""Tables with a crawl of a simulated web; each is made once for all processes of a test run."""

import dataclasses
import fcntl
import hashlib
import json
import os
import shutil

from crawling import asked, nutbeam, reach


class KeptCrawls:
    """Tables from which several test files start, in a folder that the processes share.

    Args:
        paths: pytest's ``tmp_path_factory``.
    """

    def __init__(self, paths):
        base = paths.getbasetemp()  # of xdist's workers each has a folder in that of the run
        self._folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(self, web, table, *words):
        """Makes the table of ``crawl TABLE SEEDS WORDS``, by default until nothing is due.

        In a folder it is a copy of the one that was made first; elsewhere it is crawled.

        Returns:
            The URLs that the crawl has requested, in order.
        """
        words = words or ("--rounds", "-1")
        if "://" in str(table):
            return _crawl(web, table, words)
        named = json.dumps([dataclasses.asdict(web.site), words]).encode()
        kept = self._folder / f"crawl-{hashlib.sha256(named).hexdigest()[:16]}"
        kept.mkdir(exist_ok=True)
        urls = kept / "requested.json"
        with (kept / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not urls.exists():
                urls.write_text(json.dumps(_crawl(web, kept / "table", words)))
        shutil.copytree(kept / "table", table)
        return json.loads(urls.read_text())


def _crawl(web, table, words):
    before = len(asked(web))
    words = (*words, "--operation", "first", *reach(web))
    assert nutbeam("crawl", table, *web.seeds, *words) == 0
    return asked(web)[before:]
