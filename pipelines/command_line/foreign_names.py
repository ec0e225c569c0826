"""Answers for people who type names of other programs: of Nutch, Scrapy, wget, curl, HTTrack.

Options name their counterparts in Nutch themselves (``option(..., nutch=...)``). The tables of
Nutch's commands, flags and properties have only the names without an option or a command of the same
meaning. Names of other crawlers that differ only in case, dashes and underscores are one name.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from ...web.base.options import Option
from .config import listed_options

_SITEMAP = "not needed: nutbeam sitemap and crawl --sitemaps read sitemaps"
_SERVER = "there is no server: schedulers run the commands, as in docs/guides/airflow.md"

NUTCH_COMMANDS: Mapping[str, str] = {
    "segmerger": "it is nutbeam mergesegs",
    "parsesegment": "it is nutbeam parse",
    "loops": "not needed: nutbeam webgraph leaves out links within a site and repeated links",
    "linkdumper": "nutbeam nodedumper shows ranks, nutbeam export writes nodes and ranks",
    "showproperties": "nutbeam COMMAND --help_all shows all options, with Nutch's properties",
    **dict.fromkeys(("plugin", "junit"), "nutbeam runs no Java class"),
    **dict.fromkeys(("nutchserver", "startserver", "webapp"), _SERVER),
}

# Commands that take Nutch's flags as they are: they do the same, and have the same arguments.
TYPED_AS_IN_NUTCH = ("readseg", "freegen", "mergedb", "parse", "dump",
                     "mergesegs", "commoncrawldump")  # fmt: skip

_NO_LOCK = "not needed: there is no lock"
_NEXT_BATCH = "not needed: a job takes the batch that is next in line, or that of --batch"
_CHECKED = "not needed: URLs are filtered and normalized when they are found"
_FILTERDB = f"{_CHECKED}; nutbeam filterdb applies rules that have changed to the URLs of the table"
_NO_SERVER = "there is no server: give URLs as arguments or on standard input"
_HOSTS = "not needed: hosts are part of the table"
_PARTS = "not there: nutbeam pages writes texts and links"
# By option of nutbeam: the names that it has elsewhere, without dashes and underscores.
_NAMES: Mapping[str, str] = {
    "top_n": "maxpages maxpage maxurls maxrequests maxitems pagelimit urllimit limit pages pagecount "
    "closespiderpagecount closespideritemcount numpages numurls",
    "depth": "maxdepth depthlimit level maxlevel crawldepth -l",
    "rounds": "iterations numrounds maxrounds cycles",
    "time_limit": "maxtime maxduration duration closespidertimeout crawltimeout",
    "threads": "numthreads maxthreads concurrency maxconcurrency concurrentrequests parallel workers "
    "connections maxconnections jobs -j",
    "threads_per_host": "concurrentrequestsperdomain connectionsperhost threadsperdomain",
    "threads_per_address": "concurrentrequestsperip",
    "server_delay": "delay downloaddelay waittime randomwait sleep crawlinterval politeness "
    "requestdelay rate ratelimit limitrate maxrate",
    "timeout": "downloadtimeout connecttimeout readtimeout requesttimeout dnstimeout",
    "retry_max": "retries tries maxretries retrytimes retry -t",
    "redirect_max": "maxredirect maxredirects maxredirs redirects redirectmaxtimes",
    "http_cookies": "cookies cookiesenabled",
    "http_header": "header headers httpheaders defaultrequestheaders loadcookies cookie",
    "http_credentials": "user password httpuser httppassword httppasswd auth login",
    "http_proxy": "proxy proxyurl",
    "insecure_host": "insecure nocheckcertificate ignorecertificate noverify -k",
    "content_limit": "maxsize maxfilesize downloadmaxsize maxbodysize sizelimit",
    "robots_allowlist": "robots norobots ignorerobots robotstxtobey obeyrobots ignorerobotstxt",
    "agent_name": "useragent agent -U",
    "include": "allow acceptregex includeregex includedirectories noparent -np",
    "exclude": "reject deny rejectregex excluderegex excludedirectories",
    "scope": "domains alloweddomains samedomain samehost spanhosts excludedomains external",
    "max_per_host": "perhost pagesperhost maxpagesperhost maxurlsperhost maxpagesperdomain",
    "log_level": "loglevel verbose debug -v",
    "progress": "quiet silent noprogress -q",
}
_NOTES = {
    "top_n": "the most URLs of a round",
    "max_per_host": "the most URLs of a host in the table",
    "robots_allowlist": "hosts whose robots.txt is not obeyed",
    "insecure_host": "a host whose certificate is not checked",
    "include": "a regular expression for links",
    "exclude": "a regular expression for URLs",
    "retry_max": "failures in a row",
    "http_credentials": "a file",
    "server_delay": "the time between requests to a host",
    "agent_name": "with --agent_url or --agent_email",
    "scope": "which is domain, host or any",
    "log_level": "such as info",
    "progress": "which may be false",
    "http_header": "a line NAME: VALUE",
}
# Options that only a command before has.
_OWNERS = {
    "top_n": "generate",
    "rounds": "crawl",
    "time_limit": "crawl",
    "max_per_host": "updatedb",
}
_BY_NAME = {name: option for option, names in _NAMES.items() for name in names.split()}
_SEEDS = "seeds are arguments, after TABLE"
_PAGES = "nutbeam pages writes texts and links of a table, nutbeam export the bodies"
# Names without an option of the same meaning, for commands that send requests.
_ANSWERS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "url",
            "urls",
            "seed",
            "seedfile",
            "seedurl",
            "starturl",
            "starturls",
            "inputfile",
            "input",
        ),
        _SEEDS,
    ),
    **dict.fromkeys(("output", "outputdocument", "outputfile", "outputdir", "-o", "-O"), _PAGES),
    **dict.fromkeys(
        ("resume", "continue", "force"),
        "not needed: the same command again continues what was killed",
    ),
    **dict.fromkeys(
        ("recursive", "mirror", "-r", "-m"),
        "not needed: a crawl follows links, as far as --depth, --rounds and --scope allow",
    ),
    **dict.fromkeys(
        ("pagerequisites", "-p"), "not there: images and styles are neither requested nor needed"
    ),
}


def _each(command: str, flags: Iterable[str], hint: str) -> dict[tuple[str, str], str]:
    return {(command, flag): hint for flag in flags}


# By command and flag in lower case, with underscores in names of several words; the command is empty where the flag means the same in all.
_FLAGS: Mapping[tuple[str, str], str] = {
    ("", "-force"): _NO_LOCK,
    # An option of Beam, which has no effect on requests.
    ("", "--user_agent"): "see --agent_name, with --agent_url or --agent_email",
    ("", "-crawlid"): "not needed: the argument TABLE names the table",
    **_each("", ("-all", "-dir"), _NEXT_BATCH),
    ("", "-resume"): "not needed: the same command again continues what was killed",
    **_each("", ("-sitemap", "-stmdetect"), _SITEMAP),
    ("", "-stdin"): "not needed: without URLs, the lines of standard input are read",
    **_each("", ("-listen", "-keepclientcnxopen"), _NO_SERVER),
    ("", "-hostdb"): _HOSTS,
    **_each("generate", ("-nofilter", "-nonorm"), f"{_CHECKED}; --filter and --normalize do it again"),
    ("generate", "-maxnumsegments"): "run generate again: each run makes one batch",
    ("generate", "-batchid"): "not there: generate makes the id of a batch",
    ("fetch", "-noparsing"): "not needed: fetch parses only with --parse_while_fetching",
    ("fetch", "-numtasks"): "it is --num_fetchers of generate",
    **_each("updatedb", ("-normalize", "-filter"), _FILTERDB),
    ("updatedb", "-noadditions"): "it is --additions_allowed false",
    ("crawlcomplete", "-inputdirs"): "the argument TABLE names the table",
    **_each("crawlcomplete", ("-outputdir", "-numreducers"), "the result is standard output"),
    ("readdb", "-url"): "the URL stands after TABLE: nutbeam readdb TABLE URL",
    **_each("readdb", ("-content", "-headers", "-links", "-text"), _PARTS),
    ("parsechecker", "-checkrobotstxt"): "not needed: robots.txt is always obeyed",
    ("parsechecker", "-md"): "not there yet",
    **_each("commoncrawldump", ("-warc", "-warcsize"), "it writes CBOR only"),
    ("warc", "-dir"): "without --batch all batches are written",
    ("crawl", "-depth"): "Nutch's -depth is --rounds; --depth limits the distance from the seeds",
    ("crawl", "-dir"): "the argument TABLE names the folder",
    ("crawl", "-s"): "seeds are arguments, after TABLE",
    ("crawl", "-sm"): "run nutbeam sitemap TABLE FILES before",
    ("sitemap", "-sitemapurls"): "sitemaps are arguments, after TABLE",
    **_each("crawl", ("-i", "-solr"), "it is --index main, with --writer"),
    **_each("index", ("-linkdb", "-params"), "not needed: the table has its links; --writer_parameters"),
    **_each("index", ("-deletegone",), "it is --delete_gone, which is on"),
    **_each("index", ("-nocommit", "-addbinarycontent", "-base64"), "not there"),
    **_each("index", ("-filter", "-normalize"), _FILTERDB),
    ("clean", "-nocommit"): "not there",
    ("indexchecker", "-doindex"): "it is --do_index",
    ("indexchecker", "-md"): "not there yet",
    ("updatehostdb", "-urllimit"): "not needed: the URLs of a host are counted in bounded memory",
    ("updatehostdb", "-tophosts"): "not needed: all hosts of the table are there",
    **_each("crawl", ("--hostdbupdate", "--hostdbgenerate"), _HOSTS),
    ("crawl", "--num_tasks"): "not needed: Beam divides the work; see --direct_num_workers",
    ("crawl", "-noparsing"): "it is --parse_while_fetching false",
}  # fmt: skip

# Properties that Nutch reads in several commands, and one command of nutbeam.
_ELSEWHERE: Mapping[str, str] = {
    "db.update.purge.404": "--drop_gone of filterdb",
    "db.update.purge.orphans": "--drop_orphans of filterdb",
    **dict.fromkeys(("hostdb.url.limit", "hostdb.urllimit"), "not needed: all URLs are counted"),
    **dict.fromkeys(
        ("hostdb.numeric.fields", "hostdb.string.fields"),
        "not there: nutbeam sql counts the values of any column by host",
    ),
    "db.update.max.inlinks": "not needed: updatedb adds up all links, file by file; --max_inlinks limits the "
    "link table",
    "db.score.count.filtered": "not there: a page divides its score among the links that are kept",
}


def flag_hint(command: str, words: list[str], options: Iterable[Option]) -> str | None:
    """Returns what to use in place of a flag of Nutch; None if Nutch has no such flag.

    Args:
        command: The command.
        words: The flag, and the words after it.
        options: The options of the command.

    >>> top_n = Option("top_n", int, 0, "", nutch="generate -topN, crawl --size-fetchlist")
    >>> flag_hint("generate", ["-topN", "5"], [top_n])
    "Nutch's -topN is --top_n"
    >>> flag_hint("fetch", ["-D", "http.agent.name=bot"], [])
    "no option of fetch is Nutch's http.agent.name"
    """
    flag = words[0].partition("=")[0]
    if words[0].startswith("-D"):
        return _property_hint(command, (words[0][2:] or "".join(words[1:2])), options)
    for option in options:
        for name in _nutch_names(option):
            if name.rpartition(" ")[2].lower() == flag.lower() and " " in name:
                return f"Nutch's {flag} is {option.flag}"
    name = flag.lower()
    if name.startswith("--"):
        name = f"--{name[2:].replace('-', '_')}"
    return _FLAGS.get((command, name)) or _FLAGS.get(("", name))


def nutch_flags(command: str, options: Iterable[Option]) -> dict[str, str]:
    """Returns the names of options by the flags that they have in Nutch, if those are accepted, too.

    >>> option = Option("no_content", bool, False, "", nutch="readseg -nocontent")
    >>> nutch_flags("readseg", [option]), nutch_flags("readdb", [option])
    ({'-nocontent': 'no_content'}, {})
    """
    if command not in TYPED_AS_IN_NUTCH:
        return {}
    pairs = (
        (name.partition(" "), option.name) for option in options for name in _nutch_names(option)
    )
    return {flag: name for (owner, _, flag), name in pairs if owner == command and flag}


def _property_hint(command: str, text: str, options: Iterable[Option]) -> str | None:
    name = text.partition("=")[0]
    if not name:
        return None
    for option in options:
        if name in _nutch_names(option):
            return f"Nutch's {name} is {option.flag}"
    if name in _ELSEWHERE:
        return f"Nutch's {name} is {_ELSEWHERE[name]}"
    return f"no option of {command} is Nutch's {name}"


def _nutch_names(option: Option) -> Iterator[str]:
    """Yields an option's names in Nutch: properties, and flags after the name of a command."""
    yield from (option.nutch or "").split(", ")


def meant_option(flag: str) -> str | None:
    """Returns the option of nutbeam that a flag of another crawler means, or None.

    >>> meant_option("--DOWNLOAD_DELAY"), meant_option("-l"), meant_option("--pdf")
    ('server_delay', 'depth', None)
    """
    return _BY_NAME.get(_fold_flag(flag))


def answer_for(command: str, flag: str, options: Collection[str]) -> str:
    """Returns what to use in place of a flag of another crawler; empty if it is unknown.

    Args:
        command: The command.
        flag: The flag.
        options: Names of the command's options.

    >>> answer_for("crawl", "--max-redirect", ["redirect_max"])
    'it is --redirect_max'
    >>> answer_for("fetch", "--max_pages", ["threads"])
    'it is --top_n of generate, the most URLs of a round'
    """
    name = meant_option(flag)
    if name is None:
        crawls = command == "inject" or "server_delay" in options
        return _ANSWERS.get(_fold_flag(flag), "") if crawls else ""
    note = f", {_NOTES[name]}" if name in _NOTES else ""
    if name in options:
        verb = "see" if note and name != "top_n" else "it is"
        return f"{verb} --{name}{note}"
    owner = _OWNERS.get(name)
    is_phase = command in listed_options().get("batch", ())
    return f"it is --{name} of {owner}{note}" if owner and is_phase else ""


def _fold_flag(flag: str) -> str:
    """Returns a name in one form; that of a short flag keeps its dash."""
    if not flag.startswith("--") and len(flag) <= 3:
        return flag
    return re.sub("[-_]", "", flag).lower()
