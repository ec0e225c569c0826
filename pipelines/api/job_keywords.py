"""The options of each command as keywords, for type checkers and editors.

``make docs`` writes this file, and a test compares it.
"""

import datetime
import os
from collections.abc import Iterable, Sequence
from typing import Literal, TypedDict


class PipelineKeywords(TypedDict, total=False):
    """Keywords of pipelines."""

    beam_args: Sequence[str]
    """Options of Beam, as on the command line: ["--runner=FlinkRunner", …]."""


class _Shared1(TypedDict, total=False):
    """Of crawl, warc."""

    warc_version: Literal["1.1", "1.0"]
    """Version of the WARC format. Default: 1.1."""
    warc_compression: Literal["gzip", "zstd"]
    """How each record is compressed: gzip makes .warc.gz, which all tools read, zstd makes .warc.zst. Default: gzip."""
    warc_size: int | str
    """Size at which a file ends and the next one begins; a record is never divided. Unit: bytes. Default: 1000000000."""
    warc_prefix: str
    """First part of the names of files, and the name of the crawl in the indexes columnar and host. Default: nutbeam."""
    warc_operator: str
    """Who has made the archive, for warcinfo: a name and an address. Default: none."""
    warc_description: str
    """What the archive is, in a few words, for warcinfo. Default: none."""
    only_successful_responses: bool
    """Write pages, and no redirects and no error pages. Default: false."""
    warc_requests: bool
    """Write the request before each response. Default: true."""
    warc_revisits: bool
    """Write a body that the archive has already as a revisit record, which names the earlier response. Default: true."""
    warc_robots: bool
    """Write each robots.txt, as a resource record. Default: true."""
    warc_dns: bool
    """Write a DNS record for each host, with the address that was connected to. Default: false."""
    warc_indexes: Iterable[Literal["cdxj", "columnar", "host"]] | str
    """Indexes to write: cdxj, lines sorted by SURT for pywb and OutbackCDX; columnar and host, the tables of URLs and of hosts of Common Crawl, as Parquet. Empty: none. Default: cdxj."""
    warc_wet: bool
    """Write the texts of pages into WET files, in the folder wet, as Common Crawl does. Default: false."""
    warc_wat: bool
    """Write what each record is, with the links of pages, as JSON into WAT files, in the folder wat, as Common Crawl does. Default: false."""
    wacz: bool
    """Package all of the archive as one file WACZ, with its index and a list of its pages. Default: false."""
    include_parse_text: bool
    """Write the text of each page, as a conversion record. Default: false."""
    include_parse_data: bool
    """Write title, language and links of each page, as a metadata record. Default: false."""


class _Shared2(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, freegen, import_warc, import_nutch, fetch, parse, updatedb, invertlinks, dedup, round, next, pages, extract, warc, webgraph, linkrank, scoreupdater, index, clean, updatehostdb, hostinject, filterdb, compact, copy, mergelinkdb, mergedb, purge."""

    shared_path: bool
    """The table's folder is the same on this machine and on all workers, as on a network drive. Default: false."""
    plugin_package: Iterable[str | os.PathLike[str]] | os.PathLike[str] | str
    """Packages of plug-ins that workers need: names of installed ones, or wheel files. Default: none."""
    deliver: bool
    """Send nutbeam and the packages of plug-ins to workers on other machines; false if their image has them. Default: true."""
    log_format: Literal["text", "json"]
    """Format of logs, here and on workers; json is one object per line, also for the start and the end of each phase, and shows no progress without --progress. Default: text."""
    metrics_port: str
    """Serve metrics for Prometheus while the command runs, at http://ADDRESS:PORT/metrics: a port of this machine alone, 0 for a free one, or ADDRESS:PORT for others, such as 0.0.0.0:9464. Default: none."""
    metrics_file: str
    """File for metrics that ends with .prom, or a folder for files by table, which node_exporter's textfile collector reads. It stays when the command ends. Default: none."""
    trace_to: str
    """Address of a receiver of OpenTelemetry to which spans of the command, its rounds and its jobs are sent by OTLP over HTTP, such as http://127.0.0.1:4318; env: that of the variables OTEL_*. Default: none."""


class _Shared3(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, freegen, import_warc, import_nutch, fetch, parse, updatedb, invertlinks, dedup, round, next, webgraph, linkrank, scoreupdater, index, clean, updatehostdb, hostinject, filterdb, compact, copy, mergelinkdb, mergedb, rollback, purge."""

    operation: str
    """Id of the operation. The same id again changes nothing. Without it, a new one is made. Default: none."""


class _Shared4(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, freegen, import_warc, import_nutch, fetch, parse, updatedb, invertlinks, dedup, round, next, webgraph, linkrank, scoreupdater, index, clean, updatehostdb, hostinject, filterdb, compact, copy, mergelinkdb, mergedb, purge."""

    one_worker_urls: int
    """On a cluster, a phase that works on at most this many URLs is one step on one worker; the fetch is for all workers. A page of a batch counts as up to 10 URLs. 50 URLs count as one for generate and for the dedup of a batch, 10 for a dedup of all pages. 0: all is for all workers. Default: 50000."""


class _Shared5(TypedDict, total=False):
    """Of crawl, round, next, index, clean."""

    max_inlinks: int
    """How many inlinks of a page are shown: those from the pages with the best scores; among equal scores, links from other hosts come first. Default: 10000."""
    writer: str
    """Kind of the writer: tantivy, jsonl, csv, parquet, opensearch, elasticsearch, solr, dummy, or that of a plug-in. Default: tantivy."""
    writer_parameters: Iterable[str]
    """Parameters of the writer, each as `name=value`: for a writer of files `path=folder`, for a server `url=http://localhost:8983/solr/nutch`. Default: none."""
    index_writers: str | os.PathLike[str]
    """File with several writers and what each gets: toml, or Nutch's index-writers.xml. Its writers rabbit, kafka and cloudsearch are left out, unless plug-ins with these names are installed. Default: none."""
    exchanges: str | os.PathLike[str]
    """Nutch's exchanges.xml, which says what each writer of --index_writers gets. Default: none."""
    delete_gone: bool
    """Delete pages from the index that are gone, redirected or duplicates. Default: true."""
    delete_robots_noindex: bool
    """Delete pages with the robots directive noindex; false indexes them without their text. Default: true."""
    delete_skipped: bool
    """Delete pages from the index that an index filter leaves out. Default: true."""
    skip_notmodified: bool
    """Do not send pages that were fetched again and had not changed. Default: false."""
    obey_usage: bool
    """Delete pages whose Content-Usage is search=n: they do not want to be found. Default: true."""
    score_power: float
    """Scoring opic: the boost of a page in an index is its score to this power. Default: 0.5."""
    normalize_score: float
    """Scoring link: the boost of a page in an index is its score times this. Default: 1."""
    index_filters: Iterable[str]
    """Index filters that each page goes through, in this order. Default: basic,anchor,more,language."""
    max_title_length: int
    """Longest title in the index, in characters; -1: no limit. Default: 100."""
    max_content_length: int
    """Longest text in the index, in characters; -1: no limit. Texts of more than 8,388,608 characters are always cut. Default: -1."""
    text_of: Literal["main", "all"]
    """Which text of a page counts: main, its main content, without navigation, comments and the like; or all. A page of which the main content is not known has all. Default: main."""
    add_domain: bool
    """Add the registered domain to each document. Default: false."""
    anchor_deduplicate: bool
    """Index equal texts of links to a page once. Default: false."""
    mime_type_parts: bool
    """Add the parts of the MIME type to `type`: `text` and `html` besides `text/html`. Default: true."""
    index_parse_md: Iterable[str]
    """Names of metadata of pages that become fields. Default: none."""
    index_content_md: Iterable[str]
    """Names of response headers that become fields. Default: none."""
    index_db_md: Iterable[str]
    """Names of metadata of rows that become fields. Default: none."""
    links_outlinks_host_ignore: bool
    """Leave links within the host out of `outlinks`. Default: false."""
    links_inlinks_host_ignore: bool
    """Leave links within the host out of `inlinks`. Default: false."""
    links_hosts_only: bool
    """Index the hosts of links instead of their URLs. Default: false."""
    index_static: Iterable[str]
    """Fields that all documents get, each as `name:value value`. Default: none."""
    index_replace: str
    """Replacements in fields, as Nutch writes them: lines of `field=/regex/text/flags`, after lines `hostmatch=regex` or `urlmatch=regex` for some pages only. Default: none."""
    index_expr: str
    """With the index filter expr: index only documents for which this expression is true. Default: none."""
    index_headings: Iterable[str]
    """Headings that become fields. Default: h1,h2."""
    mimetype_file: str | os.PathLike[str]
    """File with the MIME types that the index filter mimetype accepts or refuses. Default: none."""
    subcollections_file: str | os.PathLike[str]
    """File with the parts of the index for the index filter subcollection. Default: subcollections.xml."""
    geoip_databases: Iterable[str | os.PathLike[str]] | os.PathLike[str] | str
    """Files of MaxMind databases for the index filter geoip, on each worker; needs nutbeam[geoip]. Default: none."""
    embedding: str
    """Plug-in that makes a vector of each chunk of a page, of 256 words at most; search then also ranks pages by them. For the writer tantivy. Default: none."""


class _Shared6(TypedDict, total=False):
    """Of crawl, sitemap, generate, fetch, round, next, updatehostdb, explain, parsechecker."""

    connect_to: Iterable[str]
    """Connect to another address for a host, as curl's option connect-to: HOST:PORT:ADDRESS:PORT. HOST must not be empty; *.DOMAIN is the domain and all hosts below it. If the first PORT is empty, it means any port; if the second one is empty, the port stays. Default: none."""
    allow_addresses: Iterable[str]
    """CIDR blocks of private or special addresses that may be reached. A block within ::ffff:0:0/96 is the IPv4 block that it maps; wider blocks of IPv6 contain no IPv4 address. Default: none."""
    allowed_ports: Iterable[str | int] | str
    """Ports that URLs may name, as PORT or FIRST-LAST; hosts of connect_to may name any. 21 is FTP's own. Default: 80,443,8000-8999."""
    http_proxy: str
    """Proxy for all requests, http://HOST:PORT, except to hosts of connect_to. It resolves names itself. Default: none."""


class _Shared7(TypedDict, total=False):
    """Of crawl, generate, fetch, round, next, explain."""

    fetch_engines: int
    """How many processes of this machine fetch at once, each with hosts of its own, if the workers are this process; 0 is one for every 4 cores that it may use, one at least, as far as its memory allows. Default: 0."""


class _Shared8(TypedDict, total=False):
    """Of crawl, import_warc, import_nutch, fetch, round, next."""

    least_free: int | str
    """How much of the table's disk stays free. A fetch that finds less ends early: its pages are kept, the others stay due, and what is left of the round uses this room. An import does not begin. 0: no limit; -1: a twentieth of the disk, at most 1 GB. A twentieth of its inodes stays free, too, at most 10,000, except with 0. Unit: B. Default: -1."""


class _Shared9(TypedDict, total=False):
    """Of crawl, sitemap, fetch, round, next."""

    max_lease_wait: float | str | datetime.timedelta
    """Wait at most this long for another fetch of this table, then fail; -1: no limit. A fetch whose process died is waited for no longer than a minute. Unit: s. Default: 3600."""


class _Shared10(TypedDict, total=False):
    """Of crawl, fetch, parse, round, next, extract."""

    parse_processes: int
    """How many processes parse on a worker; 0 is one for each core that it may use: a quota of its container and other workers on the machine count. Default: 0."""
    all_parsers_memory: int | str
    """Largest memory of all processes that parse on a worker together, at least 64Mi; 0 is half of what the worker may use. Unit: bytes. Default: 0."""


class _Shared11(TypedDict, total=False):
    """Of crawl, fetch, parse, round, next, extract, parsechecker."""

    parser_memory: int | str
    """Largest memory of each process that parses; 0: no limit. Unit: bytes. Default: 8589934592."""
    parser_timeout: float | str | datetime.timedelta
    """Longest time that the parsing of a page may take. Unit: s. Default: 30."""


class _Shared12(TypedDict, total=False):
    """Of crawl, fetch, updatedb, round, next, explain."""

    depth: int
    """Add no URL that is more links away from the nearest seed; -1: no limit. Default: 50."""


class _Shared13(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, fetch, parse, updatedb, round, next, filterdb, explain, parsechecker."""

    count_by_rule: bool
    """Also count the URLs that each rule of URL filters refuses, as filtered/FILE:LINE: the 50 rules that refuse most, and the sum of the others. Default: false."""


class _Shared14(TypedDict, total=False):
    """Of crawl, sitemap, generate, fetch, parse, updatedb, round, next, filterdb, explain, parsechecker."""

    max_segment_repeats: int
    """Follow no link whose path has one segment more often than this; -1: no limit. Default: 3."""
    max_parameters: int
    """Follow no link with more parameters in its query; -1: no limit. Default: 20."""
    max_parameter_length: int
    """Follow no link with a longer parameter in its query; -1: no limit. Unit: characters. Default: 500."""
    scope: Literal["domain", "host", "any"]
    """Follow links within the registered domains of the seeds, within their hosts, or any links. Default: domain."""
    skip_internal_links: bool
    """Follow no link within one host, or with --scope domain within one registered domain. Default: false."""
    ignore_also_redirects: bool
    """Apply the scope and --skip_internal_links to redirects, too. Default: true."""


class _Shared15(TypedDict, total=False):
    """Of crawl, generate, round, next, explain."""

    expr: str
    """Take only rows for which this expression is true, such as "score > 0.5 and status == 'unfetched'". Its names are the columns of the data dictionary, as in nutbeam sql. Default: none."""
    top_n: int
    """How many URLs a batch takes at most, the best by score. Default: 50000."""
    max_count: int
    """How many URLs a batch takes of one host (or domain) at most; 0 or -1: no limit. Default: -1."""
    count_mode: Literal["host", "domain"]
    """What max_count counts. Default: host."""
    max_count_expr: str
    """An expression over the host table in place of max_count, such as '100 if gone > fetched else 1000'; 0 or less: no limit. max_count applies to hosts that are not in the host table. Settings of a host have priority. Default: none."""
    fetch_delay_expr: str
    """An expression over the host table, in ms: the pause between two requests to a host, such as 'response_p95 * 10'. If it has no value or is 0, the usual pause applies. Settings of a host have priority. Default: none."""
    min_score: float
    """Take no URL with a lower score. Default: 0."""
    max_distance: int
    """Take no URL that is more links away from the seeds; -1: no limit. Default: -1."""
    restrict_status: Literal[
        "",
        "db_unfetched",
        "db_fetched",
        "db_gone",
        "db_redir_temp",
        "db_redir_perm",
        "db_notmodified",
        "db_duplicate",
        "db_orphan",
        "db_parse_failed",
        "unfetched",
        "fetched",
        "gone",
        "redir_temp",
        "redir_perm",
        "notmodified",
        "duplicate",
        "orphan",
        "parse_failed",
    ]
    """Take only URLs of this status; fetched is db_fetched and db_notmodified. Default: none."""
    generate_min_interval: int | str | datetime.timedelta
    """Take no URL whose fetch_interval is longer than this; -1: no limit. Unit: s. Default: -1."""
    filter: bool
    """Leave out URLs that today's filters and scope refuse, as filterdb would drop them. They stay in the table. Default: false."""
    normalize: bool
    """Leave out URLs that today's normalizers rewrite, as filterdb would move them. They stay in the table. Default: false."""
    add_days: float | str | datetime.timedelta
    """Choose as if it were this many days later. It brings each URL forward at most once per crawl. Unit: d. Default: 0."""
    num_fetchers: int
    """How many partitions a batch has; hosts are divided among them. 0 is one; where this machine runs several fetch_engines, it is one for each of them, if it gets 10,000 URLs. Default: 0."""


class _Shared16(TypedDict, total=False):
    """Of crawl, round, next."""

    index: str
    """Add the pages of each round to the index of this name, as index does; empty: do not. Default: none."""
    links: bool
    """Add the links of each round to the link table, as invertlinks does. Default: false."""


class _Shared17(TypedDict, total=False):
    """Of crawl, fetch, parse, round, next, parsechecker."""

    extract: Iterable[str | os.PathLike[str]] | os.PathLike[str] | str
    """Files of rules (toml): take fields from pages by them, while these are parsed, and store them; see the guide on extracting. Default: none."""
    signature: Literal["md5", "text_md5", "text_profile", "simhash"]
    """The fingerprint by which pages are compared: md5 of the body; text_md5 of the title and the text, in which all white space is alike; text_profile, their frequent words; simhash of both, which differs in few bits where pages differ in few words. A page without text has the md5 of its body. Default: md5."""
    text_profile_min_word_len: int
    """With text_profile: words up to this length do not count. Unit: characters. Default: 2."""
    text_profile_quant_rate: float
    """With text_profile: counts of words are rounded down to this share of the highest. Default: 0.01."""
    max_outlinks: int
    """Most links kept per page, of those that pass the filters; -1: no limit. Nutch keeps 100. Unit: links. Default: 10000."""
    outlinks_ignore_tags: Iterable[str]
    """Elements whose links are not followed, such as img or script. Default: none."""
    form_use_action: bool
    """Follow the action of forms, except of those with the method POST. Default: false."""
    headings: Iterable[Literal["h1", "h2", "h3", "h4", "h5", "h6"]] | str
    """Headings whose texts go into the metadata of a page, under these names. Default: h1,h2."""
    structured_data: bool
    """Store the structured data of pages: JSON-LD, microdata, RDFa, Open Graph and the like. Default: true."""
    detect_language: bool
    """Guess the language of pages that declare none from their text; needs nutbeam[language]. Default: false."""
    skip_truncated: bool
    """Do not parse pages that were cut at the content limit. Default: true."""
    feed_documents: bool
    """Make a document of each item of a feed, if the item's link is on the feed's host. Default: false."""
    pdf_max_pages: int
    """Most pages of a PDF that are read, each in about 2 ms; -1: no limit. Unit: pages. Default: 2000."""
    parsers: Iterable[str]
    """Plug-ins that parse documents, as TYPE=NAME with a media type or TYPE/*, in place of the parser of nutbeam, if it has one. Default: none."""
    parse_filters: Iterable[str]
    """Parse filters of plug-ins that each page goes through, in this order. Default: none."""


class _Shared18(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, freegen, import_warc, import_nutch, fetch, parse, updatedb, round, next, filterdb, mergelinkdb, mergedb, explain, parsechecker."""

    schemes: Iterable[str]
    """Schemes of the URLs that are accepted: http, https, file, ftp, and those of --protocols. file: URLs are accepted only from seeds and from file: documents. Default: http,https."""
    protocols: Iterable[str]
    """Plug-ins that fetch URLs, as SCHEME:=NAME, which --schemes must have, too, or as HOST=NAME for all URLs of a host. Default: none."""
    include: Iterable[str]
    """Follow only links whose URL matches this regular expression. May be repeated: one match is enough. The other rules still refuse links. Seeds, and the targets of their redirects, need no match. Unit: pattern. Default: none."""
    exclude: Iterable[str]
    """Refuse URLs that match this regular expression, even if --include matches. May be repeated. Unit: pattern. Default: none."""
    url_filter_file: str | os.PathLike[str]
    """File of URL filter rules, as Nutch's regex-urlfilter.txt, in place of the built-in rules, which refuse images, archives and other files that are not text. Default: none."""
    url_normalizer_file: str | os.PathLike[str]
    """File of URL rewriting rules, as Nutch's regex-normalize.xml; empty for the built-in ones. Default: none."""
    max_url_length: int
    """Longest URL that is accepted, before normalizing; -1: any that a row key can hold. Unit: characters. Default: 4096."""
    no_filter: bool
    """Do not apply the URL filters; --include and --exclude still count. Default: false."""
    no_normalize: bool
    """Leave out the URL rewriting rules; the form that row keys need remains. Default: false."""
    url_rules_dir: str | os.PathLike[str]
    """Folder with the rule files of URL filters and normalizers, under the names they have in Nutch's conf/. Without regex-urlfilter.txt or regex-normalize.xml in it the built-in one is used. Default: none."""
    url_filters: Iterable[str]
    """URL filters, in this order, built-in ones and plug-ins; a URL must pass all of them. ignoreexempt refuses nothing: it names links that are followed although they lead out of the scope. Default: regex."""
    url_normalizers: Iterable[str]
    """URL normalizers, in this order, built-in ones and plug-ins; basic, which row keys need, is added if it is missing. Default: basic,regex."""
    url_normalizers_in: Iterable[str]
    """Other URL normalizers for URLs from one source, as SCOPE=NAME+NAME: inject, outlink, fetcher (redirects) or another scope of Nutch. For this scope, a file regex-normalize-SCOPE.xml in url_rules_dir replaces regex-normalize.xml. Default: none."""
    url_normalizer_loop_count: int
    """Most rounds through the normalizers until nothing changes; URLs that still change then are dropped. 1: one round only. Default: 5."""
    tld_max_length: int
    """Longest last label of a host that the filter validator accepts; -1: no limit. Unit: characters. Default: -1."""
    fast_url_max_length: int
    """Longest URL that the filter fast accepts; -1: no limit. Unit: characters. Default: -1."""
    fast_path_max_length: int
    """Longest path that the filter fast accepts; -1: no limit. Unit: characters. Default: -1."""
    fast_query_max_length: int
    """Longest query that the filter fast accepts; -1: no limit. Unit: characters. Default: -1."""


class _Shared19(TypedDict, total=False):
    """Of crawl, sitemap, fetch, parse, round, next, explain, parsechecker."""

    agent_name: str
    """Name of the crawler: first word of the User-Agent. The rules for a robot of this name are obeyed, in robots.txt and in pages. Letters, digits, _ and - only. Default: none."""
    robots_agents: Iterable[str]
    """Further names whose rules in robots.txt and in pages are obeyed, together with agent_name's. Default: none."""


class _Shared20(TypedDict, total=False):
    """Of crawl, fetch, updatedb, round, next."""

    internal_link_factor: float
    """How much of a page's share goes to a link on the same host. Default: 1."""
    external_link_factor: float
    """How much of a page's share goes to a link on another host. Default: 1."""


class _Shared21(TypedDict, total=False):
    """Of crawl, round."""

    parse_while_fetching: bool
    """Parse pages while others are fetched; false makes parse a phase of its own. Default: true."""


class _Shared22(TypedDict, total=False):
    """Of crawl, fetch, round, next."""

    follow_outlinks_depth: int
    """Follow outlinks within the same fetch down to this depth, while they lead to hosts that the same worker fetches in this batch anyway; 0 or -1: none. Needs parse_while_fetching. Default: -1."""
    follow_outlinks_num_links: int
    """Sets how many links of a page are followed: the first ones on the page. For links to depth d, the number is follow_outlinks_num_links * follow_outlinks_depth_divisor / d, rounded down. By default it is 8 for a page of the batch (d = 1), and 4 for each page to which its links lead (d = 2). Default: 4."""
    follow_outlinks_depth_divisor: int
    """Factor in the formula of follow_outlinks_num_links. Default: 2."""
    follow_outlinks_ignore_external: bool
    """Follow within the same fetch only links to the page's own host. Default: true."""
    redirect_max: int
    """How many redirects in a row are followed at once, while they lead to hosts that the same worker fetches in this batch anyway; all others become URLs of a later round. Default: 0."""
    flush_seconds: float | str | datetime.timedelta
    """Write a page to disk at most this long after it arrived, with all pages since then. Pages that are not written are lost if the process dies. -1: 5 s, or longer if --num_fetchers workers would write more than 100,000 files until --fetch_time_limit (a day without a limit): 11 s with 100, 108 s with 1,000. Unit: s. Default: -1."""


class _Shared23(TypedDict, total=False):
    """Of crawl, import_warc, fetch, round, next."""

    store_wire: bool
    """Store each answer as it came, too, for nutbeam warc: its head, its body with all codings, and the bodies of error pages; and the version of TLS. Coded bodies are stored twice. Default: false."""


class _Shared24(TypedDict, total=False):
    """Of crawl, sitemap, fetch, round, next, explain, parsechecker."""

    file_roots: Iterable[str | os.PathLike[str]] | os.PathLike[str] | str
    """Folders below which file: URLs are read, and no others; each machine that fetches reads its own. Default: none."""
    agent_version: str
    """Version of the crawler. Default: none."""
    agent_description: str
    """Purpose of the crawler, in a few words. Default: none."""
    agent_url: str
    """Page that says what the crawler does and how to stop it. Default: none."""
    agent_email: str
    """Address that the operators of sites can write to. Default: none."""
    timeout: float | str | datetime.timedelta
    """Longest wait for a connection, or for the next bytes. Unit: s. Default: 10."""
    ca_file: str | os.PathLike[str]
    """File of certificates to trust instead of the bundled ones. Default: none."""
    insecure_host: Iterable[str]
    """Hosts whose certificates are not checked; their pages are marked. Default: none."""
    robots_max_age: float | str | datetime.timedelta
    """How long a robots.txt is used before it is fetched again. Unit: s. Default: 86400."""
    robots_redirect_max: int
    """Most redirects of a robots.txt that are followed. If it is less than 5, the pages of a host whose robots.txt has more stay due. Default: 5."""
    robots_redirect_targets: int
    """How many redirects from robots.txt of other domains to one domain are followed during the fetch of a partition. If the robots.txt of a host needs more, its pages stay due. Default: 10."""
    robots_defer_delay: float | str | datetime.timedelta
    """Pause for a site whose robots.txt answers 425, 429 or 5xx. Unit: s. Default: 300."""
    robots_allowlist: Iterable[str]
    """Hosts, with all below them, whose robots.txt is NOT fetched and NOT obeyed: only for sites of your own, or whose operators have agreed. Default: none."""


class _Shared25(TypedDict, total=False):
    """Of crawl, sitemap, fetch, round, next, parsechecker."""

    file_parent: bool
    """A folder's page links to its parent. Default: false."""
    file_redirect_noncanonical: bool
    """A path with a symbolic link redirects to the path without it; if false, it is a page of its own. Default: true."""
    http_time_limit: float | str | datetime.timedelta
    """Longest time for a whole request. Unit: s. Default: 60."""
    accept: str
    """Accept header. Default: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8."""
    accept_language: str
    """Accept-Language header. Default: en-us,en-gb,en;q=0.7,*;q=0.3."""
    min_rate: float
    """Least bytes per second of an answer; slower answers are cut. 0: no limit. Unit: bytes/s. Default: 100."""
    min_rate_grace: float | str | datetime.timedelta
    """Time for which an answer may be slower than min_rate. Unit: s. Default: 10."""
    http_header: Iterable[str]
    """Header to send with every request, 'Name: value'. It is stored with the pages, so it must not contain secrets. Default: none."""
    http_credentials: str | os.PathLike[str]
    """File of user names, passwords and tokens, each for one origin; it must be on each machine that fetches. Lines: ORIGIN basic USER PASSWORD, ORIGIN digest USER PASSWORD, ORIGIN bearer TOKEN. An FTP server is ftp://HOST, with basic. Default: none."""
    http_cookies: bool
    """Keep cookies and send them back. The host table keeps them from fetch to fetch, for 400 days at most. A redirect that sets a new cookie is followed at once, five in a row at most, also with redirect_max 0. Default: false."""
    keep_incomplete: bool
    """Take answers that broke off, or that were too slow, for pages, with the part that came. They are marked (column truncated), and not parsed unless skip_truncated is false. Without it they are failures, unless the document is whole by its own format. Default: false."""
    http_client: Literal["asyncio", "threads"]
    """HTTP client: asyncio uses one thread for all requests, which needs half of the CPU; threads one thread for each request at a time. Default: asyncio."""
    threads: int
    """Requests at a time, of each fetch engine. Default: 50."""
    threads_per_host: int
    """Requests at a time to one host; a host with a crawl delay gets one. Default: 1."""
    threads_per_address: int
    """Requests at a time to one address, for all its hosts together; -1: no limit. Hosts of connect_to are exempt. Default: 8."""
    server_delay: float | str | datetime.timedelta
    """Wait between the end of a request and the next one to the same host. Unit: s. Default: 5."""
    server_min_delay: float | str | datetime.timedelta
    """Like server_delay, when threads_per_host is above 1. Unit: s. Default: 0."""
    max_crawl_delay: float | str | datetime.timedelta
    """Pages of a host with a longer crawl delay are not fetched; -1: no limit. Unit: s. Default: 30."""
    min_crawl_delay: float | str | datetime.timedelta | None
    """Least wait for a host with a crawl delay; server_delay if not given. Unit: s. Default: none."""
    fetch_time_limit: float | str | datetime.timedelta
    """Time after which a fetch begins no request; waiting pages stay due. -1: no limit. Unit: s. Default: 10800."""
    max_exceptions_per_host: int
    """Failures in a row after which the rest of a host stays due; -1: no limit. Default: 5."""
    exceptions_delay: float | str | datetime.timedelta | None
    """Extra wait after a failure. Each further failure doubles it, and failures of earlier rounds count; each success halves it. A random part of up to a fifth is added. Not given: server_delay. Unit: s. Default: none."""
    max_backoff: float | str | datetime.timedelta
    """If a host must wait for longer (Retry-After, back-off), its other pages stay due; -1: no limit. Unit: s. Default: 120."""
    max_retry_after: float | str | datetime.timedelta
    """Longest pause of a host, even if its Retry-After is longer. Unit: s. Default: 86400."""
    throughput_threshold_pages: float
    """End the fetch when fewer pages per second arrive; -1: never. Unit: pages/s. Default: -1."""
    throughput_threshold_retries: int
    """How many consecutive slow seconds end the fetch. Unit: seconds. Default: 5."""
    throughput_threshold_check_after: float | str | datetime.timedelta
    """Start measuring the throughput after this time. Unit: s. Default: 300."""


class _Shared26(TypedDict, total=False):
    """Of crawl, sitemap, import_warc, fetch, round, next, parsechecker."""

    content_limit: int | str
    """Most bytes of a body that are kept, after decoding; -1: no limit. Nutch keeps 1 MiB. Unit: bytes. Default: 2097152."""
    document_limit: int | str
    """Like content_limit, for PDF, office documents and e-books, which cannot be read when they are cut. If content_limit is larger, it applies. Unit: bytes. Default: 8388608."""


class _Shared27(TypedDict, total=False):
    """Of crawl, sitemap, generate, freegen, fetch, round, next, explain, parsechecker."""

    queue_mode: Literal["host", "domain", "ip"]
    """Which hosts share a queue, with one request at a time and a delay. host: each host has its own queue. domain: the hosts of a registered domain share one. ip: the hosts of an IP address share one (with several num_fetchers, generate resolves the hosts). Give the same value to generate and to fetch. Default: host."""


class _Shared28(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, updatedb, round, next, index, clean, filterdb, explain."""

    mark_gone_after: int | str | datetime.timedelta
    """Scoring orphan: time without a link to a page after which it becomes db_gone. Unit: s. Default: 2592000."""
    mark_orphan_after: int | str | datetime.timedelta
    """Scoring orphan and --drop_orphans: time without a link to a page after which it is an orphan; the scoring gives it the status db_orphan. Unit: s. Default: 3456000."""


class _Shared29(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, updatedb, round, next, index, clean, explain."""

    scoring: Iterable[str]
    """How pages and links are scored: scorings, applied in this order. opic, opic_cash, depth, link, orphan, similarity, metadata, urlboost; plug-ins add more. inject, generate and updatedb need the same value. Default: opic."""
    depth_max: int
    """Scoring depth: pages at this depth pass no links on; a seed has depth 1. _maxdepth_=N in a seed list is the limit for the pages found from that seed. Default: 1000."""
    depth_override_pattern: str
    """Scoring depth: the links of pages whose URL matches this regular expression get the limit --depth_max_override, whatever the limit of their page. Default: none."""
    depth_max_override: int
    """Scoring depth: the limit for pages found from URLs that match --depth_override_pattern. Default: 10."""
    goldstandard_file: str | os.PathLike[str]
    """Scoring similarity: file with the text that pages are compared with. Default: none."""
    stopword_file: str | os.PathLike[str]
    """Scoring similarity: file of words that do not count, one per line. Default: none."""
    metadata_to_links: Iterable[str]
    """Scoring metadata: names in the metadata of a page that its links get, too. Default: none."""
    parsemeta_to_crawldb: Iterable[str]
    """Names in the metadata of documents that updatedb copies to the metadata of their rows. Default: none."""
    url_boost_file: str | os.PathLike[str]
    """Scoring urlboost: file of lines FACTOR PATTERN; the first pattern that matches a URL gives its factor. Default: none."""
    url_boost_of: Literal["choice", "new"]
    """Scoring urlboost: what is multiplied. choice: the value by which generate chooses URLs. new: the score of a new URL, once; then urlboost must come after scorings that change scores. Default: choice."""


class _Shared30(TypedDict, total=False):
    """Of crawl, dedup, round, next."""

    dedup_group: Literal["none", "host", "domain"]
    """Only pages of one host, or one domain, are duplicates of each other. Default: none."""
    compare_order: Iterable[Literal["score", "fetchTime", "urlLength", "httpsOverHttp"]] | str
    """Which comparisons decide which page stays, in this order; the row key decides last. Default: score,fetchTime,urlLength."""
    dedup_distance: int
    """With --signature simhash: pages whose signatures differ in up to this number of bits are duplicates, too; 0: only pages with equal signatures are. Unit: bits. Default: 3."""


class _Shared31(TypedDict, total=False):
    """Of crawl, invertlinks, round, next."""

    ignore_internal_links: bool
    """Leave links between pages of one host out of the link table. A crawl of one site has no other links. Default: false."""
    ignore_external_links: bool
    """Leave links between pages of different hosts out of the link table. Default: false."""
    max_link_age: int | str | datetime.timedelta
    """Drop links that were not found again for longer than this. A link in the newest document of its page stays. 0 means twice --max_fetch_interval. Unit: s. Default: 0."""


class _Shared32(TypedDict, total=False):
    """Of crawl, import_nutch, invertlinks, round, next."""

    max_anchor_length: int
    """How much of the text of a link is kept. Unit: characters. Default: 100."""


class _Shared33(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, updatedb, invertlinks, round, next, fsck, explain."""

    max_fetch_interval: int | str | datetime.timedelta
    """Longest time between two fetches of a page. Unit: s. Default: 7776000."""


class _Shared34(TypedDict, total=False):
    """Of crawl, sitemap, updatedb, round, next, explain."""

    max_per_host: int
    """How many URLs of one host the table holds, the best by score; -1: no limit. URLs in files that also have URLs of other hosts do not count, so a host may have some 2,000,000 more. In Bigtable it limits the URLs that one update adds. Default: 10000000."""
    max_new_per_host: int
    """How many URLs of one host an update adds at most, the best by score; -1: no limit. Default: 100000."""
    max_new_queries: int
    """How many URLs that differ only in their query an update adds at most; -1: no limit. Default: 10000."""
    max_new_hosts_per_domain: int
    """For how many hosts of one registered domain an update adds URLs; -1: no limit. Default: 10000."""
    domain_budget: float
    """With --scope any: how many URLs of a registered domain the table holds at most, as a multiple of the domain's share. A domain's share of all URLs grows with the links to it from domains of seeds, and from domains to which these link. Domains of seeds have no limit; -1: no limit for any domain. Default: 2."""
    unlinked_domain_budget: int
    """With --scope any: how many URLs of a registered domain the table holds at most while no link to the domain counts. A link counts if its page's domain has a seed, or may have at least this number of URLs itself. Only links that count add new domains. In a small crawl, a domain with an average share may have domain_budget times this number. Default: 10."""
    max_same_pages: int
    """Add no URL of a host if this many of its last pages in the batch have the same signature; -1: no limit. Default: 20."""
    schedule: str
    """How the interval of a page follows its changes: default (it stays), adaptive (shorter after a change, else longer), mime_adaptive (with factors per content type), rate (from an estimate of how often the page changes), or the name of a plug-in's schedule. Default: default."""
    inc_rate: float
    """Adaptive schedules: by which share an interval grows if the page has not changed. Default: 0.4."""
    dec_rate: float
    """Adaptive schedules: by which share an interval shrinks if the page has changed. Default: 0.2."""
    min_interval: int | str | datetime.timedelta | None
    """Shortest interval of all schedules but default. Not given: 60 s, or the longest interval if that is shorter. Unit: s. Default: none."""
    max_interval: int | str | datetime.timedelta | None
    """Longest interval of all schedules but default. Not given: a year, or max_fetch_interval if that is shorter. Unit: s. Default: none."""
    sync_delta: bool
    """Adaptive schedules: move the next fetch towards the time of the last change. Default: true."""
    sync_delta_rate: float
    """With sync_delta: how far the next fetch moves, as a share of the time since the last change, or of the interval if that is shorter. Default: 0.3."""
    host_intervals: str | os.PathLike[str]
    """Adaptive schedules: file with lines of a host, its shortest and its longest interval in s (0: the usual one), as Nutch's adaptive-host-specific-intervals.txt. Unit: file. Default: none."""
    mime_rates: str | os.PathLike[str]
    """Schedule mime_adaptive: file with a content type, its inc_rate and its dec_rate per line, separated by tabs. Not given: Nutch's adaptive-mimetypes.txt, which is built in. Unit: file. Default: none."""
    fetches_per_day: float
    """Schedule rate: fetches a day for the whole table. 0: enough to fetch each page once per fetch_interval. Default: 0."""


class _Shared35(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, freegen, updatedb, round, next, explain."""

    fetch_interval: int | str | datetime.timedelta
    """Time between two fetches of a page. Unit: s. Default: 2592000."""


class _Shared36(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, updatedb, round, next, explain."""

    retry_max: int
    """After how many failures in a row a URL is gone. Default: 3."""


class _Shared37(TypedDict, total=False):
    """Of crawl, updatedb, round, next, explain."""

    additions_allowed: bool
    """Add URLs that were found as links. With false, updatedb adds no URLs to the table. Default: true."""
    delete_failed_parse: bool
    """Set the status db_parse_failed for pages that failed to parse, and schedule them like gone pages. Default: false."""


class _Shared38(TypedDict, total=False):
    """Of crawl, generate, freegen, import_warc, import_nutch, round, next, explain."""

    generate_mark_ttl: int | str | datetime.timedelta
    """How long an unfinished batch keeps its URLs from other batches. Unit: s. Default: 604800."""


class _Shared39(TypedDict, total=False):
    """Of crawl, sitemap."""

    sitemap_strict_parsing: bool
    """Accept only URLs on the host of their sitemap, and below its folder or that of the index that names it. If robots.txt of a host names the sitemap, all URLs of this host in it are accepted. Default: true."""
    sitemap_url_filter: bool
    """Apply the URL filters to the URLs of sitemaps. Default: true."""
    sitemap_url_normalize: bool
    """Apply the URL rewriting rules to the URLs of sitemaps. Default: true."""
    sitemap_url_default_sitemap_xml: bool
    """Request /sitemap.xml of a host whose robots.txt names no sitemap. Default: true."""
    sitemap_url_overwrite_existing: bool
    """Give a known URL the priority and interval in its sitemap, if there are any. Default: false."""
    sitemap_refetch: bool
    """Make a known URL due if its sitemap says that it has changed since its last fetch. Many servers say so about all pages. Default: false."""
    sitemap_redir_max: int
    """Follow at most this many redirects in a row. Default: 3."""
    sitemap_size_max: int | str
    """Most bytes to read of a sitemap, after unpacking. Unit: bytes. Default: 52428800."""
    sitemap_urls_max: int
    """Most URLs to read from one sitemap. Default: 50000."""
    sitemap_depth: int
    """Follow indexes of sitemaps down to this depth; 0 follows none. Default: 3."""
    sitemap_files_max: int
    """Most sitemaps to request for one host, or for one given sitemap. Unit: sitemaps. Default: 1000."""
    sitemap_links: Iterable[Literal["alternate", "image", "video"]] | str
    """Links in sitemaps to add, too: alternate (the page in other languages), image, video. Default: alternate."""
    sitemap_max_new_per_host: int
    """How many URLs of one host are added from its sitemaps at once, the best by priority; -1: no limit. These URLs do not count for --max_new_per_host. Default: 50000."""


class _Shared40(TypedDict, total=False):
    """Of crawl, inject."""

    injected_score: float
    """Score of a seed. Default: 1."""
    overwrite_known: bool
    """Replace the row of a known URL that is injected again. Default: false."""
    update_known: bool
    """If a known URL is injected again, update the score, interval and metadata that its line sets. Default: false."""
    filter_normalize_all: bool
    """Also filter and normalize the URLs of the table, by the rules for seeds. Refused URLs are dropped, and seeds are optional. filterdb also applies the rules for links. Default: false."""


class _Shared42(TypedDict, total=False):
    """Of crawl, inject, sitemap, generate, freegen, import_warc, import_nutch, fetch, parse, updatedb, invertlinks, dedup, round, next, pages, extract, warc, report, webgraph, linkrank, scoreupdater, index, clean, updatehostdb, hostinject, filterdb, compact, copy, mergelinkdb, mergedb, rollback, fsck, purge, explain, parsechecker."""

    config: str | os.PathLike[str] | None
    """File with options; by default nutbeam.toml in the working directory, if it exists. Default: none."""
    progress: bool | None
    """Show progress on standard error, as a live view if that is a terminal. Default: none."""


class _Shared44(TypedDict, total=False):
    """Of freegen, import_warc, import_nutch, mergedb."""

    filter_urls: bool
    """Leave out URLs that the filters refuse. Default: false."""
    normalize_urls: bool
    """Apply the URL rewriting rules. Without it, URLs only get the form that row keys need. Default: false."""


class _Shared47(TypedDict, total=False):
    """Of import_warc, import_nutch."""

    part_size: int | str
    """Size of the parts of a file that workers share. Unit: bytes. Default: 67108864."""


class _Shared49(TypedDict, total=False):
    """Of fetch, parse."""

    batch: str
    """Id of the batch. Without it, the oldest batch that waits. Default: none."""


class _Shared50(TypedDict, total=False):
    """Of fetch, next."""

    parse_while_fetching: bool
    """Parse pages while others are fetched; false makes parse a phase of its own. Default: false."""


class _Shared56(TypedDict, total=False):
    """Of pages, extract."""

    catalog: str | os.PathLike[str]
    """Catalog of the Iceberg table: its name in the configuration of pyiceberg, or a folder, with a / in it, for the tables and a catalog in SQLite. Default: ./iceberg."""
    output: str | os.PathLike[str]
    """File to write: .jsonl, .csv or .parquet, the first two also with .gz at the end; or a table to append changes to: FILE.duckdb or iceberg:NAMESPACE.TABLE; - is standard output, as JSON lines. FILE.duckdb:TABLE names the table in the file. Default: -."""
    status: (
        Iterable[
            Literal[
                "db_unfetched",
                "db_fetched",
                "db_gone",
                "db_redir_temp",
                "db_redir_perm",
                "db_notmodified",
                "db_duplicate",
                "db_orphan",
                "db_parse_failed",
                "unfetched",
                "fetched",
                "gone",
                "redir_temp",
                "redir_perm",
                "notmodified",
                "duplicate",
                "orphan",
                "parse_failed",
            ]
        ]
        | str
    )
    """Statuses of the pages to write. By default pages that are alive: fetched (or not modified since), and those whose next fetch failed but is tried again. Default: fetched,unfetched."""
    since: str | int | datetime.date
    """Only pages that are new, changed or gone since a snapshot: its number, or a date or time (UTC) such as 2026-11-01T12:30. Column change says which. In a table: since its last run. Default: none."""


class _Shared62(TypedDict, total=False):
    """Of webgraph, linkrank."""

    level: Literal["page", "host", "domain"]
    """The graph: its nodes are pages, hosts or domains. Default: page."""


class _Shared65(TypedDict, total=False):
    """Of index, clean."""

    index: str
    """Name of the index; each has its own writers, and knows what they hold. Default: main."""


class CrawlKeywords(
    _Shared1,
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared5,
    _Shared6,
    _Shared7,
    _Shared8,
    _Shared9,
    _Shared10,
    _Shared11,
    _Shared12,
    _Shared13,
    _Shared14,
    _Shared15,
    _Shared16,
    _Shared17,
    _Shared18,
    _Shared19,
    _Shared20,
    _Shared21,
    _Shared22,
    _Shared23,
    _Shared24,
    _Shared25,
    _Shared26,
    _Shared27,
    _Shared28,
    _Shared29,
    _Shared30,
    _Shared31,
    _Shared32,
    _Shared33,
    _Shared34,
    _Shared35,
    _Shared36,
    _Shared37,
    _Shared38,
    _Shared39,
    _Shared40,
    _Shared42,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam crawl``."""

    warc: str | os.PathLike[str]
    """After each round, write its pages into the archive in this folder, as nutbeam warc does, and what the archive lacks of earlier rounds; empty: do not. --store_wire keeps answers as they came. Default: none."""
    sitemaps: Literal["never", "once", "always"]
    """Add the URLs in the sitemaps of all hosts of the table: never, once before the first round, or always before each round. Default: never."""
    rounds: int
    """Rounds at most; -1: until nothing is due. Default: 3."""
    wait: bool
    """Wait until pages are due. Waiting does not count as a round. .STOP or a signal ends it. Default: false."""
    time_limit: float | str | datetime.timedelta
    """Time after which the whole crawl begins no request; waiting pages stay due. -1: no limit. Unit: s. Default: -1."""


class InjectKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared13,
    _Shared18,
    _Shared28,
    _Shared29,
    _Shared33,
    _Shared35,
    _Shared36,
    _Shared40,
    _Shared42,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam inject``."""


class SitemapKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared6,
    _Shared9,
    _Shared13,
    _Shared14,
    _Shared18,
    _Shared19,
    _Shared24,
    _Shared25,
    _Shared26,
    _Shared27,
    _Shared28,
    _Shared29,
    _Shared33,
    _Shared34,
    _Shared35,
    _Shared36,
    _Shared39,
    _Shared42,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam sitemap``."""

    sitemap_hosts: Iterable[str]
    """Read the sitemaps of these hosts: names of hosts, or a group of the host table: all, seeds, or recorded (those whose robots.txt names sitemaps). The default is recorded, if no sitemaps are given either. Default: none."""


class GenerateKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared6,
    _Shared7,
    _Shared13,
    _Shared14,
    _Shared15,
    _Shared18,
    _Shared27,
    _Shared28,
    _Shared29,
    _Shared33,
    _Shared35,
    _Shared36,
    _Shared38,
    _Shared42,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam generate``."""


class FreegenKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared18,
    _Shared27,
    _Shared35,
    _Shared38,
    _Shared42,
    _Shared44,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam freegen``."""

    num_fetchers: int
    """How many partitions a batch has; hosts are divided among them. 0 is one; where this machine runs several fetch_engines, it is one for each of them, if it gets 10,000 URLs. Default: 1."""


class ImportWarcKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared8,
    _Shared18,
    _Shared23,
    _Shared26,
    _Shared38,
    _Shared42,
    _Shared44,
    _Shared47,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam import_warc``."""

    index: str | os.PathLike[str]
    """Read only the records that an index names, each by its range: a CDXJ or CDX file, or a file of the columnar URL index (.parquet, with warc_filename, warc_record_offset, warc_record_length). Default: none."""


class ImportNutchKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared8,
    _Shared18,
    _Shared32,
    _Shared38,
    _Shared42,
    _Shared44,
    _Shared47,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam import_nutch``."""

    time_zone: str
    """Time zone of the machine that made dumps, such as Europe/Berlin; without it, as their dates say. SequenceFiles need none. Default: none."""
    conf: str | os.PathLike[str]
    """Nutch's folder conf: what nutch-site.xml sets becomes nutbeam.toml in the folder --conf_to, with the files that it names, and what became of each property is shown. Default: none."""
    conf_to: str | os.PathLike[str]
    """Folder of the new nutbeam.toml. Default: .."""


class FetchKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared6,
    _Shared7,
    _Shared8,
    _Shared9,
    _Shared10,
    _Shared11,
    _Shared12,
    _Shared13,
    _Shared14,
    _Shared17,
    _Shared18,
    _Shared19,
    _Shared20,
    _Shared22,
    _Shared23,
    _Shared24,
    _Shared25,
    _Shared26,
    _Shared27,
    _Shared42,
    _Shared49,
    _Shared50,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam fetch``."""


class ParseKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared10,
    _Shared11,
    _Shared13,
    _Shared14,
    _Shared17,
    _Shared18,
    _Shared19,
    _Shared42,
    _Shared49,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam parse``."""

    reparse: bool
    """Parse the bodies of batches again that were parsed before, as today's options say; without --batch, those of all batches. Default: false."""
    all: bool
    """With --reparse: all batches that have bodies, as it takes without --batch. Default: false."""


class UpdatedbKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared12,
    _Shared13,
    _Shared14,
    _Shared18,
    _Shared20,
    _Shared28,
    _Shared29,
    _Shared33,
    _Shared34,
    _Shared35,
    _Shared36,
    _Shared37,
    _Shared42,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam updatedb``."""

    batch: str
    """Ids of the batches to apply, in this order, separated by commas. Without it, the oldest parsed batch is applied. A named batch must have been fetched. If it was not parsed, its pages add no links and keep their previous text, and the batch cannot be parsed any more. Default: none."""


class InvertlinksKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared31,
    _Shared32,
    _Shared33,
    _Shared42,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam invertlinks``."""

    batch: str
    """Id of the batch. Without it, all batches that wait, one after the other; a job that is only submitted to a cluster takes the oldest of them. Default: none."""


class DedupKeywords(
    _Shared2, _Shared3, _Shared4, _Shared30, _Shared42, PipelineKeywords, total=False
):
    """Options of ``nutbeam dedup``."""

    batch: str
    """Compare only the pages of this batch, and of batches that no dedup has compared yet, with all other pages. Without it, compare all pages with each other. Default: none."""


class RoundKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared5,
    _Shared6,
    _Shared7,
    _Shared8,
    _Shared9,
    _Shared10,
    _Shared11,
    _Shared12,
    _Shared13,
    _Shared14,
    _Shared15,
    _Shared16,
    _Shared17,
    _Shared18,
    _Shared19,
    _Shared20,
    _Shared21,
    _Shared22,
    _Shared23,
    _Shared24,
    _Shared25,
    _Shared26,
    _Shared27,
    _Shared28,
    _Shared29,
    _Shared30,
    _Shared31,
    _Shared32,
    _Shared33,
    _Shared34,
    _Shared35,
    _Shared36,
    _Shared37,
    _Shared38,
    _Shared42,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam round``."""


class NextKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared5,
    _Shared6,
    _Shared7,
    _Shared8,
    _Shared9,
    _Shared10,
    _Shared11,
    _Shared12,
    _Shared13,
    _Shared14,
    _Shared15,
    _Shared16,
    _Shared17,
    _Shared18,
    _Shared19,
    _Shared20,
    _Shared22,
    _Shared23,
    _Shared24,
    _Shared25,
    _Shared26,
    _Shared27,
    _Shared28,
    _Shared29,
    _Shared30,
    _Shared31,
    _Shared32,
    _Shared33,
    _Shared34,
    _Shared35,
    _Shared36,
    _Shared37,
    _Shared38,
    _Shared42,
    _Shared50,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam next``."""

    wait_until_done: bool
    """Wait until the phase is done. Without it, a phase whose workers are elsewhere is only submitted. Default: false."""


class PagesKeywords(_Shared2, _Shared42, _Shared56, PipelineKeywords, total=False):
    """Options of ``nutbeam pages``."""

    chunks: int
    """Write chunks of pages, with at most this number of tokens, instead of pages: 16 or more. 0: write pages. Default: 0."""
    chunk_tokenizer: str
    """What counts tokens: words, characters, or the name of a plug-in. Default: words."""
    tokenizer_file: str | os.PathLike[str]
    """File tokenizer.json of a model, on each worker; it counts tokens instead of --chunk_tokenizer, and needs nutbeam[tokenizers]. Default: none."""
    embedding: str
    """Plug-in that makes a vector of each chunk; the vectors are the column embedding. Default: none."""
    markdown_links: bool
    """Whether Markdown has the targets of links, and images; else only the texts of both. Default: true."""
    text_of: Literal["main", "all"]
    """Which text of a page counts: main, its main content, without navigation, comments and the like; or all. A page of which the main content is not known has all. Default: all."""
    columns: Iterable[str]
    """Columns to write, such as url,title,text or url,markdown; the default is all but markdown, blocks, main, structured_data, headers, body, batch_id and key. With --chunks, columns of chunks: by default all. Default: none."""
    new: str | os.PathLike[str]
    """File that records the last run: write only pages that are new or changed since then, or all if the file does not exist. Then the run writes the file. Default: none."""


class ExtractKeywords(
    _Shared2, _Shared10, _Shared11, _Shared42, _Shared56, PipelineKeywords, total=False
):
    """Options of ``nutbeam extract``."""

    strict: bool
    """End with exit code 5 if a rule finds nothing, or much less than in the run before. Default: false."""


class WarcKeywords(_Shared1, _Shared2, _Shared42, PipelineKeywords, total=False):
    """Options of ``nutbeam warc``."""

    batch: Iterable[str]
    """Ids of the batches to write; without it all that have pages. Default: none."""
    expr: str
    """Write only answers for which this expression is true, such as "http_code == 200". Its names are the columns of batch_pages in the data dictionary. Default: none."""


class ReportKeywords(_Shared42, total=False):
    """Options of ``nutbeam report``."""

    output: str
    """File to write: .html; - is standard output. Default: -."""
    snapshot: int
    """Number of the snapshot to show, as in nutbeam history; 0 is the newest. Default: 0."""
    compare: str
    """What to show beside it: the address of another table, or the number of a snapshot of this one. Default: none."""


class WebgraphKeywords(
    _Shared2, _Shared3, _Shared4, _Shared42, _Shared62, PipelineKeywords, total=False
):
    """Options of ``nutbeam webgraph``."""

    ignore_internal_host: bool
    """Leave out links between pages of one host. Default: true."""
    ignore_internal_domain: bool
    """Leave out links between pages of one registered domain. Default: true."""
    limit_page: bool
    """Treat URLs that differ only in the query or in case as one page: count one link from each page to them, and one link from them to each page. Default: true."""
    limit_domain: bool
    """Count one link from a page to each registered domain, and one link from each domain to a page. Default: true."""
    links_from: Literal["auto", "links", "documents"]
    """Where links are read: the link table, or the newest documents of the pages. auto takes the link table if there is one. Default: auto."""
    block_nodes: int
    """Approximate number of nodes per block; the memory of ranking depends on it. Default: 1048576."""


class LinkrankKeywords(
    _Shared2, _Shared3, _Shared4, _Shared42, _Shared62, PipelineKeywords, total=False
):
    """Options of ``nutbeam linkrank``."""

    ranking: Literal["linkrank", "pagerank", "hits", "harmonic"]
    """Method: LinkRank, PageRank, HITS (hubs and authorities) or harmonic centrality. Default: linkrank."""
    rank_rounds: int
    """Most rounds; 0 means 10 for LinkRank and 100 for the others. Default: 0."""
    tolerance: float
    """End after a round that changes no more than this, as a share of all ranks; -1 is the method's default. 0 ends when nothing changes. The default is 1e-6 for PageRank and hits, and 0 for LinkRank and harmonic. If the rounds were too few, a warning says so, for harmonic and for values above 0. Default: -1."""
    initial_score: float
    """LinkRank: the score before the first round. Default: 1."""
    damping_factor: float
    """LinkRank and PageRank: the part of a rank that comes from links. Default: 0.85."""
    formula: Literal["balanced", "nutch"]
    """LinkRank: balanced divides the rank of a page among its links that count, and gives the rank of pages without such links to all pages, so that the mean stays 1; nutch loses it, exactly as Nutch does. Default: balanced."""
    exact_nodes: int
    """harmonic: up to this number of nodes the result is exact; above, nodes are counted by HyperLogLog. Default: 10000."""
    log2_registers: int
    """harmonic: registers of a counter, a byte each, as a power of 2. 6 has an error of 13 % for a node, 10 of 3 %. Default: 6."""


class ScoreupdaterKeywords(_Shared2, _Shared3, _Shared4, _Shared42, PipelineKeywords, total=False):
    """Options of ``nutbeam scoreupdater``."""

    rank: Literal["linkrank", "pagerank", "authority", "hub", "harmonic"]
    """The rank to use, one of those that linkrank computes. Default: linkrank."""
    clear_score: float
    """Score of a URL that is not in the graph. Default: 0."""


class IndexKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared5,
    _Shared28,
    _Shared29,
    _Shared42,
    _Shared65,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam index``."""

    batch: str
    """Index only the pages of this batch. Without it, pages of all batches. Default: none."""
    full: bool
    """Build the index again from the beginning. Without it, only what has changed since the last run is sent. Default: false."""
    retry_refused: bool
    """Send refused documents once more, after you have corrected the cause. Default: false."""


class CleanKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared5,
    _Shared28,
    _Shared29,
    _Shared42,
    _Shared65,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam clean``."""


class UpdatehostdbKeywords(
    _Shared2, _Shared3, _Shared4, _Shared6, _Shared42, PipelineKeywords, total=False
):
    """Options of ``nutbeam updatehostdb``."""

    check: Literal["none", "new", "known", "failed", "all"]
    """Which hosts to look up: none, those that were never looked up (new), those whose last look-up succeeded (known), those whose last look-up failed (failed), or all of these. Default: none."""
    recheck_interval: float | str | datetime.timedelta
    """Look a host up again after this time; after several failures in a row, after this time times their number. Unit: s. Default: 86400."""
    failed_hosts_threshold: int
    """Give a host up when its look-up has failed more often than this in a row; -1 gives up none. A host of a seed, or with settings, is never given up. Default: 3."""
    resolvers_threads: int
    """How many hosts a worker looks up at a time. Default: 25."""
    lookup_timeout: float | str | datetime.timedelta
    """Longest time of a look-up; then it has failed. Unit: s. Default: 10."""
    lookup_limit: float | str | datetime.timedelta
    """Stop looking up after this time in each part of the table; the other hosts are looked up the next time. Unit: s. Default: 600."""


class HostinjectKeywords(_Shared2, _Shared3, _Shared4, _Shared42, PipelineKeywords, total=False):
    """Options of ``nutbeam hostinject``."""


class FilterdbKeywords(
    _Shared2,
    _Shared3,
    _Shared4,
    _Shared13,
    _Shared14,
    _Shared18,
    _Shared28,
    _Shared42,
    PipelineKeywords,
    total=False,
):
    """Options of ``nutbeam filterdb``."""

    drop_gone: int | str | datetime.timedelta
    """Drop URLs that have been gone for this long; -1 drops none. Rows from before 25 November 2026 do not have the time when the URL went: for them the time since the last fetch counts. Unit: s. Default: -1."""
    drop_orphans: int | str | datetime.timedelta
    """Drop orphans to which no link was found for this long, and for --mark_orphan_after at least, whether or not their status is db_orphan already; -1 drops none. Unit: s. Default: -1."""
    dry_run: bool
    """Change nothing: count what would be done, and show examples. Default: false."""


class CompactKeywords(_Shared2, _Shared3, _Shared4, _Shared42, PipelineKeywords, total=False):
    """Options of ``nutbeam compact``."""

    snapshot_retention: int | str | datetime.timedelta
    """How long a snapshot can be read after it was replaced; then its files are deleted. It must be longer than any export takes. Unit: s. Default: 604800."""
    full: bool
    """Rewrite all tablets, and merge all shards of indexes. Without it, compact rewrites only tablets that have runs, are very small or too large, and merges only many small shards. Default: false."""
    keep_inlinks: int
    """Number of inlinks of a page that a rewritten tablet of the link table keeps: the best, as readers choose them; 0 keeps all. Ranks use all links that are kept. Default: 0."""
    keep_batches: int
    """How many of the newest batches keep all their files. A file of an older batch is deleted after the retention if all its pages were fetched again, and written again without these if at least half of them were. Default: 1."""
    keep_bodies: float | str | datetime.timedelta
    """How long the body of a page is kept after its fetch, but not shorter than the retention. Then compact deletes bodies of older batches; answers, titles, texts and links stay. -1: as long as the page. Unit: s. Default: -1."""


class CopyKeywords(_Shared2, _Shared3, _Shared4, _Shared42, PipelineKeywords, total=False):
    """Options of ``nutbeam copy``."""


class MergelinkdbKeywords(
    _Shared2, _Shared3, _Shared4, _Shared18, _Shared42, PipelineKeywords, total=False
):
    """Options of ``nutbeam mergelinkdb``."""

    normalize_links: bool
    """Normalize the URLs of links. Default: false."""
    filter_links: bool
    """Leave out links from and to URLs that the filters refuse. Default: false."""


class MergedbKeywords(
    _Shared2, _Shared3, _Shared4, _Shared18, _Shared42, _Shared44, PipelineKeywords, total=False
):
    """Options of ``nutbeam mergedb``."""


class RollbackKeywords(_Shared3, _Shared42, total=False):
    """Options of ``nutbeam rollback``."""

    to: int
    """Number of the snapshot to go back to; see history. Default: 0."""
    past_purge: bool
    """Go back to a snapshot before a purge, too: purged rows come back, but stay in the blocklist. Default: false."""


class FsckKeywords(_Shared33, _Shared42, total=False):
    """Options of ``nutbeam fsck``."""

    quick: bool
    """Check only the size and the end of each data file; do not read the rest, nor rows in Bigtable. Default: false."""
    repair: bool
    """Make a new snapshot: rebuild lists from their files, or return to the newest snapshot with intact lists. Damaged data files stay: use rollback, or --drop. Nothing is deleted. In Bigtable, finish an interrupted commit. Default: false."""
    drop: bool
    """With --repair: leave out damaged data files; pages whose file is lost are due again. In Bigtable, return damaged rows to an intact version, or delete them. Default: false."""
    readers: int
    """How many files, or ranges of rows, to read at a time. Default: 4."""


class PurgeKeywords(_Shared2, _Shared3, _Shared4, _Shared42, PipelineKeywords, total=False):
    """Options of ``nutbeam purge``."""

    url: Iterable[str]
    """Purge this URL. Default: none."""
    host: Iterable[str]
    """Purge all URLs of this host. Default: none."""
    domain: Iterable[str]
    """Purge all URLs of this domain and the hosts below it. Default: none."""
    unblock: bool
    """Purge nothing: remove the names from the blocklist. Default: false."""
    now: bool
    """Delete at once the files that only older snapshots need: a rollback is impossible then. Without it, they are deleted when these snapshots expire. Default: false."""
    wait_seconds: int
    """How long to wait for running jobs that would fail if the purge committed before them. After that they fail, and a crawl runs them again. Default: 600."""


class ExplainKeywords(
    _Shared6,
    _Shared7,
    _Shared12,
    _Shared13,
    _Shared14,
    _Shared15,
    _Shared18,
    _Shared19,
    _Shared24,
    _Shared27,
    _Shared28,
    _Shared29,
    _Shared33,
    _Shared34,
    _Shared35,
    _Shared36,
    _Shared37,
    _Shared38,
    _Shared42,
    total=False,
):
    """Options of ``nutbeam explain``."""

    found_as: Literal["inject", "outlink", "fetcher"]
    """Where the URLs come from: seeds, links, or redirects. Default: outlink."""
    source: str
    """URL of the page that leads to them, if any. Default: none."""
    ask_robots: bool
    """Ask each site for its robots.txt now, with one request. Default: false."""


class ParsecheckerKeywords(
    _Shared6,
    _Shared11,
    _Shared13,
    _Shared14,
    _Shared17,
    _Shared18,
    _Shared19,
    _Shared24,
    _Shared25,
    _Shared26,
    _Shared27,
    _Shared42,
    total=False,
):
    """Options of ``nutbeam parsechecker``."""

    all_normalizers: bool
    """First normalize the URLs with all normalizers, not only with basic. Default: false."""
    follow_redirects: bool
    """Follow redirects, 3 at most. Default: false."""
    dump_text: bool
    """Show the text, too. Default: false."""
    force_as: str
    """Content type to parse as, instead of the server's. Default: none."""
