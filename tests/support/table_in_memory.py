"""A table in memory, to which jobs are applied: what a table must say after them."""

import dataclasses
from collections.abc import Mapping

from made_up import MadeUpWeb

from nutbeam.policy.components.schema import Status

WEB = MadeUpWeb()
UNFETCHED, FETCHED, DUPLICATE = Status.DB_UNFETCHED, Status.DB_FETCHED, Status.DB_DUPLICATE


@dataclasses.dataclass(frozen=True)
class Said:
    """What a table says.

    Attributes:
        urls: Status by row key.
        batches: Of the batches that are not updated yet, (phase, keys).
        waiting: Of those that are but wait for a dedup, their keys.
        blocked: Hosts that may not come back.
    """

    urls: Mapping[str, int] = dataclasses.field(default_factory=dict)
    batches: Mapping[str, tuple[str, frozenset[str]]] = dataclasses.field(default_factory=dict)
    waiting: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    blocked: frozenset[str] = frozenset()

    def may_enter(self, keys):
        return [key for key in keys if host(key) not in self.blocked]

    def may_be_chosen(self):
        taken = {key for _, keys in self.batches.values() for key in keys}
        due = {key for key, status in self.urls.items() if status == UNFETCHED}
        return set(self.may_enter(due - taken))


def host(key):
    return key.partition(":")[0]


def read(snapshot):
    """Returns what a snapshot says, by its readers."""
    manifest, rows = snapshot.manifest(), snapshot.rows()
    urls = dict(rows.select("key", "status").rows()) if rows is not None else {}
    batches, waiting = {}, {}
    for name, batch in manifest.batches.items():
        if batch.phase != "updated":
            chosen = snapshot.of_batch(name, "fetchlist")
            batches[name] = (batch.phase, keys_of(chosen))
        elif "dedup" not in batch.taken_in:
            waiting[name] = keys_of(snapshot.of_batch(name, "outcome"))
    blocklist = manifest.components.get("blocklist")
    return Said(urls, batches, waiting, blocklist.rows if blocklist else 0)


def keys_of(rows):
    return frozenset() if rows is None else frozenset(rows["key"])


class Tables:
    """What jobs do to a table in memory."""

    def inject(self, said, job, found, _):
        new = said.may_enter(WEB.keys(job.numbers))
        return dataclasses.replace(said, urls=dict.fromkeys(new, UNFETCHED) | dict(said.urls))

    def generate(self, said, job, found, manifest):
        due = said.may_be_chosen()
        chosen = found.batches.get(manifest.batch, ("", frozenset()))[1]
        assert chosen <= due  # none of them in another open batch
        assert len(chosen) == min(job.top_n, len(due))
        opened = {manifest.batch: ("generated", chosen)} if chosen else {}
        return dataclasses.replace(said, batches={**said.batches, **opened})

    def fetch(self, said, job, found, _):
        phase, keys = said.batches[job.batch]
        assert phase == "generated"
        return dataclasses.replace(said, batches={**said.batches, job.batch: ("parsed", keys)})

    def updatedb(self, said, job, found, _):
        phase, keys = said.batches[job.batch]
        assert phase == "parsed"
        # A row that a rollback has taken out comes back, one of a host that is blocked does not.
        keys = frozenset(said.may_enter(keys))
        links = said.may_enter(link for key in sorted(keys) for link in WEB.links_of(key))
        urls = dict.fromkeys(links, UNFETCHED) | dict(said.urls) | dict.fromkeys(keys, FETCHED)
        batches = {name: known for name, known in said.batches.items() if name != job.batch}
        waiting = {**said.waiting, job.batch: keys}
        return dataclasses.replace(said, urls=urls, batches=batches, waiting=waiting)

    def dedup(self, said, job, found, _):
        contents = {WEB.signature_of(key) for keys in said.waiting.values() for key in keys}
        pages = {}
        for key, status in said.urls.items():
            if status == FETCHED and WEB.signature_of(key) in contents:
                pages.setdefault(WEB.signature_of(key), set()).add(key)
        urls = dict(said.urls)
        for copies in pages.values():
            kept = {key for key in copies if found.urls[key] == FETCHED}
            assert len(kept) == 1, copies
            urls.update(dict.fromkeys(copies - kept, DUPLICATE))
        # One that was updated meanwhile and changed nothing in the state waits on.
        left = {name: keys for name, keys in said.waiting.items() if name in found.waiting}
        assert job.batch not in left
        assert not any(left.values())
        return dataclasses.replace(said, urls=urls, waiting=left)

    def compact(self, said, job, found, _):
        return said

    def purge(self, said, job, found, _):
        gone = host(WEB.key(job.numbers[0]))

        def left(keys):
            return frozenset(key for key in keys if host(key) != gone)

        return Said(
            {key: status for key, status in said.urls.items() if host(key) != gone},
            {name: (phase, left(keys)) for name, (phase, keys) in said.batches.items()},
            {name: left(keys) for name, keys in said.waiting.items()},
            said.blocked | {gone},
        )
