"""The jobs of a table as methods, as the commands of the command line declare them.

``make docs`` writes this file, and a test compares it.
"""

import os
from typing import TYPE_CHECKING, TypeAlias, Unpack

from .calls import call_command, with_options
from .results import CrawlResult, FsckResult, JobResult, ReportResult, RowsResult, WarcResult

if TYPE_CHECKING:
    from .job_keywords import (
        CleanKeywords,
        CompactKeywords,
        CopyKeywords,
        CrawlKeywords,
        DedupKeywords,
        ExtractKeywords,
        FetchKeywords,
        FilterdbKeywords,
        FreegenKeywords,
        FsckKeywords,
        GenerateKeywords,
        HostinjectKeywords,
        ImportNutchKeywords,
        ImportWarcKeywords,
        IndexKeywords,
        InjectKeywords,
        InvertlinksKeywords,
        LinkrankKeywords,
        MergedbKeywords,
        MergelinkdbKeywords,
        NextKeywords,
        PagesKeywords,
        ParseKeywords,
        PurgeKeywords,
        ReportKeywords,
        RollbackKeywords,
        RoundKeywords,
        ScoreupdaterKeywords,
        SitemapKeywords,
        UpdatedbKeywords,
        UpdatehostdbKeywords,
        WarcKeywords,
        WebgraphKeywords,
    )

TableAddress: TypeAlias = str | os.PathLike[str]


class TableJobs:
    """The jobs of a table.

    Each method runs the command of its name in this process, unless ``beam_args`` names another
    runner, and returns what the command prints. docs/reference/options.md has the options; they are
    keywords. ``progress=True`` shows progress on standard error.

    Attributes:
        address: Address of the table.
    """

    address: str

    @with_options("crawl")
    def crawl(self, *seeds: TableAddress, **options: "Unpack[CrawlKeywords]") -> CrawlResult:
        """Crawl: rounds of generate, fetch, parse, updatedb and dedup.

        It does what ``nutbeam crawl`` does.

        Args:
            seeds: URLs, files, folders, or - for standard input.
        """
        return CrawlResult.of(call_command("crawl", (self.address, *seeds), options))

    @with_options("inject")
    def inject(self, *seeds: TableAddress, **options: "Unpack[InjectKeywords]") -> JobResult:
        """Put seed URLs into the table.

        It does what ``nutbeam inject`` does.

        Args:
            seeds: URLs, files, folders (not nested), or - for standard input.
        """
        return JobResult.of(call_command("inject", (self.address, *seeds), options))

    @with_options("sitemap")
    def sitemap(self, *sitemaps: TableAddress, **options: "Unpack[SitemapKeywords]") -> JobResult:
        """Add the URLs of sitemaps to the table.

        It does what ``nutbeam sitemap`` does.

        Args:
            sitemaps: URLs of sitemaps, files with URLs of sitemaps or names of hosts, or - for standard input.
        """
        return JobResult.of(call_command("sitemap", (self.address, *sitemaps), options))

    @with_options("generate")
    def generate(self, **options: "Unpack[GenerateKeywords]") -> JobResult:
        """Choose what to fetch next, as a new batch.

        It does what ``nutbeam generate`` does.
        """
        return JobResult.of(call_command("generate", (self.address,), options))

    @with_options("freegen")
    def freegen(self, list: TableAddress, **options: "Unpack[FreegenKeywords]") -> JobResult:
        """Make a batch of a list of URLs, as Nutch's freegen.

        It does what ``nutbeam freegen`` does.

        Args:
            list: File or folder of URLs, one per line; or - for standard input.
        """
        return JobResult.of(call_command("freegen", (list, self.address), options))

    @with_options("import_warc")
    def import_warc(
        self, *files: TableAddress, **options: "Unpack[ImportWarcKeywords]"
    ) -> JobResult:
        """Make a fetched batch of the pages in WARC files.

        It does what ``nutbeam import_warc`` does.

        Args:
            files: WARC files, or folders of them: local, or gs://, s3://, hdfs://; gzip, zstd or neither. With --index the folder that the names in the index are relative to.
        """
        return JobResult.of(call_command("import_warc", (self.address, *files), options))

    @with_options("import_nutch")
    def import_nutch(
        self, *paths: TableAddress, **options: "Unpack[ImportNutchKeywords]"
    ) -> JobResult:
        """Take over a crawl of Nutch, its databases and segments.

        It does what ``nutbeam import_nutch`` does.

        Args:
            paths: Folders or files that Nutch wrote: a crawl, its crawldb, linkdb, hostdb or segments, or dumps of them; local, or gs://, s3://, hdfs://.
        """
        return JobResult.of(call_command("import_nutch", (self.address, *paths), options))

    @with_options("fetch")
    def fetch(self, **options: "Unpack[FetchKeywords]") -> JobResult:
        """Fetch the pages of a batch.

        It does what ``nutbeam fetch`` does.
        """
        return JobResult.of(call_command("fetch", (self.address,), options))

    @with_options("parse")
    def parse(self, **options: "Unpack[ParseKeywords]") -> JobResult:
        """Parse the pages of a batch: text, title, links.

        It does what ``nutbeam parse`` does.
        """
        return JobResult.of(call_command("parse", (self.address,), options))

    @with_options("updatedb")
    def update(self, **options: "Unpack[UpdatedbKeywords]") -> JobResult:
        """Apply the results of a batch to the table.

        It does what ``nutbeam updatedb`` does.
        """
        return JobResult.of(call_command("updatedb", (self.address,), options))

    @with_options("invertlinks")
    def invertlinks(self, **options: "Unpack[InvertlinksKeywords]") -> JobResult:
        """Add the links of a batch to the link table.

        It does what ``nutbeam invertlinks`` does.
        """
        return JobResult.of(call_command("invertlinks", (self.address,), options))

    @with_options("dedup")
    def dedup(self, **options: "Unpack[DedupKeywords]") -> JobResult:
        """Mark duplicates: pages of (nearly) equal content.

        It does what ``nutbeam dedup`` does.
        """
        return JobResult.of(call_command("dedup", (self.address,), options))

    @with_options("round")
    def round(self, **options: "Unpack[RoundKeywords]") -> CrawlResult:
        """Run one round of a crawl as one pipeline.

        It does what ``nutbeam round`` does.
        """
        return CrawlResult.of(call_command("round", (self.address,), options))

    @with_options("next")
    def next(self, **options: "Unpack[NextKeywords]") -> JobResult:
        """Run the next phase of the crawl.

        It does what ``nutbeam next`` does.
        """
        return JobResult.of(call_command("next", (self.address,), options))

    @with_options("pages")
    def write_pages(self, **options: "Unpack[PagesKeywords]") -> RowsResult:
        """Write the text of each page, to a file or a table.

        It does what ``nutbeam pages`` does.
        """
        return RowsResult.of(call_command("pages", (self.address,), options))

    @with_options("extract")
    def extract(self, rules: TableAddress, **options: "Unpack[ExtractKeywords]") -> RowsResult:
        """Take fields from the stored pages by rules, as a table.

        It does what ``nutbeam extract`` does.

        Args:
            rules: File of rules (toml); see the guide on extracting.
        """
        return RowsResult.of(call_command("extract", (self.address, rules), options))

    @with_options("warc")
    def warc(self, archive: TableAddress, **options: "Unpack[WarcKeywords]") -> WarcResult:
        """Write what was fetched into WARC files.

        It does what ``nutbeam warc`` does.

        Args:
            archive: Folder of the WARC files: a local one, or gs://, s3://, hdfs://.
        """
        return WarcResult.of(call_command("warc", (self.address, archive), options))

    @with_options("report")
    def report(self, **options: "Unpack[ReportKeywords]") -> ReportResult:
        """Show a crawl on one page: speed, hosts, reasons, pages.

        It does what ``nutbeam report`` does.
        """
        return ReportResult.of(call_command("report", (self.address,), options))

    @with_options("webgraph")
    def webgraph(self, **options: "Unpack[WebgraphKeywords]") -> JobResult:
        """Make the graph of pages, hosts or domains from links.

        It does what ``nutbeam webgraph`` does.
        """
        return JobResult.of(call_command("webgraph", (self.address,), options))

    @with_options("linkrank")
    def linkrank(self, **options: "Unpack[LinkrankKeywords]") -> JobResult:
        """Rank a graph: LinkRank, PageRank, HITS, centrality.

        It does what ``nutbeam linkrank`` does.
        """
        return JobResult.of(call_command("linkrank", (self.address,), options))

    @with_options("scoreupdater")
    def scoreupdater(self, **options: "Unpack[ScoreupdaterKeywords]") -> JobResult:
        """Write the ranks of pages into the table, as their scores.

        It does what ``nutbeam scoreupdater`` does.
        """
        return JobResult.of(call_command("scoreupdater", (self.address,), options))

    @with_options("index")
    def index(self, **options: "Unpack[IndexKeywords]") -> JobResult:
        """Add the pages of the table to an index.

        It does what ``nutbeam index`` does.
        """
        return JobResult.of(call_command("index", (self.address,), options))

    @with_options("clean")
    def clean(self, **options: "Unpack[CleanKeywords]") -> JobResult:
        """Delete gone, moved and duplicate pages from an index.

        It does what ``nutbeam clean`` does.
        """
        return JobResult.of(call_command("clean", (self.address,), options))

    @with_options("updatehostdb")
    def updatehostdb(self, **options: "Unpack[UpdatehostdbKeywords]") -> JobResult:
        """Count the URLs of each host, and look hosts up.

        It does what ``nutbeam updatehostdb`` does.
        """
        return JobResult.of(call_command("updatehostdb", (self.address,), options))

    @with_options("hostinject")
    def hostinject(self, file: TableAddress, **options: "Unpack[HostinjectKeywords]") -> JobResult:
        """Set delay, limits, intervals and more of single hosts.

        It does what ``nutbeam hostinject`` does.

        Args:
            file: File with a line per host: HOST NAME=VALUE …; a host alone on its line loses its settings.
        """
        return JobResult.of(call_command("hostinject", (self.address, file), options))

    @with_options("filterdb")
    def filterdb(self, **options: "Unpack[FilterdbKeywords]") -> JobResult:
        """Apply today's URL rules and scope to the known URLs.

        It does what ``nutbeam filterdb`` does.
        """
        return JobResult.of(call_command("filterdb", (self.address,), options))

    @with_options("compact")
    def compact(self, **options: "Unpack[CompactKeywords]") -> JobResult:
        """Merge small files of the table, and delete old data.

        It does what ``nutbeam compact`` does.
        """
        return JobResult.of(call_command("compact", (self.address,), options))

    @with_options("copy")
    def copy(self, to: TableAddress, **options: "Unpack[CopyKeywords]") -> JobResult:
        """Copy the table as it is now to another place.

        It does what ``nutbeam copy`` does.

        Args:
            to: The new table: a folder or an address without a table; in Bigtable an empty table.
        """
        return JobResult.of(call_command("copy", (self.address, to), options))

    @with_options("mergelinkdb")
    def mergelinkdb(
        self, *others: TableAddress, **options: "Unpack[MergelinkdbKeywords]"
    ) -> JobResult:
        """Add the links of other tables to the link table.

        It does what ``nutbeam mergelinkdb`` does.

        Args:
            others: Tables whose links are merged.
        """
        return JobResult.of(call_command("mergelinkdb", (self.address, *others), options))

    @with_options("mergedb")
    def mergedb(self, *others: TableAddress, **options: "Unpack[MergedbKeywords]") -> JobResult:
        """Merge the URLs of other tables into the table.

        It does what ``nutbeam mergedb`` does.

        Args:
            others: Tables whose URLs are merged into it.
        """
        return JobResult.of(call_command("mergedb", (self.address, *others), options))

    @with_options("rollback")
    def rollback(self, **options: "Unpack[RollbackKeywords]") -> JobResult:
        """Return to an older snapshot, by a new one.

        It does what ``nutbeam rollback`` does.
        """
        return JobResult.of(call_command("rollback", (self.address,), options))

    @with_options("fsck")
    def fsck(self, **options: "Unpack[FsckKeywords]") -> FsckResult:
        """Check the files of the table, and repair them.

        It does what ``nutbeam fsck`` does.
        """
        return FsckResult.of(call_command("fsck", (self.address,), options))

    @with_options("purge")
    def purge(self, **options: "Unpack[PurgeKeywords]") -> JobResult:
        """Remove a URL, a host or a domain, and keep it out.

        It does what ``nutbeam purge`` does.
        """
        return JobResult.of(call_command("purge", (self.address,), options))
