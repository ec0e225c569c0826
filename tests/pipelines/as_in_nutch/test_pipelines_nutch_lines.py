"""Lines of Nutch and what they are in nutbeam: paths, flags, properties, names; and what is refused."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from nutbeam.io.storage.files import write_bytes
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.pipelines.as_in_nutch.nutch_grammar import (
    answers,
    command_sections,
    declared_flags,
    find_command,
    may_be_nutch_line,
    own_command,
    read_sections,
)
from nutbeam.pipelines.as_in_nutch.nutch_lines import translate_line
from nutbeam.pipelines.as_in_nutch.nutch_pages import command_entries
from nutbeam.pipelines.as_in_nutch.nutch_words import OwnCommand
from nutbeam.pipelines.command_line.arguments import command_options
from nutbeam.pipelines.command_line.cli import load, main, option_names
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.pipelines.command_line.config import listed_options
from nutbeam.pipelines.command_line.foreign_names import unsupported_commands
from nutbeam.pipelines.nutch_conf.nutch_properties import convert_property
from nutbeam.web.base.errors import UsageError

NAMES = tomllib.loads(Path(__file__).with_name("nutch_names.toml").read_text())
SEGMENT = "20261129081500"


def translated(line):
    """Returns what a line of Nutch is in nutbeam; None if it is left as it is."""
    name, *words = shlex.split(line)
    command = find_command(name) or name
    module = load(own_command(command))
    own = OwnCommand(
        command_options(module), module.ARGUMENTS, lambda _: True, "unknown option {!r}".format,
        lambda option: listed_options().get(option, ()), convert_property,
    )  # fmt: skip
    return translate_line(command, words, own)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("inject crawldb/ urls -overwrite", "inject crawldb urls --overwrite_known"),
        ("inject ./crawldb urls", "inject crawldb urls"),
        ("inject ./crawl/crawldb urls", "inject ./crawl urls"),
        ("inject /data/crawl//crawldb/current urls", "inject /data/crawl urls"),
        ("inject 'my crawl/crawldb' 'my urls'", "inject 'my crawl' 'my urls'"),
        ("inject crawl/crawldb -- -urls", "inject -- crawl -urls"),
        ("readdb hdfs://node:8020/user/me/crawl/crawldb", "readdb hdfs://node:8020/user/me/crawl"),
        ("readdb hdfs://node:8020/crawldb/ -stats", "readdb hdfs://node:8020/crawldb --stats"),
        ("readdb s3://bucket/crawl/crawldb", "readdb s3://bucket/crawl"),
        ("generate crawldb segments", "generate crawldb"),
        (f"fetch segments/{SEGMENT}", f"fetch crawldb --batch {SEGMENT}"),
        (f"fetch crawl/segments/{SEGMENT}/", f"fetch crawl --batch {SEGMENT}"),
        (f"fetch mysegments/{SEGMENT}", f"fetch mysegments --batch {SEGMENT}"),
        (f"fetch crawl/batches/{SEGMENT} -threads 5", f"fetch crawl --threads 5 --batch {SEGMENT}"),
        ("updatedb crawl/crawldb crawl/segments/*", "updatedb crawl"),
        (f"updatedb crawl/crawldb crawl/segments/{SEGMENT} crawl/segments/{SEGMENT[:-1]}1",
         f"updatedb crawl --batch {SEGMENT},{SEGMENT[:-1]}1"),
        ("mergedb all/crawldb a/crawldb b/crawldb other", "mergedb all a b other"),
        (f"readseg -list crawl/segments/{SEGMENT}",
         f"readseg crawl/batches/{SEGMENT} --list_batches"),
        (f"dump -segment crawl/segments/{SEGMENT} b -outputDir o",
         f"dump --from_batches crawl/batches/{SEGMENT},b --output_dir o"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("hurried")
def test_paths_below_a_crawl_folder_are_its_table(line, ours):
    assert str(translated(line)) == f"nutbeam {ours}"


@pytest.mark.parametrize(
    "line",
    [
        "inject crawldb urls",
        "sql crawldb 'SELECT 1'",
        "readdb bigtable://project/instance/crawldb --stats",
        "inject mine http://a.example.org/segments/1",
        "crawl mine --include /segments/1 http://a.example.org/",
        "warc mine archive/segments",
        "crawl mine http://a.example.org/ 3",
        "crawl mine http://a.example.org/ --rounds 3 --index other",
        "mergesegs new crawl/batches/1 --slice 5",
    ],
)
def test_lines_of_ours_are_left_as_they_are(line):
    assert translated(line) is None


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("generate mine -topN=5 -ADDDAYS 1.5 -maxCount -1", "generate mine --top_n 5 --add_days 1.5 --max_count -1"),
        ("generate -topN 5 mine --min_score 0.5", "generate mine --top_n 5 --min_score 0.5"),
        ("generate mine -topN 5 --runner DirectRunner",
         "generate mine --top_n 5 --runner DirectRunner"),
        ("generate mine -topN 5 -topN 5 -minScore 1",
         "generate mine --top_n 5 --top_n 5 --min_score 1"),
        ("generate mine -maxNumSegments 1 -noNorm", "generate mine"),
        ("mergesegs out -dir a -dir b -filter -filter",
         "mergesegs out --all_of a --all_of b --filter_urls --filter_urls"),
        ("mergedb -normalize 1 on", "mergedb 1 on --normalize_urls"),
        ("mergedb -normalize=false on", "mergedb on --normalize_urls=false"),
        ("dedup mine -compareOrder score,urlLength", "dedup mine --compare_order score,urlLength"),
        ("index mine -params 'a=b,c&d=e'", "index mine --writer_parameters 'a=b\\,c,d=e'"),
        ("fetch mine --http.agent.name bot", "fetch mine --agent_name bot"),
        ("fetch mine --fetcher.server.delay=2.5", "fetch mine --server_delay 2.5"),
        ("fetch -D fetcher.threads.fetch=5 mine -threads 7 -Dhttp.timeout=2500",
         "fetch mine --timeout 2.5 --threads 7"),
        ("crawl -w 5m -s urls mine -1", "crawl mine urls --wait --links --rounds -1"),
        ("crawl --wait -1 -s urls mine 2", "crawl mine urls --links --rounds 2"),
        ("crawl urls mine http://localhost:8983/solr/nutch 2",
         ("crawl mine urls --links --index main --writer solr "
          "--writer_parameters url=http://localhost:8983/solr/nutch --rounds 2")),
        ("crawl -s urls -sm maps --num-slaves 3 mine 2 --agent_name bot",
         ("inject mine urls && nutbeam sitemap mine maps --agent_name bot && "
          "nutbeam crawl mine --num_fetchers 3 --agent_name bot --links --rounds 2")),
        ("solrindex http://localhost:8983/solr crawl/crawldb -linkdb crawl/linkdb crawl/segments/*",
         "solrindex crawl --writer_parameters url=http://localhost:8983/solr"),
        ("solrclean crawl/crawldb http://localhost:8983/solr",
         "solrclean crawl --writer_parameters url=http://localhost:8983/solr"),
        ("robotsparser robots.txt urls.txt bot,other",
         "robotsparser robots.txt urls.txt --agent_name bot --robots_agents other"),
        ("fetch 1795943495-123 -crawlId web", "fetch web --batch 1795943495-123"),
        ("readhostdb example.org -crawlId web", "readhostdb web example.org"),
        ("solrindex http://localhost:8983/solr -all -crawlId web",
         "solrindex web --writer_parameters url=http://localhost:8983/solr"),
        ("warc mine archive -includeParseText", "warc mine archive --include_parse_text"),
        (f"warc archive crawl/segments/{SEGMENT}", f"warc crawl archive --batch {SEGMENT}"),
    ],
)  # fmt: skip
def test_flags_and_properties_become_options(line, ours):
    assert str(translated(line)) == f"nutbeam {ours}"


def test_a_property_of_other_commands_is_left_out_with_a_note():
    translation = translated("generate -D fetcher.server.delay=1.0 mine")
    assert str(translation) == "nutbeam generate mine"
    (note,) = translation.notes
    assert note.startswith(
        "fetcher.server.delay is not needed here: it is --server_delay of crawl, "
    )


REFUSED = {
    "generate crawl/crawldb other/segments": "'crawl/crawldb' (table crawl) and 'other/segments' "
    "(table other) are different tables: give one, which has what both have in Nutch",
    "generate mine -topM 5 -foo": "unknown option '-topM'; did you mean '-topN'?; "
    "unknown option '-foo'",
    "generate mine -maxNumSegments 3 -batchId x": "-maxNumSegments: each run makes one batch: run "
    "generate again; -batchId: generate makes the id of a batch",
    "generate mine -topN": "-topN needs a value, got nothing",
    "generate mine -topN -noFilter": "-topN needs a value, got '-noFilter'",
    "fetch mine -unknown": "unknown option '-unknown'",
    "fetch -all": "the table is missing: nutbeam fetch TABLE",
    f"fetch crawl/segments/{SEGMENT} -threads 5 --batch 7": "--batch 7 and "
    f"'crawl/segments/{SEGMENT}' are two batches: give one",
    "mergesegs out -slice 5 -slice 6": "--slice is there twice, with '5' and '6': give one",
    "mergesegs out -slice 5 --slice 6": "--slice is there twice, with '5' and '6': give one",
    "dump -outputDir -segment a": "-outputDir needs a value, got '-segment'",
    "mergedb out a -filter -filter=no": "--filter_urls is there twice, with 'true' and 'no': give one",
    "readdb mine -listen 8081": "-listen: there is no server: readdb TABLE URL answers for one URL",
    **{
        f"crawl {words}": "Nutch has crawl [options] <crawl_dir> <num_rounds>; 1.9, 2.x: crawl <seedDir> "
        f"<crawlDir or crawlID> [solrURL] <rounds>; got {got}"
        for words, got in (
            ("-s urls crawl two", "'crawl' 'two'"),
            ("-w 10x -s urls crawl 3", "'10x' 'crawl' '3'"),
        )
    },
    "domainstats crawl/crawldb out": "Nutch has domainstats <crawldb> <out> "
    "host|domain|suffix|tld [reducers]; got 'crawl/crawldb' 'out'",
    "solrdedup http://localhost:8983/solr": "the table is missing: nutbeam solrdedup TABLE "
    "--writer_parameters url=http://localhost:8983/solr",
    "elasticindex cluster -all -crawlId web": "the name of a cluster is not enough: nutbeam index "
    "web --writer elasticsearch --writer_parameters url=URL",
    "elasticindex cluster": "the name of a cluster is not enough: nutbeam index TABLE "
    "--writer elasticsearch --writer_parameters url=URL",
    "fetch mine -D http.timout=1": "http.timout: Nutch has no property 'http.timout'; did you mean "
    "'http.timeout'?",
    "fetch mine -D": "-D needs NAME=VALUE, got nothing",
    "fetch mine -Dname": "-D needs NAME=VALUE, got 'name'",
    "readdb mine -dump hdfs://node:1/out": "'hdfs://node:1/out' must be a folder of this machine",
    "crawlcomplete -inputDirs a,b -outputDir o -mode host": "'a' (table a) and 'b' (table b) are "
    "different tables: give one, which has what both have in Nutch",
}  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_a_line_that_cannot_mean_the_same_is_refused_with_all_faults(line):
    with pytest.raises(UsageError) as refused:
        translated(line)
    assert str(refused.value) == REFUSED[line]


def test_a_folder_with_a_result_of_nutch_is_not_written_into(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-r-00000").write_text("mine")
    with pytest.raises(UsageError, match="out/part-r-00000 is there already: give another folder"):
        translated("readdb mine -dump out")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="'file' must be a folder, and is a file"):
        translated("readdb mine -topN 5 file")


@pytest.mark.parametrize(
    ("made", "line", "database"),
    [
        ("crawl/crawldb/current/part-r-00000/data", "readdb crawl/crawldb -stats", "crawl"),
        ("crawl/linkdb/current/part-r-00000/data", "readlinkdb crawl/linkdb -dump o", "crawl"),
        (f"crawl/segments/{SEGMENT}/crawl_generate/part-r-00000", "generate mine crawl/segments",
         "crawl"),
        (f"crawl/segments/{SEGMENT}/crawl_fetch/part-r-00000/data", f"fetch crawl/segments/{SEGMENT}",
         "crawl"),
        ("crawldb/current/part-00000/data", "readdb crawldb -stats", "."),
    ],
)  # fmt: skip
def test_a_database_of_nutch_is_no_table(tmp_path, made, line, database):
    file = tmp_path / made
    file.parent.mkdir(parents=True)
    file.write_bytes(b"SEQ\x06")
    with pytest.raises(UsageError) as refused:
        translated(line)
    # Not into the folder of Nutch, where no table can be made.
    assert f"is a database of Nutch: nutbeam import_nutch TABLE {database}" in str(refused.value)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("readdb good", "crawl"),
        ("readdb good -stats", "crawl"),
        ("fetch 'good/segments/*'", "database"),
        (f"fetch good/segments/{SEGMENT}/crawl_generate", "database"),
    ],
)
def test_a_crawl_of_nutch_is_no_table(tmp_path, capsys, line, kind):
    file = tmp_path / "good/segments" / SEGMENT / "crawl_generate/part-r-00000"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"SEQ\x06")
    assert main(shlex.split(line)) == 2
    said = capsys.readouterr().err
    assert said.endswith(f" is a {kind} of Nutch: nutbeam import_nutch TABLE good\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize("address", ["s3", "hdfs"], indirect=True)
@pytest.mark.parametrize("below", ["", "/crawldb"])
def test_a_crawl_of_nutch_in_a_store_is_no_table(address, capsys, below):
    write_bytes(place_of(address) / "crawldb/current/part-r-00000/data", b"SEQ\x06")
    write_bytes(place_of(address) / "crawldb/current/part-r-00000/index", b"SEQ\x06")
    assert main(["readdb", f"{address}{below}", "--stats"]) == 2
    kind = "database" if below else "crawl"
    assert capsys.readouterr().err == (
        f"nutbeam readdb: '{address}{below}' is a {kind} of Nutch: nutbeam import_nutch TABLE {address}\n"
    )


@pytest.mark.parametrize(
    ("command", "reader"), [("inject", "inject"), ("readdb", "inject"), ("crawl", "crawl")]
)
def test_seeds_in_the_place_of_the_table_are_named(tmp_path, capsys, command, reader):
    (tmp_path / "urls").mkdir()
    (tmp_path / "urls" / "seed.txt").write_text("# ours\nhttp://a.example/\tnutch.score=2\n")
    assert main([command, "urls"]) == 2
    assert capsys.readouterr().err == (
        f"nutbeam {command}: the table is missing: 'urls' is a folder of seeds; nutbeam {reader} TABLE urls\n"
    )


def test_a_table_of_ours_may_have_the_name_of_a_database(tmp_path):
    (tmp_path / "urls").write_text("http://a.example.org/\n")
    assert main(["inject", "crawl/table", "urls", "--progress", "false"]) == 0
    (tmp_path / "crawl" / "table").rename(tmp_path / "crawl" / "crawldb")
    assert translated("readdb crawl/crawldb --stats") is None
    assert str(translated("readdb crawl/crawldb -stats")) == "nutbeam readdb crawl/crawldb --stats"
    assert translated("crawl crawl/crawldb urls 3") is None  # not the seeds crawl/crawldb


def test_lines_of_ours_do_not_read_the_tables_of_nutch():
    read_sections.cache_clear()
    for name, command in COMMANDS.items():
        assert not may_be_nutch_line(name, shlex.split(command.example), is_ours=True), name
    assert main(["filterchecker", "http://a.example.org/"]) == 0
    assert read_sections.cache_info().misses == 0


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES["do_their_work"].split())
def test_a_name_of_nutch_shows_its_help_and_refuses_a_bad_flag_in_one_line(name, capsys):
    assert main([name, "--help"]) == 0
    assert f"usage: nutbeam {own_command(find_command(name))} " in capsys.readouterr().out
    assert main([name, "-nosuchflag", "x"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "unknown option '-nosuchflag'" in said.err


@pytest.mark.parametrize("name", NAMES["are_answered"].split())
def test_a_name_without_a_command_is_answered_in_one_line(name, capsys):
    assert main([name, "crawl/segments/1"]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"nutbeam: unknown command '{name}', a command of Nutch; ")
    assert line.count("\n") == 1
    assert "did you mean" not in line


def test_each_section_names_a_command_and_a_group():
    for name, section in command_sections().items():
        assert own_command(name) in COMMANDS
        assert section["usage"]
        assert section["here"]
    # Nutch's plugin runs a class of Java, ours lists plug-ins.
    assert set(answers()) & {*COMMANDS, *unsupported_commands()} == {"plugin"}


def test_help_nutch_prints_each_command(capsys):
    assert main(["help", "nutch"]) == 0
    text = capsys.readouterr().out
    for section in (*command_sections().values(), *answers().values()):
        assert section["usage"].split()[0] in text
    assert main(["nutch"]) == 0
    assert capsys.readouterr().out == text
    assert max(map(len, text.splitlines())) <= 80


def test_help_of_a_class_is_that_of_its_command(capsys):
    assert main(["help", "org.apache.nutch.crawl.Injector"]) == 0
    assert capsys.readouterr().out.startswith("usage: nutbeam inject ")


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        (
            "readdb crawl/crawldb -dump o -format xml -status foo -retry x",
            ["--dump_format must be one of", "--status must be one of", "--retry must be a whole"],
        ),
        (
            "fetch crawl/crawldb -Dfetcher.threads.per.queue=0 -Dhttp.timout=1 -threads y",
            ["fetcher.threads.per.queue: --threads_per_host must be at least 1, got 0",
             "Nutch has no property 'http.timout'", "--threads must be a whole number, got 'y'"],
        ),
        (
            "generate crawl/crawldb -topN x -foo -Dhttp.timout=1",
            ["-foo", "Nutch has no property 'http.timout'", "--top_n must be a whole number, got 'x'"],
        ),
    ],
)  # fmt: skip
def test_all_faults_of_values_are_named_at_once(line, faults):
    with pytest.raises(UsageError) as refused:
        translated(line)
    said = str(refused.value).split("; ")
    for fault in faults:
        assert sum(fault in each for each in said) == 1, said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "readdb crawl -dump o -format crawldb",
            "crawldb: nutbeam export_nutch TABLE FOLDER writes a CrawlDb that Nutch opens",
        ),
        ("readdb crawl/crawldb -dump -", "'-' must be a folder of this machine"),
    ],
)
def test_dumps_without_a_counterpart_are_refused(tmp_path, line, said):
    with pytest.raises(UsageError) as refused:
        translated(line)
    assert str(refused.value) == said
    assert not list(tmp_path.iterdir())


def test_a_property_that_an_option_overrides_may_have_any_value():
    line = "fetch crawl/crawldb -Dfetcher.threads.fetch=0 -threads 3"
    assert str(translated(line)) == "nutbeam fetch crawl --threads 3"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mergesegs", "out", "--dir", "a"], "unknown option '--dir'; type -dir, as in Nutch"),
        (["readseg", "--noContent"], "unknown option '--noContent'; type -nocontent, as in Nutch"),
        (
            ["dump", "--outputDir", "a"],
            "unknown option '--outputDir'; type -outputDir, as in Nutch",
        ),
        (
            ["fetch", "mine", "--all"],
            "unknown option '--all'; it is not needed: a job takes the batch that is next in line",
        ),
        (
            ["readdb", "mine", "--text"],
            "unknown option '--text'; nutbeam pages writes texts and links",
        ),
    ],
)
def test_a_flag_of_nutch_with_two_dashes_is_named(words, said, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err == f"nutbeam {words[0]}: {said}\n"


@pytest.mark.parametrize("command", NAMES["flags"])
def test_each_flag_of_nutch_is_declared(command):
    """Not only understood because an option has its name: the page of reference shows it."""
    declared = {words.split()[0] for words in command_sections()[command].get("flags", {})}
    declared |= {words.split()[0] for words in read_sections()["any"]["flags"]} | {"-D"}
    for option in command_options(load(command)).values():
        declared |= {flag.name for flag in declared_flags(command, option)}
    assert set(NAMES["flags"][command].split()) <= declared


def test_the_page_has_the_names_that_run_a_class():
    """Row "plugin, junit" of the specification: one is a command of ours with another meaning."""
    usages = {entry.usage.split()[0] for entry in command_entries(unsupported_commands())}
    assert usages >= {"plugin", "junit"}


def test_commands_and_options_that_the_page_names_exist():
    sections = [*read_sections().values(), *answers().values()]
    texts = [
        text
        for each in sections
        for text in (each.get("here", ""), *each.get("flags", {}).values())
    ]
    options = {name for command in COMMANDS for name in option_names(command)}
    for text in texts:
        commands = set(re.findall(r"nutbeam ([a-z_]+)\b", text)) - {"runs"}
        assert commands <= {*COMMANDS, "import_nutch"}, text
        assert set(re.findall(r"--([a-z]\w+)", text)) <= {*options, "runner"}, text
