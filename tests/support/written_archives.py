"""Archives that tests write with warcio, and what an import makes of them."""

import io
import json
import re

from command_output import printed
from crawling import manifest_of, rows_of
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from nutbeam.io.storage.files import write_bytes
from nutbeam.io.storage.place_addresses import place_of

HTML = [("Content-Type", "text/html")]


class Archive:
    """Writes records with warcio."""

    def __init__(self, gzipped=True):
        self.file = io.BytesIO()
        self._writer = WARCWriter(self.file, gzip=gzipped)

    def add(self, url, body=b"<p>", date="2020-01-02T03:04:05Z", kind="response", status="200 OK",
            headers=HTML, protocol="HTTP/1.1", **fields):  # fmt: skip
        head = StatusAndHeaders(status, headers, protocol=protocol) if status else None
        more = {name.replace("_", "-"): value for name, value in fields.items()}
        record = self._writer.create_warc_record(
            url, kind, payload=io.BytesIO(body), http_headers=head, warc_headers_dict={"WARC-Date": date, **more}
        )  # fmt: skip
        self._writer.write_record(record)
        return record.rec_headers["WARC-Payload-Digest"]

    def save(self, path):
        write_bytes(place_of(str(path)), self.file.getvalue())
        return path


def pages_of(table):
    """Returns the pages of the only batch, by URL."""
    (batch,) = manifest_of(table).batches
    rows = rows_of(table, f"batches/{batch}/pages")
    return {
        re.sub(r"^com\.(\w+):http/", r"http://\1.com/", row["key"]): row
        for row in rows.iter_rows(named=True)
    }


def import_(capsys, table, *words):
    """Imports; returns the counts."""
    record = json.loads(printed(capsys, "import_warc", table, *words, "--format", "json"))
    return {name: number for name, number in record["counts"].items() if number}
