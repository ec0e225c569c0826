"""Answers for people who type options of other crawlers: Scrapy, wget, curl, HTTrack.

Names that differ only in case, dashes and underscores are one name.
"""

import re
from collections.abc import Collection, Mapping

from .option_names import listed_options

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
