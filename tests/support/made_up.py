"""A made-up web: pages, links and copies are computed from the URL, without any request.

Writes what a fetch and a parse would have found, in their format, and commits it as they do.
"""

import dataclasses
import zlib

from frames import table_of

from nutbeam.io.batches.batches import batch_files, page_order, write_file
from nutbeam.io.snapshots.operations import UPKEEP
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import FETCHLIST, PAGES, ParseStatus
from nutbeam.transforms.operations import Commit, commit_job
from nutbeam.transforms.tickets import Ticket, begin_job
from nutbeam.web.exchange.status import FETCH_SUCCESS
from nutbeam.web.exchange.status import SUCCESS as ANSWERED
from nutbeam.web.urls.row_keys import from_key, to_key


@dataclasses.dataclass(frozen=True)
class MadeUpWeb:
    """A web.

    Attributes:
        hosts: How many there are.
        pages: How many each has.
        links: How many a page has.
        contents: How many different contents there are: other pages are copies.
    """

    hosts: int = 4
    pages: int = 12
    links: int = 3
    contents: int = 30

    def key(self, number):
        """Returns the row key of a page by its number; after the last page they start again."""
        number %= self.hosts * self.pages
        return to_key(f"http://h{number % self.hosts}.example.com/{number // self.hosts}")

    def keys(self, numbers):
        return [self.key(number) for number in numbers]

    def urls(self, numbers):
        return [from_key(key) for key in self.keys(numbers)]

    def links_of(self, key):
        """Returns the keys of what a page links to."""
        return [self.key(zlib.crc32(f"{key} {at}".encode())) for at in range(self.links)]

    def signature_of(self, key):
        return str(zlib.crc32(key.encode()) % self.contents).encode()

    def fetch(self, address, batch, operation):
        """Brings a batch from generated to parsed, in one commit as a crawl does."""
        pinned = begin_job(Ticket(str(address), operation, batch), "fetch", "generated", UPKEEP)
        if pinned.idle:
            return
        table, manifest = pinned.table, pinned.manifest()
        paths = [table / file.path for file in batch_files(table, manifest, batch, "fetchlist")]
        rows = collect(scan(paths, FETCHLIST).sort("key")).to_dicts() if paths else []
        common = [
            {name: row[name] for name in ("key", "score", "distance")} | {"fetch_time": pinned.now}
            for row in rows
        ]
        pages = table_of(PAGES, *(
            {**row, "fetch_status": FETCH_SUCCESS, "protocol_status": ANSWERED, "http_code": 200,
             "content_type": "text/html", "body": row["key"].encode()}
            for row in common
        ))  # fmt: skip
        documents = table_of(DOCUMENTS, *(
            {**row, "parse_status": ParseStatus.SUCCESS, "signature": self.signature_of(row["key"]),
             "title": row["key"], "text": row["key"],
             "outlinks": [{"key": key, "anchor": "", "rel": ""}
                          for key in self.links_of(row["key"])]}
            for row in common
        ))  # fmt: skip
        order = page_order(pinned.now, 0)
        written = [
            Written(
                f"batches/{batch}/{kind}",
                (write_file(table, batch, kind, [found], partition=0, order=order),),
                counts={kind: len(found)},
            )
            for kind, found in (("pages", pages), ("documents", documents))
        ]
        reads = (f"batches/{batch}/fetchlist",)
        commit_job(pinned, written, Commit(reads, "parsed", over_purges=True))
