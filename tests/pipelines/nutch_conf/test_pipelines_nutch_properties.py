"""Converts properties of Nutch to options."""

import re
from pathlib import Path

import pytest

from nutbeam.pipelines.command_line.arguments import command_options
from nutbeam.pipelines.command_line.cli import load
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.pipelines.nutch_conf import nutch_properties
from nutbeam.pipelines.nutch_conf.joint_properties import JOINT_PROPERTIES
from nutbeam.pipelines.nutch_conf.nutch_properties import convert_property, known_properties
from nutbeam.pipelines.nutch_conf.property_catalogue import (
    option_properties,
    properties_of_options,
    read_catalogue,
    read_defaults,
)
from nutbeam.web.base.options import parse_value

NAMES = "org.apache.nutch"
# Properties whose default in Nutch is a reference to another one.
REFERENCES = ("fetcher.exceptions.per.queue.delay", "fetcher.min.crawl.delay")


@pytest.fixture(scope="module")
def options():
    declared = {}
    for command in COMMANDS:
        declared |= command_options(load(command))
    return declared


def test_each_property_of_nutch_is_in_the_catalogue():
    known = known_properties()
    prefixes = tuple(p for table in read_catalogue()["prefixes"].values() for p in table)

    assert len(read_defaults()) > 390
    assert [n for n in read_defaults() if n not in known and not n.startswith(prefixes)] == []


def test_a_property_has_one_answer():
    tables = read_catalogue()
    answers = [*tables["renamed"], *tables["rule_files"], *tables["not_needed"], *tables["always"],
               *tables["not_supported"], *tables["part_of"], *properties_of_options()]  # fmt: skip
    # The option lists the hosts; the property has one value that is what we do.
    twice = {name for name in answers if answers.count(name) > 1}

    assert twice == {
        "http.tls.certificates.check", "db.ignore.external.links.mode"
    }  # fmt: skip


def test_conversions_belong_to_properties_of_options():
    tables, named = read_catalogue(), set(properties_of_options())
    alone = set(JOINT_PROPERTIES) - known_properties()

    assert set(tables["units"]) | tables["limits"] | {*tables["values"], *tables["lists"]} <= named
    assert alone == set()


def test_the_list_of_properties_is_that_of_the_options(options):
    every = [each for command in COMMANDS for each in command_options(load(command)).values()]
    text = option_properties(every)

    assert [line.partition(":")[0] for line in text.splitlines()] == list(properties_of_options())


def test_defaults_of_nutch_become_values_that_options_take(options):
    for name, versions in read_defaults().items():
        for _, value in versions:
            converted = convert_property(name, value)
            for option, text in converted.options.items():
                parse_value(options[option], text)
            if name in properties_of_options() and name not in REFERENCES:
                refused = ("http.tls.certificates.check", "http.auth.file", "file.content.limit",
                           "ftp.content.limit")  # fmt: skip
                assert bool(converted.fault) == (name in refused), (name, converted)


@pytest.mark.parametrize(
    ("name", "value", "options"),
    [
        ("http.timeout", "10000", {"timeout": "10"}),
        ("crawl.gen.delay", "604800000", {"generate_mark_ttl": "604800"}),
        ("fetcher.timelimit.mins", "180", {"fetch_time_limit": "10800"}),
        ("fetcher.timelimit.mins", "-1", {"fetch_time_limit": "-1"}),
        ("http.content.limit", "-20", {"content_limit": "-1"}),
        ("http.time.limit", "-1", {"http_time_limit": "2147483647"}),
        ("link.analyze.damping.factor", "0.85f", {"damping_factor": "0.85"}),
        ("db.fetch.schedule.adaptive.min_interval", "60.0", {"min_interval": "60"}),
        ("db.update.purge.404", "true", {"drop_gone": "0"}),
        ("db.ignore.external.links", "true", {"scope": "host"}),
        ("db.ignore.external.links", "false", {"scope": "any"}),
        ("db.signature.class", f"{NAMES}.crawl.TextProfileSignature", {"signature": "text_profile"}),
        ("fetcher.queue.mode", "byIP", {"queue_mode": "ip"}),
        ("http.robot.rules.whitelist", "a.example", {"robots_allowlist": "a.example"}),
        ("headings", "h1, h3", {"headings": "h1,h3", "index_headings": "h1,h3"}),
        ("tika.boilerpipe", "true", {"text_of": "main"}),
        ("metatags.names", "description;keywords", {}),
        ("index.parse.md", "metatag.description,h1", {"index_parse_md": "description,h1"}),
        ("db.max.outlinks.per.page", "-1", {"max_outlinks": "-1"}),
        ("http.redirect.max", "-3", {"redirect_max": "0"}),
        ("mapreduce.job.reduces", "2", {}),
        ("urlnormalizer.scope.inject", f"{NAMES}.net.urlnormalizer.basic.BasicURLNormalizer",
         {"url_normalizers_in": "inject=basic"}),
    ],
)  # fmt: skip
def test_values_get_our_unit_and_form(name, value, options):
    converted = convert_property(name, value)

    assert dict(converted.options) == options
    assert not converted.fault


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("http.timeout", "10s", "must be a number of milliseconds, got '10s'"),
        ("db.fetch.interval.default", "30d", "must be a number, got '30d'"),
        ("fetcher.parse", "yes", "must be true or false, got 'yes'"),
        ("fetcher.threads.fetch", "2.5", "must be a whole number, got '2.5'"),
        ("db.fetch.schedule.class", "com.acme.Mine", "'com.acme.Mine' has no counterpart"),
        ("fetcher.queue.mode", "byPort", "one of byHost, byDomain, byIP, got 'byPort'"),
        ("scoring.filter.order", "com.acme.S", "'com.acme.S' has no counterpart"),
        ("http.proxy.password", "x", "--http_credentials"),
        ("urlfilter.domain.file", "mine.txt", "as domain-urlfilter.txt into a folder"),
        ("http.filter.ipaddress.exclude", "sitelocal,8.8.8.8", "8.8.8.8: only private"),
        ("selenium.driver", "chrome", "no browser runs"),
        ("fetcher.thread.fetch", "3", "did you mean 'fetcher.threads.fetch'?"),
    ],
)  # fmt: skip
def test_a_property_without_the_same_meaning_says_why(name, value, text):
    assert text in convert_property(name, value).fault


def test_properties_that_belong_together_become_one_option():
    proxy = {"http.proxy.host": "p.example", "http.proxy.port": "3128"}
    scope = {"db.ignore.external.links": "true", "db.ignore.external.links.mode": "byDomain"}
    static = {"index.static": "a=1 2;b=3", "index.static.fieldsep": ";", "index.static.keysep": "="}

    assert convert_property("http.proxy.host", "p.example", proxy).options == {
        "http_proxy": "http://p.example:3128"
    }
    assert (
        convert_property("http.proxy.port", "3128", proxy).note == "it is part of http.proxy.host"
    )
    assert convert_property("db.ignore.external.links", "true", scope).options == {
        "scope": "domain"
    }
    assert convert_property("index.static", static["index.static"], static).options == {
        "index_static": "a:1 2,b:3"
    }


def test_plugins_switch_filters_on_in_their_order(options):
    value = (
        "protocol-(http|file)|urlfilter-(regex|fast|suffix)|parse-(html|tika)|index-(basic|more|metadata)"
        "|scoring-depth|urlnormalizer-(pass|regex|basic)|language-identifier"
    )
    order = f"{NAMES}.urlfilter.suffix.SuffixURLFilter {NAMES}.urlfilter.regex.RegexURLFilter"
    properties = {"plugin.includes": value, "urlfilter.order": order}
    converted = convert_property("plugin.includes", value, properties)

    assert converted.options == {
        "url_filters": "suffix,regex,fast",
        "url_normalizers": "basic,regex,pass",
        "schemes": "http,https,file",
        "scoring": "depth",
        "index_filters": "basic,more,metadata,language",
        "index_parse_md": "description,keywords",
        "detect_language": "true",
    }
    assert not converted.fault
    for option, text in converted.options.items():
        parse_value(options[option], text)
    assert "part of plugin.includes" in convert_property("urlfilter.order", order, properties).note


def test_a_plugin_without_a_counterpart_is_named():
    converted = convert_property(
        "plugin.includes", "protocol-http|urlfilter-regex|acme-parser|index-.*"
    )

    assert converted.fault.startswith("no counterpart of acme-parser:")
    assert "tld" not in converted.options["index_filters"]


def test_answers_name_options_that_there_are(options):
    text = (Path(nutch_properties.__file__).parent / "nutch_properties.toml").read_text()
    beams = {"direct_num_workers"}

    assert set(re.findall(r"--([a-z_]+)", text)) - {*options} <= beams
    assert set(re.findall(r"nutbeam ([a-z]+) ", text)) <= {*COMMANDS, "always", "does"}
