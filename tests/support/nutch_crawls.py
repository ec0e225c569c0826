"""Folders of a Nutch crawl, for tests: its databases and segments, as Nutch would write them."""

import struct

import polars as pl

from nutbeam.web.hadoop.crawl_datums import CRAWL_DATUMS
from nutbeam.web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums
from nutbeam.web.hadoop.sequence_files import Compression
from nutbeam.web.hadoop.sequence_writers import MapFileWriter, SequenceFileWriter
from nutbeam.web.hadoop.typed_values import TypedEntry
from nutbeam.web.hadoop.writable_encoding import encode_map, encode_text, encode_vint

DAY_MS = 86_400_000
# 2026-11-01T00:00:00Z
NOW = 1_793_491_200_000
_KINDS = {"fixedInterval": "FloatWritable", "_pst_": "ProtocolStatus", "_ngt_": "LongWritable",
          **dict.fromkeys(("_rs_", "_depth_", "_maxdepth_", "_orphan_"), "IntWritable")}  # fmt: skip


def entries(metadata):
    """Returns names and values as entries with Nutch's classes."""
    return [
        {"key": key, "kind": _KINDS.get(key, "Text"), "value": str(value)}
        for key, value in metadata.items()
    ]


def datum(url, status=1, fetch_time=NOW, **values):
    """Returns a row of ``CRAWL_DATUMS``."""
    row = {
        "url": url, "status": status, "fetch_time": fetch_time, "retries": 0, "interval": 2_592_000,
        "score": 1.0, "modified_time": 0, "signature": None, "metadata": {}, **values,
    }  # fmt: skip
    return row | {"metadata": entries(row["metadata"])}


def datums_of(rows):
    """Returns rows as a frame in order of their URLs."""
    return pl.DataFrame(rows, schema=CRAWL_DATUMS).sort("url")


def page(body, headers=None, content_type="text/html", **noted):
    """Returns what a content has: bytes, headers, and what Nutch notes beside them."""
    return body, {"Content-Type": content_type, **(headers or {}), **noted}, content_type


class NutchCrawl:
    """A folder with the data of a crawl.

    Args:
        folder: The folder.
    """

    def __init__(self, folder):
        self.folder = folder

    def crawldb(self, *rows, part="part-r-00000", name="crawldb"):
        """Writes a part of the CrawlDb."""
        self._map(f"{name}/current/{part}", CRAWL_DATUM_CLASS, _encoded(rows))
        return self.folder / name

    def linkdb(self, links):
        """Writes the LinkDb: pages, and the pages that link to them with the texts of the links."""
        pairs = [(url.encode(), _inlinks(sources)) for url, sources in sorted(links.items())]
        self._map("linkdb/current/part-r-00000", "org.apache.nutch.crawl.Inlinks", pairs)
        return self.folder / "linkdb"

    def hostdb(self, **hosts):
        """Writes the HostDb: hosts, with dots as ``__``."""
        rows = [(name.replace("__", ".").encode(), _host(values)) for name, values in hosts.items()]
        part = self._map("hostdb/current/part-r-00000", "org.apache.nutch.hostdb.HostDatum", rows)
        return part.parent.parent

    def segment(
        self, name, listed=(), fetched=(), contents=None, parsed=False, part="part-r-00000"
    ):
        """Writes a segment.

        Args:
            name: Its name.
            listed: Rows of its fetch list.
            fetched: Rows of what was fetched.
            contents: Those of ``page`` by URL; None: the fetcher stores none.
            parsed: Whether it was parsed; or what the parser wrote, ``parse`` by URL.
            part: Name of the part of each folder.
        """
        folder = f"segments/{name}"
        if listed:
            self._sequence(f"{folder}/crawl_generate/{part}", _encoded(listed))
        if fetched:
            self._map(f"{folder}/crawl_fetch/{part}", CRAWL_DATUM_CLASS, _encoded(fetched))
        if contents is not None:
            pairs = [(url.encode(), _content(url, *each)) for url, each in sorted(contents.items())]
            self._map(f"{folder}/content/{part}", "org.apache.nutch.protocol.Content", pairs)
        if isinstance(parsed, dict):
            self.parses(folder, parsed, part)
        if parsed:
            self._sequence(f"{folder}/crawl_parse/{part}", [])
        return self.folder / folder

    def parses(self, folder, parses, part="part-r-00000"):
        """Writes what the parser wrote of URLs, those of ``parse``, as one part of a segment."""
        for name, value_class, place in (("data", "ParseData", 0), ("text", "ParseText", 1)):
            pairs = [(url.encode(), each[place]) for url, each in sorted(parses.items())]
            self._map(
                f"{folder}/parse_{name}/{part}", f"org.apache.nutch.parse.{value_class}", pairs
            )

    def _map(self, path, value_class, pairs):
        part = self.folder / path
        part.mkdir(parents=True)
        with (part / "data").open("wb") as data, (part / "index").open("wb") as index:
            writer = MapFileWriter(data, index, value_class, compression=Compression.NONE)
            for key, value in pairs:
                writer.append(key, value)
            writer.close()
        return part

    def _sequence(self, path, pairs):
        file = self.folder / path
        file.parent.mkdir(parents=True)
        with file.open("wb") as stream:
            writer = SequenceFileWriter(stream, CRAWL_DATUM_CLASS)
            for key, value in pairs:
                writer.append(encode_vint(len(key)) + key, value)
            writer.close()


def _encoded(rows):
    return list(encode_crawl_datums(datums_of(rows)))


def _int(number):
    return struct.pack(">i", number)


def _inlinks(sources):
    texts = [encode_text(url) + encode_text(anchor) for url, anchor in sources]
    return _int(len(texts)) + b"".join(texts)


def _content(url, body, metadata, content_type):
    pairs = [encode_text(key) + _int(1) + encode_text(str(v)) for key, v in metadata.items()]
    return b"".join([
        _int(-1), encode_text(url), encode_text(url), _int(len(body)), body, encode_text(content_type),
        _int(len(pairs)), *pairs,
    ])  # fmt: skip


def parse(text, title="", links=(), status=(1, 0), noted=None, headers=None):
    """Returns a ParseData and a ParseText, as Nutch writes them.

    Args:
        text: The text.
        title: The title.
        links: (URL, anchor) pairs.
        status: Major and minor code, then arguments.
        noted: Metadata of the parser.
        headers: Metadata of the content.
    """
    major, minor, *arguments = status
    state = struct.pack(">bbhi", 2, major, minor, len(arguments))
    arguments = b"".join(_int(len(word)) + word.encode() for word in arguments)
    outlinks = [encode_text(url) + encode_text(anchor) + b"\0" for url, anchor in links]
    pairs = [
        _int(len(each))
        + b"".join(encode_text(k) + _int(1) + encode_text(v) for k, v in each.items())
        for each in (headers or {}, noted or {})
    ]
    data = [b"\5", state, arguments, encode_text(title), _int(len(outlinks)), *outlinks, *pairs]
    return b"".join(data), b"\2" + encode_text(text)


def _host(values):
    names = ("dns_failures", "connection_failures", "unfetched", "fetched", "not_modified",
             "redir_temp", "redir_perm", "gone")  # fmt: skip
    numbers = [values.get(name, 0) for name in names]
    metadata = [TypedEntry(**entry) for entry in entries(values.get("metadata", {}))]
    return b"".join([
        struct.pack(">fq", values.get("score", 0.0), values.get("last_check", 0)),
        encode_text(values.get("homepage", "")), struct.pack(">8q", *numbers), encode_map(metadata),
    ])  # fmt: skip
