"""The options of WARC files."""

import dataclasses
from typing import Any

from ..base.dataclass import dataclass
from ..base.options import option

GZIP, ZSTD = COMPRESSIONS = ("gzip", "zstd")
# Indexes of an archive.
CDXJ, COLUMNAR, INDEX_OF_HOSTS = INDEXES = ("cdxj", "columnar", "host")
# Endings of the names of files, as other tools expect them.
WARC_ENDINGS = {GZIP: "warc.gz", ZSTD: "warc.zst"}

_MOST_OFFSET = 2**31 - 1


@dataclass(frozen=True)
class WarcOptions:
    """Options of what WARC files contain, and how."""

    GROUP = "warc"

    warc_version: str = option("1.1", "Version of the WARC format.", choices=("1.1", "1.0"))
    warc_compression: str = option(
        GZIP,
        "How each record is compressed: gzip makes .warc.gz, which all tools read, zstd makes "
        ".warc.zst.",
        choices=COMPRESSIONS,
    )
    warc_size: int = option(
        1_000_000_000,
        "Size at which a file ends and the next one begins; a record is never divided.",
        unit="bytes",
        nutch="commoncrawldump -warcSize",
        minimum=1_000,
    )
    warc_prefix: str = option(
        "nutbeam",
        "First part of the names of files, and the name of the crawl in the indexes columnar and host.",
        pattern="[A-Za-z0-9_][A-Za-z0-9_.-]*",
    )
    warc_operator: str = option(
        "", "Who has made the archive, for warcinfo: a name and an address."
    )
    warc_description: str = option("", "What the archive is, in a few words, for warcinfo.")
    only_successful_responses: bool = option(
        False,
        "Write pages, and no redirects and no error pages.",
        nutch="warc -onlySuccessfulResponses",
    )
    warc_requests: bool = option(True, "Write the request before each response.")
    warc_revisits: bool = option(
        True,
        "Write a body that the archive has already as a revisit record, which names the earlier "
        "response.",
    )
    warc_robots: bool = option(True, "Write each robots.txt, as a resource record.")
    warc_dns: bool = option(
        False, "Write a DNS record for each host, with the address that was connected to."
    )
    warc_indexes: tuple[str, ...] = option(
        (CDXJ,),
        "Indexes to write: cdxj, lines sorted by SURT for pywb and OutbackCDX; columnar and host, the "
        "tables of URLs and of hosts of Common Crawl, as Parquet. Empty: none.",
        choices=INDEXES,
    )
    warc_wet: bool = option(
        False, "Write the texts of pages into WET files, in the folder wet, as Common Crawl does."
    )
    warc_wat: bool = option(
        False,
        "Write what each record is, with the links of pages, as JSON into WAT files, in the folder "
        "wat, as Common Crawl does.",
    )
    wacz: bool = option(
        False,
        "Package all of the archive as one file WACZ, with its index and a list of its pages.",
    )
    include_parse_text: bool = option(
        False,
        "Write the text of each page, as a conversion record.",
        nutch="warc -includeParseText",
    )
    include_parse_data: bool = option(
        False,
        "Write title, language and links of each page, as a metadata record.",
        nutch="warc -includeParseData",
    )

    def __post_init__(self) -> None:
        for name in ("warc_operator", "warc_description"):
            if not getattr(self, name).isprintable():
                raise ValueError(f"{name} must be one line, got {getattr(self, name)!r}")
        if self.wacz and self.warc_compression != GZIP:
            raise ValueError(
                f"wacz needs warc_compression gzip, got {self.warc_compression!r}: programs that read "
                "WACZ read no zstd"
            )
        if COLUMNAR in self.warc_indexes and self.warc_size > _MOST_OFFSET:
            raise ValueError(
                f"warc_size must be at most {_MOST_OFFSET} with the index columnar, whose offsets have "
                f"32 bits, got {self.warc_size}"
            )

    @staticmethod
    def of(options: Any) -> "WarcOptions":
        """Returns the options that wider options have, in attributes of the same names."""
        names = (field.name for field in dataclasses.fields(WarcOptions))
        return WarcOptions(*(getattr(options, name) for name in names))

    @property
    def needs_documents(self) -> bool:
        """Whether parsed pages are needed: for records, files or indexes."""
        indexes = {COLUMNAR, INDEX_OF_HOSTS} & set(self.warc_indexes)
        parsed = self.include_parse_text or self.include_parse_data
        return parsed or self.warc_wet or self.warc_wat or self.wacz or bool(indexes)

    @property
    def whole_archive(self) -> bool:
        """Whether something is made of the whole archive, when all parts are there."""
        return self.wacz or INDEX_OF_HOSTS in self.warc_indexes
