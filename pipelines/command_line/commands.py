"""The commands of ``nutbeam``, and what the help of each shows: an example, the usual options."""

from collections.abc import Mapping
from typing import NamedTuple

# The groups of ``nutbeam --help``, in order.
CRAWL = "crawl"
LOOK = "look at the results"
RANK = "links and ranks"
INDEXING = "index and search"
CARE = "take care of a table"
TRY = "try URLs, rules and crawls"
GROUPS = (CRAWL, LOOK, RANK, INDEXING, CARE, TRY)

_SITE = "https://www.your-site.org/"
_AGENT = "--agent_name mybot --agent_email you@your-site.org"
_CONTACT = ("agent_name", "agent_email")
_ROUND = ("depth", "top_n", "scope", "include", "exclude", "server_delay", "threads",
          "allow_addresses")  # fmt: skip
_LINK_RULES = ("scope", "include", "exclude", "url_filter_file")


class Command(NamedTuple):
    """A command.

    Attributes:
        module: Its module below ``nutbeam.pipelines``; with ``:`` and the name of its ``CommandParts``
            if the module has several commands.
        help: What it does, in one line.
        beam: Whether it takes Beam's options.
        group: One of ``GROUPS``.
        example: A command line that works, without ``nutbeam`` and the command's name.
        options: The options that ``--help`` shows, in order; empty for those that only commands
            of its kind have.
    """

    module: str
    help: str
    beam: bool = True
    group: str = CARE
    example: str = "mine"
    options: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The full name of its module."""
        return f"nutbeam.pipelines.{self.module.partition(':')[0]}"

    @property
    def scratch(self) -> bool:
        """Whether the command makes temporary files."""
        return self.beam or self.module in (
            "querying.sql",
            "indexing.search",
            "checkers.parsechecker",
            "checkers.indexchecker",
        )


COMMANDS = {
    "crawl": Command(
        "crawl", "Crawl: rounds of generate, fetch, parse, updatedb and dedup.", group=CRAWL,
        example=f"mine {_SITE} {_AGENT}",
        options=(*_CONTACT, "rounds", *_ROUND, "wait"),
    ),
    "inject": Command(
        "inject", "Put seed URLs into the table.", group=CRAWL,
        example=f"mine {_SITE} seeds.txt",
        options=("injected_score", "fetch_interval", "overwrite_known", "update_known",
                 "exclude", "url_filter_file", "url_rules_dir", "count_by_rule"),
    ),
    "sitemap": Command(
        "sitemaps.sitemap", "Add the URLs of sitemaps to the table.", group=CRAWL,
        example=f"mine {_SITE}sitemap.xml {_AGENT}",
        options=(*_CONTACT, "sitemap_hosts", "sitemap_refetch", "sitemap_links", "scope", "server_delay"),
    ),
    "generate": Command(
        "generate", "Choose what to fetch next, as a new batch.", group=CRAWL,
        example="mine --top_n 1000",
        options=("top_n", "expr", "max_count", "min_score", "max_distance", "restrict_status",
                 "filter", "add_days", "num_fetchers"),
    ),
    "freegen": Command(
        "batch_tools.freegen", "Make a batch of a list of URLs, as Nutch's freegen.", group=CRAWL,
        example="seeds.txt mine",
        options=("filter_urls", "normalize_urls", "num_fetchers", "exclude", "url_filter_file",
                 "url_rules_dir"),
    ),
    "fetch": Command(
        "fetch", "Fetch the pages of a batch.", group=CRAWL,
        example=f"mine {_AGENT}",
        options=(*_CONTACT, "batch", "server_delay", "threads", "threads_per_host", "fetch_time_limit",
                 "timeout", "content_limit", "allow_addresses", "http_proxy"),
    ),
    "parse": Command(
        "parse", "Parse the pages of a batch: text, title, links.", group=CRAWL,
        options=("batch", *_LINK_RULES, "max_outlinks", "detect_language",
                 "parse_filters"),
    ),
    "updatedb": Command(
        "update", "Apply the results of a batch to the table.", group=CRAWL,
        options=("batch", "depth", *_LINK_RULES, "additions_allowed", "fetch_interval",
                 "retry_max"),
    ),
    "invertlinks": Command(
        "invertlinks", "Add the links of a batch to the link table.", group=CRAWL,
        options=("batch", "ignore_internal_links", "ignore_external_links", "max_anchor_length",
                 "max_link_age"),
    ),
    "dedup": Command(
        "dedup", "Mark duplicates: pages of (nearly) equal content.", group=CRAWL,
        example="mine --dedup_group host",
    ),
    "round": Command(
        "round", "Run one round of a crawl as one pipeline.", group=CRAWL,
        example=f"mine --top_n 1000 {_AGENT}",
        options=(*_CONTACT, *_ROUND, "fetch_time_limit"),
    ),
    "next": Command(
        "next", "Run the next phase of the crawl.", group=CRAWL,
        example=f"mine {_AGENT}",
        options=(*_CONTACT, "wait_until_done", *_ROUND, "fetch_time_limit"),
    ),
    "readdb": Command(
        "views.readdb", "Show statistics, one URL, the best URLs, or all rows.", group=LOOK,
        example=f"mine {_SITE}",
        options=("stats", "sort", "dump", "top", "min_score", "expr", "status", "regex", "retry",
                 "sample"),
    ),
    "domainstats": Command(
        "figures.counting:DOMAINSTATS", "Count fetched pages by host, domain, suffix or TLD.", group=LOOK,
        example="mine --mode tld", options=("mode", "expr"),
    ),
    "protocolstats": Command(
        "figures.counting:PROTOCOLSTATS", "Count URLs by HTTP code.", group=LOOK, options=("expr",),
    ),
    "crawlcomplete": Command(
        "figures.counting:CRAWLCOMPLETE", "Count fetched and unfetched pages by host or domain.",
        group=LOOK, example="mine --mode domain", options=("mode", "expr"),
    ),
    "readlinkdb": Command(
        "views.readlinkdb", "Show which pages link to a page, or to each page.", False, LOOK,
        example=f"mine {_SITE}",
    ),
    "readhostdb": Command(
        "hosting.readhostdb", "Show the host table: one host, or all, with their figures.", False,
        LOOK, example="mine --expr 'gone > fetched'",
    ),
    "pages": Command(
        "views.pages", "Write the text of each page: JSON lines, CSV or Parquet.", group=LOOK,
        example="mine -o pages.jsonl",
    ),
    "export": Command(
        "views.export", "Write a component of the table to a file.", group=LOOK,
        example="mine --what hosts -o hosts.parquet",
    ),
    "readseg": Command(
        "batch_tools.readseg", "Show the data of batches, as Nutch's readseg.", False, LOOK,
        example="--list_batches mine/batches",
        options=("dump_batch", "list_batches", "get_record", "table_of_batches", "no_content",
                 "no_fetch", "no_generate", "no_parse", "no_parse_data", "no_parse_text", "recode"),
    ),
    "dump": Command(
        "batch_tools.dump", "Write the bodies of batches into files, as Nutch's dump.", False, LOOK,
        example="mine/batches --output_dir bodies",
        options=("output_dir", "from_batches", "mimetypes", "mime_stats", "flat_dir",
                 "reverse_url_dirs"),
    ),
    "commoncrawldump": Command(
        "batch_tools.commoncrawldump", "Write pages as CBOR, as Nutch's commoncrawldump.", False, LOOK,
        example="mine/batches --output_dir documents",
        options=("output_dir", "from_batches", "mimetypes", "gzip", "key_prefix", "reverse_key",
                 "simple_date_format", "json_array", "epoch_filename", "inlinks_from"),
    ),
    "warc": Command(
        "archives.warc", "Write what was fetched into WARC files.", group=LOOK,
        example="mine archive",
        options=("batch", "expr", "only_successful_responses", "warc_size", "warc_compression",
                 "warc_version", "warc_operator", "include_parse_text", "include_parse_data"),
    ),
    "files": Command(
        "views.files", "List the current Parquet files of the table.", False, LOOK,
        example="mine state",
    ),
    "sql": Command(
        "querying.sql", "Query the table in SQL, with DuckDB.", False, LOOK,
        example="mine 'SELECT status, count(*) FROM state GROUP BY status'",
    ),
    "history": Command(
        "views.history", "Show the snapshots of the table, and its sizes.", False, LOOK,
        example="mine --last 10",
    ),
    "updatehostdb": Command(
        "hosting.updatehostdb", "Count the URLs of each host, and look hosts up.",
        example="mine --check all",
        options=("check", "recheck_interval", "failed_hosts_threshold", "resolvers_threads",
                 "lookup_timeout", "lookup_limit"),
    ),
    "hostinject": Command(
        "hosting.hostinject", "Set delay, limits, intervals and more of single hosts.",
        example="mine hosts.txt",
    ),
    "filterdb": Command(
        "filterdb", "Apply today's URL rules and scope to the known URLs.",
        example="mine --dry_run",
        options=("dry_run", "drop_gone", "drop_orphans", *_LINK_RULES, "url_rules_dir"),
    ),
    "webgraph": Command(
        "graph.webgraph", "Make the graph of pages, hosts or domains from links.",
        group=RANK, example="mine --ignore_internal_host false --ignore_internal_domain false",
        options=("level", "links_from", "ignore_internal_host",
                              "ignore_internal_domain", "limit_page", "limit_domain"),
    ),
    "linkrank": Command(
        "graph.linkrank", "Rank a graph: LinkRank, PageRank, HITS, centrality.",
        group=RANK, options=("level", "ranking", "rank_rounds", "tolerance", "damping_factor"),
    ),
    "scoreupdater": Command(
        "graph.scoreupdater", "Write the ranks of pages into the table, as their scores.",
        group=RANK, options=("rank", "clear_score"),
    ),
    "nodedumper": Command(
        "graph.graph_readers:NODEDUMPER", "Show the nodes of a graph, the best first.", False, RANK,
        example="mine --top 10",
        options=("what", "rank", "top", "group_by", "aggregate", "output", "level"),
    ),
    "graphfiles": Command(
        "graph.graph_readers:GRAPHFILES", "Write a graph as Common Crawl's vertices, edges and ranks.", False,
        RANK, example="mine --level host -o mine-host", options=("level", "output"),
    ),
    "index": Command(
        "indexing.index", "Add the pages of the table to an index.", group=INDEXING,
        example="mine",
        options=("index", "writer", "writer_parameters", "index_writers", "full", "batch",
                 "index_filters", "index_expr"),
    ),
    "clean": Command(
        "indexing.clean", "Delete gone, moved and duplicate pages from an index.", group=INDEXING,
        example="mine",
        options=("index", "writer", "writer_parameters", "index_writers"),
    ),
    "search": Command(
        "indexing.search", "Search an index of the table, or serve a search page.", False, INDEXING,
        example="mine water", options=("index", "top", "serve", "port"),
    ),
    "solrindex": Command(
        "indexing.solrindex", "The same as index, with the writer solr.", group=INDEXING,
        example="mine --writer_parameters url=http://localhost:8983/solr/nutch",
        options=("index", "writer_parameters", "full", "batch", "index_filters"),
    ),
    "solrclean": Command(
        "indexing.solrclean", "The same as clean, with the writer solr.", group=INDEXING,
        example="mine --writer_parameters url=http://localhost:8983/solr/nutch",
        options=("index", "writer_parameters"),
    ),
    "solrdedup": Command(
        "indexing.solrdedup", "Delete duplicates from an index in Solr or another server.",
        False, INDEXING, example="mine --writer_parameters url=http://localhost:8983/solr/nutch",
        options=("writer", "writer_parameters", "index_writers", "keep"),
    ),
    "compact": Command("compact", "Merge small files of the table, and delete old data."),
    "copy": Command(
        "upkeep.copy_table", "Copy the table as it is now to another place.",
        example="mine backup",
    ),
    "mergelinkdb": Command(
        "mergelinkdb", "Add the links of other tables to the link table.",
        example="mine backup",
        options=("normalize_links", "filter_links"),
    ),
    "mergedb": Command(
        "batch_tools.mergedb", "Merge the URLs of other tables into the table.",
        example="mine backup", options=("filter_urls", "normalize_urls"),
    ),
    "batches": Command(
        "batch_tools.batches", "Copy batches to another table, filter, slice or merge them.", False,
        example="copy elsewhere mine/batches", options=("filter_urls", "normalize_urls", "slice"),
    ),
    "mergesegs": Command(
        "batch_tools.mergesegs", "Merge batches into another table, as Nutch's mergesegs.", False,
        example="merged --all_of mine/batches --slice 1000",
        options=("all_of", "filter_urls", "normalize_urls", "slice"),
    ),
    "rollback": Command(
        "upkeep.rollback", "Return to an older snapshot, by a new one.", False,
        example="mine --to 3",
    ),
    "fsck": Command("upkeep.fsck", "Check the files of the table, and repair them.", False),
    "purge": Command(
        "purge", "Remove a URL, a host or a domain, and keep it out.",
        example=f"mine --url {_SITE}",
    ),
    "table": Command(
        "views.table", "Create, describe or drop a table in Bigtable.", False,
        example="describe bigtable://your-project/your-instance/mine",
    ),
    "filterchecker": Command(
        "checkers.rule_checkers:FILTERCHECKER", "Show which URLs the filters accept.", False, TRY,
        example=f"{_SITE}blog/ {_SITE}logo.png --include /blog/",
        options=("include", "exclude", "url_filter_file", "url_rules_dir", "url_filters",
                 "no_filter", "filter_name"),
    ),
    "normalizerchecker": Command(
        "checkers.rule_checkers:NORMALIZERCHECKER", "Show normalized URLs.", False, TRY,
        example="'HTTPS://www.Your-Site.org:443/a/../b?sid=1'",
        options=("url_normalizers", "url_normalizer_file", "url_rules_dir", "url_scope",
                 "normalizer"),
    ),
    "robotsparser": Command(
        "checkers.robotsparser", "Show what a robots.txt allows.", False, TRY,
        example=f"robots.txt {_SITE}private/ --agent_name mybot",
        options=("agent_name", "agent_email", "robots_agents", "allow_addresses", "timeout"),
    ),
    "parsechecker": Command(
        "checkers.parsechecker", "Fetch and parse URLs, and show it.", False, TRY,
        example=f"{_SITE} {_AGENT}",
        options=(*_CONTACT, "dump_text", "follow_redirects", "force_as", "headings",
                 "detect_language", "parse_filters", "allow_addresses"),
    ),
    "indexchecker": Command(
        "checkers.indexchecker", "Show what URLs would become in an index.", False, TRY,
        example=f"{_SITE} {_AGENT}",
        options=(*_CONTACT, "follow_redirects", "index_filters", "index_expr", "do_index", "writer",
                 "writer_parameters", "allow_addresses"),
    ),
    "explain": Command(
        "views.explain", "Explain what would happen to URLs, and why.", False, TRY,
        example=f"mine {_SITE}some/page",
        options=("found_as", "source", "scope", "depth", "include", "exclude", "url_filter_file",
                 "add_days", "ask_robots", "agent_name"),
    ),
    "simweb": Command(
        "simweb", "Serve a simulated web on this machine, to try crawls on.", False, TRY,
        example="--hosts 5 --pages 20 --crawl_delay 0",
    ),
}  # fmt: skip


def overview(commands: Mapping[str, Command]) -> str:
    """Returns the text of ``nutbeam --help``: the commands by group."""
    lines = ["usage: nutbeam COMMAND TABLE [arguments] [--option value] [Beam options]"]
    for title in GROUPS:
        lines += ["", f"{title}:"]
        group_commands = (
            (name, command) for name, command in commands.items() if command.group == title
        )
        lines += [f"  {name:17} {command.help}" for name, command in group_commands]
    lines += ["", "nutbeam help COMMAND has an example and the usual options of a command,"]
    lines += ["nutbeam COMMAND --help_all all of them."]
    return "\n".join([*lines, ""])
