"""A replay that runs while a test asks it."""

import contextlib
import threading

from nutbeam.pipelines.archives.replay import replay_tls
from nutbeam.pipelines.archives.replay_archive import ReplayArchive
from nutbeam.pipelines.archives.replay_serving import ReplayServer


@contextlib.contextmanager
def served(table, time=None, certificate=None):
    """Serves a table, or a folder of WARC files."""
    archive = ReplayArchive([str(table)], time)
    with ReplayServer(archive, 0, replay_tls(str(certificate or ""))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
