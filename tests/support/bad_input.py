"""Commands and batches for tests of bad input."""

from crawling import (
    manifest_of,
)

AGENT = ["--agent_name", "tester", "--agent_email", "tester@example.com"]
COMMANDS = ["crawl", "generate", "fetch", "parse", "updatedb", "dedup", "compact", "next", "readdb",
            "pages"]  # fmt: skip


def batch_in(table, phase):
    """Returns the batch that is in a phase."""
    return next(name for name, b in manifest_of(table).batches.items() if b.phase == phase)


def words_for(command):
    return [*AGENT] if command in ("crawl", "fetch", "next") else []
