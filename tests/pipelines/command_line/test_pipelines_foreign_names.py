"""What Nutch's users type: each command and flag of Nutch gets the right answer, or none."""

import inspect
import re
from collections import defaultdict

import pytest

from nutbeam.pipelines.base.suggestions import similar
from nutbeam.pipelines.command_line import foreign_names
from nutbeam.pipelines.command_line.arguments import command_options, split
from nutbeam.pipelines.command_line.cli import beam_parser, load, main, option_names
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.web.base.errors import UsageError

# All commands of Nutch 1.0 to 1.22 and 2.4, those of bin/nutch and of the crawl script.
SAME = ("inject", "generate", "fetch", "parse", "updatedb", "readdb", "dedup", "crawl",
        "domainstats", "protocolstats", "crawlcomplete",
        "parsechecker", "filterchecker", "normalizerchecker", "robotsparser", "plugin",
        "webgraph", "linkrank", "scoreupdater", "nodedumper",
        "invertlinks", "mergelinkdb", "readlinkdb",
        "index", "clean", "solrindex", "solrclean", "solrdedup",
        "indexchecker", "sitemap", "updatehostdb", "readhostdb", "hostinject",
        "freegen", "mergedb", "readseg", "mergesegs", "dump", "commoncrawldump", "warc")  # fmt: skip
OTHERS = (
    "junit",
    "nutchserver", "startserver", "webapp", "loops", "linkdumper", "segmerger", "parsesegment",
)  # fmt: skip
# Nutch's flags of each command, with what the answer must contain.
FLAGS = {
    "inject": {
        "-overwrite": "--overwrite_known", "-update": "--update_known", "-noFilter": "--no_filter",
        "-noNormalize": "--no_normalize", "-filterNormalizeAll": "--filter_normalize_all",
        "-crawlId": "TABLE",
    },
    "generate": {
        "-topN": "--top_n", "-numFetchers": "--num_fetchers", "-adddays": "--add_days",
        "-noFilter": "not needed", "-noNorm": "not needed", "-force": "not needed",
        "-maxNumSegments": "run generate again", "-expr": "--expr", "-hostdb": "not needed",
        "-crawlId": "TABLE", "-batchId": "not there", "-sitemap": "nutbeam sitemap",
    },
    "fetch": {
        "-threads": "--threads", "-noParsing": "--parse_while_fetching", "-all": "--batch",
        "-resume": "same command", "-numTasks": "--num_fetchers of generate",
        "-stmDetect": "nutbeam sitemap", "-sitemap": "nutbeam sitemap", "-crawlId": "TABLE",
    },
    "parse": {
        "-noFilter": "--no_filter", "-noNormalize": "--no_normalize", "-all": "--batch",
        "-resume": "same command", "-force": "not needed",
        "-sitemap": "nutbeam sitemap", "-crawlId": "TABLE",
    },
    "sitemap": {
        "-hostdb": "--sitemap_hosts", "-sitemapUrls": "arguments, after TABLE", "-noStrict": "--sitemap_strict_parsing",
        "-noFilter": "--sitemap_url_filter", "-noNormalize": "--sitemap_url_normalize", "-threads": "--threads",
    },
    "updatedb": {
        "-dir": "--batch", "-force": "not needed", "-normalize": "nutbeam filterdb",
        "-filter": "nutbeam filterdb", "-noAdditions": "--additions_allowed false", "-all": "--batch",
        "-crawlId": "TABLE",
    },
    "readdb": {
        "-stats": "--stats", "-sort": "--sort", "-dump": "--dump", "-format": "--dump",
        "-regex": "--regex", "-retry": "--retry", "-status": "--status", "-expr": "--expr",
        "-sample": "--sample", "-url": "readdb TABLE URL", "-topN": "--top", "-listen": "no server",
        "-keepClientCnxOpen": "no server", "-crawlId": "TABLE", "-content": "nutbeam pages",
        "-headers": "nutbeam pages", "-links": "nutbeam pages", "-text": "nutbeam pages",
    },
    "warc": {
        "-dir": "--batch", "-onlySuccessfulResponses": "--only_successful_responses",
        "-includeParseData": "--include_parse_data", "-includeParseText": "--include_parse_text",
    },
    "dedup": {"-group": "--dedup_group", "-compareOrder": "--compare_order"},
    "parsechecker": {
        "-normalize": "--all_normalizers", "-followRedirects": "--follow_redirects",
        "-checkRobotsTxt": "always obeyed", "-dumpText": "--dump_text", "-forceAs": "--force_as",
        "-md": "not there yet", "-stdin": "standard input", "-listen": "no server",
    },
    "filterchecker": {
        "-filterName": "--filter_name", "-stdin": "standard input", "-listen": "no server",
    },
    "normalizerchecker": {
        "-normalizer": "--normalizer", "-scope": "--url_scope", "-stdin": "standard input",
        "-listen": "no server",
    },
    "crawl": {
        "-i": "--index main", "-s": "arguments, after TABLE",
        "-sm": "nutbeam sitemap", "-w": "--wait", "--hostdbupdate": "not needed",
        "--hostdbgenerate": "not needed", "--sitemaps-from-hostdb": "--sitemaps",
        "--num-slaves": "--num_fetchers", "--num-tasks": "not needed",
        "--size-fetchlist": "--top_n", "--time-limit-fetch": "--fetch_time_limit",
        "--num-threads": "--threads", "-topN": "--top_n", "-threads": "--threads",
        "-depth": "--rounds", "-dir": "TABLE", "-solr": "--index main",
        "-noParsing": "--parse_while_fetching false",
    },
}  # fmt: skip


def answer(command, *words):
    """Returns the error about options that a command does not have; None if it has them."""
    module = load(command)
    beam = beam_parser if COMMANDS[command].beam else None
    try:
        split(["table", *words], command_options(module), module.ARGUMENTS, beam, command)
    except UsageError as error:
        return str(error)
    return None


def test_each_command_of_nutch_is_there_or_has_its_answer(capsys):
    hints = foreign_names._read_tables()["commands"]
    assert {name for names in hints for name in names.split()} == set(OTHERS)
    assert not set(OTHERS) & set(COMMANDS)
    for name in (*OTHERS, "parseSegment"):
        assert main([name, "crawl/segments/1"]) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"nutbeam: unknown command '{name}', a command of Nutch; ")
        assert line.count("\n") == 1
        assert "did you mean" not in line
    for name in SAME:
        assert name in COMMANDS


# Flags that are taken as they are, with the option that they are.
TAKEN = {
    "parse": {"-reparse": "reparse"},
    "freegen": {
        "-filter": "filter_urls", "-normalize": "normalize_urls", "-numFetchers": "num_fetchers",
    },
    "mergedb": {"-filter": "filter_urls", "-normalize": "normalize_urls"},
    "mergelinkdb": {"-filter": "filter_links", "-normalize": "normalize_links"},
    "readseg": {
        "-dump": "dump_batch", "-list": "list_batches", "-get": "get_record",
        "-dir": "table_of_batches", "-nocontent": "no_content", "-nofetch": "no_fetch",
        "-nogenerate": "no_generate", "-noparse": "no_parse", "-noparsedata": "no_parse_data",
        "-noparsetext": "no_parse_text", "-recode": "recode",
    },
    "mergesegs": {
        "-dir": "all_of", "-filter": "filter_urls", "-normalize": "normalize_urls", "-slice": "slice",
    },
    "dump": {
        "-outputDir": "output_dir", "-segment": "from_batches", "-mimetype": "mimetypes",
        "-mimeStats": "mime_stats", "-flatdir": "flat_dir", "-reverseUrlDirs": "reverse_url_dirs",
    },
    "commoncrawldump": {
        "-outputDir": "output_dir", "-segment": "from_batches", "-mimetype": "mimetypes",
        "-gzip": "gzip", "-keyPrefix": "key_prefix", "-SimpleDateFormat": "simple_date_format",
        "-epochFilename": "epoch_filename", "-jsonArray": "json_array", "-reverseKey": "reverse_key",
        "-extension": "extension", "-linkdb": "inlinks_from",
    },
}  # fmt: skip


@pytest.mark.parametrize("command", TAKEN)
def test_flags_of_commands_with_nutchs_arguments_are_taken(command):
    module = load(command)
    options, beam = command_options(module), beam_parser if COMMANDS[command].beam else None
    for flag, name in TAKEN[command].items():
        value = [] if options[name].item is bool else ["7"]
        typed = split([flag, *value, "rest"], options, module.ARGUMENTS, beam, command)
        # A list goes on up to the next flag, unless an argument must follow.
        goes_on = options[name].type is tuple and command != "mergesegs"
        taken = [*value, "rest"] if goes_on else value or ["true"]
        assert typed.values == {name: [",".join(taken)]}
    assert set(foreign_names.TYPED_AS_IN_NUTCH) == set(TAKEN)


def typed_in(command, *words):
    module = load(command)
    return split(words, command_options(module), module.ARGUMENTS, beam_parser, command)


@pytest.mark.parametrize(
    ("command", "words", "values"),
    [
        ("mergesegs", ["out", "-dir", "a", "-dir", "b"], {"all_of": ["a", "b"]}),
        ("readseg", ["-list", "-dir", "a", "-dir", "b"], {"list_batches": ["true"], "table_of_batches": ["a", "b"]}),
        ("dump", ["-segment", "a", "-mimetype", "b/c", "-segment", "d"], {"from_batches": ["a", "d"], "mimetypes": ["b/c"]}),
        ("mergesegs", ["-filter", "-filter", "out"], {"filter_urls": ["true", "true"]}),
        # The word after a switch is an argument, whatever it is.
        ("mergedb", ["-normalize", "1", "on"], {"normalize_urls": ["true"]}),
        ("mergedb", ["-normalize=false", "on"], {"normalize_urls": ["false"]}),
    ],
)  # fmt: skip
def test_repeated_flags_of_nutch_count_each_time(command, words, values):
    assert typed_in(command, *words).values == values


@pytest.mark.parametrize(
    ("command", "words", "error"),
    [
        ("mergesegs", ["-slice", "5", "-slice", "6"], "-slice is there twice, with '5' and '6': give one"),
        ("mergesegs", ["-slice", "5", "--slice", "6"], "--slice is there twice, with '5' and '6': give one"),
        ("mergesegs", ["--slice", "5", "-slice", "6"], "-slice is there twice, with '5' and '6': give one"),
        ("mergesegs", ["out", "--dir", "a"], "unknown option '--dir'; type -dir, as in Nutch, or --all_of"),
        ("freegen", ["--filter", "a"], "unknown option '--filter'; type -filter, as in Nutch, or --filter_urls"),
        ("readseg", ["--noContent"], "unknown option '--noContent'; type -nocontent, as in Nutch, or --no_content"),
        ("dump", ["-outputDir", "a", "--output_dir", "a", "-outputDir", "b"], "-outputDir is there twice, with 'a' and 'b': give one"),
        ("mergedb", ["-filter", "-filter=no"], "-filter is there twice, with 'true' and 'no': give one"),
        ("dump", ["-outputDir", "-segment", "a"], "-outputDir needs a value, got '-segment'"),
        ("mergesegs", ["out", "-dir"], "-dir needs a value, got nothing"),
    ],
)  # fmt: skip
def test_flags_of_nutch_with_no_value_or_two_or_two_dashes_are_refused(command, words, error):
    with pytest.raises(UsageError) as refused:
        typed_in(command, *words)
    assert str(refused.value) == error


def test_commands_and_options_that_answers_name_exist():
    tables = foreign_names._read_tables()
    flags = [text for answers in tables["flags"].values() for text in answers.values()]
    for text in (*tables["commands"].values(), *flags):
        assert set(re.findall(r"nutbeam ([a-z]+) (?!no|is)", f"{text} ")) <= {*COMMANDS, "runs"}
        options = {name for command in COMMANDS for name in option_names(command)}
        known = {*options, "help_all", "direct_num_workers"}
        assert set(re.findall(r"--(\w+)", text)) <= known


@pytest.mark.parametrize("command", FLAGS)
def test_each_flag_of_nutch_has_its_answer(command):
    for flag, expected in FLAGS[command].items():
        said = answer(command, flag, "value")
        assert said.startswith(f"unknown option '{flag}'; "), said
        assert expected in said, (flag, said)
        # An answer with an option names one that the command has.
        for name in re.findall(r"is --(\w+)$|did you mean '--(\w+)'", said):
            assert set(filter(None, name)) <= option_names(command), said


def test_long_options_of_the_crawl_script_that_are_the_same_pass():
    assert answer("crawl", "--num-fetchers", "2", "--dedup-group", "host") is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-D", "http.agent.name=bot"], "Nutch's http.agent.name is --agent_name"),
        (["-Dfetcher.server.delay=1"], "Nutch's fetcher.server.delay is --server_delay"),
        (["-D", "generate.max.count=5"], "no option of fetch is Nutch's generate.max.count"),
    ],
)
def test_properties_of_nutch(words, expected):
    assert answer("fetch", *words) == f"unknown option '{words[0].partition('=')[0]}'; {expected}"


# Typing errors and half names: the only good guesses, in order; none where any would be wrong.
TYPED = {
    "crawl": {
        "--round": ["--rounds"], "--agent": ["--agent_name", "--agent_url"], "--topn": ["--top_n"],
        "--exlude": ["--exclude"], "--includes": ["--include"], "--delay": ["--server_delay"],
        "--max_depth": [], "--user_agent": [], "--frobnicate": [], "-v": [], "-q": [],
        "--thread": ["--threads"], "--robots": ["--robots_agents", "--robots_allowlist"],
        "--recursive": [],
    },
    "readdb": {"--stat": ["--stats"], "--tops": ["--top"], "--json": [], "--output_file": []},
    "simweb": {"--prot": ["--port"], "--host": ["--hosts"], "--sedd": ["--seed"]},
}  # fmt: skip


@pytest.mark.parametrize("command", TYPED)
def test_typing_errors_get_a_good_guess_or_none(command):
    known = [f"--{name}" for name in option_names(command)]
    for flag, expected in TYPED[command].items():
        found = similar(flag, known)
        assert (set(expected) <= set(found)) if expected else found == [], (flag, found)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("fecth", ["fetch"]), ("geneate", ["generate"]), ("crawler", ["crawl"]), ("page", ["pages"]),
        ("update", ["updatedb", "updatehostdb"]), ("dedupe", ["dedup"]), ("robots", ["robotsparser"]),
        ("stats", []), ("query", []), ("delete", []), ("links", []), ("list", []), ("x", []),
        *((name, []) for name in OTHERS if name != "parsesegment"),
    ],
)  # fmt: skip
def test_typing_errors_of_commands(typed, expected):
    assert similar(typed, COMMANDS) == expected


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_flag_of_a_command_is_one_property(command):
    """Two declarations of one name would share a field of the command's options."""
    try:
        options = load(command).Options
    except ModuleNotFoundError:
        pytest.skip("not installed")
    declared = defaultdict(set)
    for cls in options.__mro__:
        for name in inspect.get_annotations(cls):
            field = getattr(cls, "__dataclass_fields__", {}).get(name)
            if field is not None and "option" in field.metadata:
                declared[name].add(field.metadata["option"].get("nutch"))
    assert {name: found for name, found in declared.items() if len(found) > 1} == {}
