"""Takes over Nutch's folder conf: nutbeam.toml, copies of files, and a report of each property and file."""

import tomllib

import pytest
from crawling import nutbeam

from nutbeam.pipelines.command_line.cli import AllModules
from nutbeam.pipelines.nutch_conf.import_configuration import default_of, import_configuration
from nutbeam.pipelines.nutch_conf.property_catalogue import read_defaults
from nutbeam.web.base.errors import UsageError

MODULES = AllModules()
PLUGINS = ("protocol-httpclient|urlfilter-(regex|domain)|parse-(html|tika)|index-(basic|anchor|metadata)"
           "|indexer-(solr|rabbit)|scoring-opic|urlnormalizer-(pass|regex|basic)")  # fmt: skip
SITE = {
    "http.agent.name": "acme",
    "http.agent.email": "ops@acme.org",
    "http.timeout": "20000",
    "fetcher.server.delay": "2.0",
    "fetcher.min.crawl.delay": "${fetcher.server.delay}",
    "generate.min.score": "0.1",
    "http.proxy.host": "p.example",
    "http.proxy.port": "3128",
    "http.proxy.username": "pia",
    "http.proxy.password": "geheim",
    "db.fetch.schedule.class": "org.apache.nutch.crawl.AdaptiveFetchSchedule",
    "db.fetch.schedule.adaptive.max_interval": "99999999",
    "db.fetch.interval.default": "2592000",
    "http.redirect.max": "50",
    "plugin.includes": PLUGINS,
    "urlfilter.domain.file": "our-domains.txt",
    "acme.home": "${env.HOME}",
}
FILES = {
    "regex-urlfilter.txt": "-[?*!@=]\n+.\n",
    "regex-normalize.xml": "<regex-normalize><regex><pattern>;x</pattern><substitution></substitution></regex></regex-normalize>",
    "our-domains.txt": "acme.org\n",
    "fast-urlfilter.txt": "Host bad.example\n",
    "adaptive-host-specific-intervals.txt": "acme.org\t3600\t86400\n",
    "httpclient-auth.xml": '<auth-configuration><credentials username="me" password="geheim">'
    '<authscope host="a.example" port="443"/><authscope host="b.example" scheme="NTLM"/></credentials></auth-configuration>',
    "index-writers.xml": '<writers xmlns="http://lucene.apache.org/nutch">'
    + "".join(
        f'<writer id="{kind}1" class="org.apache.nutch.indexwriter.{kind}.Writer"><parameters>'
        '<param name="url" value="http://solr.example/c"/></parameters></writer>'
        for kind in ("solr", "rabbit", "csv")
    )
    + "</writers>",
    "cookies.txt": "a.example\tx=y\n",
    "parse-plugins.xml": "<parse-plugins/>",
}  # fmt: skip


@pytest.fixture
def conf(tmp_path):
    folder = tmp_path / "conf"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    write(folder, SITE)
    return folder


def write(folder, properties, name="nutch-site.xml"):
    lines = [
        f"<property><name>{n}</name><value>{v}</value></property>" for n, v in properties.items()
    ]
    (folder / name).write_text("\n".join(["<configuration>", *lines, "</configuration>"]))


def outcomes(report):
    return {each.entry.name: each.converted for each in report.properties}


def test_the_new_file_has_the_changed_properties_with_their_places(conf, tmp_path, capsys):
    import_configuration(str(conf), str(tmp_path / "out"), MODULES)
    text = (tmp_path / "out" / "nutbeam.toml").read_text()
    out = (tmp_path / "out").resolve()
    score = {"min_score": 0.1}

    assert tomllib.loads(text) == {
        "agent_name": "acme", "agent_email": "ops@acme.org", "timeout": 20.0, "server_delay": 2.0,
        "min_crawl_delay": 2.0, "http_proxy": "http://p.example:3128", "schedule": "adaptive",
        "url_filters": ["regex", "domain"], "url_normalizers": ["basic", "regex", "pass"],
        "index_filters": ["basic", "anchor", "metadata"], "index_parse_md": ["description", "keywords"],
        "url_rules_dir": f"{out}/rules", "host_intervals": f"{out}/adaptive-host-specific-intervals.txt",
        "index_writers": f"{out}/index-writers.xml", "http_credentials": f"{out}/credentials.txt",
        **dict.fromkeys(("crawl", "generate", "round", "next", "explain", "console", "estimate"), score),
    }  # fmt: skip
    assert "timeout = 20.0  # http.timeout = 20000 (nutch-site.xml, line 4)" in text
    # Our own reader takes it, and jobs read the files.
    assert nutbeam("config", "--changed", "--config", out / "nutbeam.toml") == 0
    assert "geheim" not in text + capsys.readouterr().out
    words = ("http://www.acme.org/a;x", "http://other.example/")
    assert nutbeam("filterchecker", *words, "--config", out / "nutbeam.toml") == 0
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == ["+", "-"]


def test_each_property_and_file_is_in_the_report(conf, tmp_path):
    report = import_configuration(str(conf), str(tmp_path / "out"), MODULES)
    by_name, text = outcomes(report), "\n".join(report.lines())

    assert set(by_name) == set(SITE) - {"db.fetch.interval.default"}
    assert by_name["http.proxy.port"].outcome == "not needed"
    assert by_name["http.proxy.password"].note == "it is in the file of --http_credentials"
    assert by_name["http.redirect.max"].fault == "--redirect_max must be at most 20, got 50"
    assert (
        "at most --max_fetch_interval" in by_name["db.fetch.schedule.adaptive.max_interval"].fault
    )
    assert by_name["acme.home"].fault == "${env.HOME} stands for no property: write its value"
    assert {(file.name, file.outcome) for file in report.files} == {
        *((name, "mapped") for name in FILES),
        *((name, "not supported") for name in ("cookies.txt", "httpclient-auth.xml", "index-writers.xml")),
        *((name, "not needed") for name in ("fast-urlfilter.txt", "parse-plugins.xml")),
    } - {(name, "mapped") for name in ("cookies.txt", "fast-urlfilter.txt", "parse-plugins.xml")}  # fmt: skip
    assert "there is no writer for rabbit1" in text
    assert "the scheme ntlm for b.example" in text
    assert "scope = domain, in Nutch any (db.ignore.external.links)" in text
    assert "http.proxy.password = ***" in text
    assert "geheim" not in text + repr(report.record())


def test_plugins_that_are_known_are_named_beside_one_that_is_not(tmp_path):
    folder = tmp_path / "conf"
    folder.mkdir()
    write(folder, {"plugin.includes": "urlfilter-validator|urlnormalizer-basic|acme-filter",
                   "http.robots.agents": "*"})  # fmt: skip
    text = "\n".join(import_configuration(str(folder), str(tmp_path / "out"), MODULES).lines())
    assert "no counterpart of acme-filter: leave them out, or write a plug-in; the rest is " in text
    assert "url_filters = validator" in text
    assert "http.robots.agents = *: robots_agents = empty (" in text


def test_routes_to_writers_that_are_off_are_left_out(conf, tmp_path):
    exchanges = "".join(
        f'<exchange id="{name}" class="org.apache.nutch.exchange.jexl.JexlExchange"><writers>'
        + "".join(f'<writer id="{writer}"/>' for writer in writers)
        + "</writers><params><param name=\"expr\" value=\"doc.getFieldValue('host')=='a'\"/></params></exchange>"
        for name, writers in {"a": ("solr1", "csv1"), "b": ("rabbit1",)}.items()
    )
    (conf / "exchanges.xml").write_text(f"<exchanges>{exchanges}</exchanges>")
    write(conf, SITE | {"plugin.includes": f"{PLUGINS}|exchange-jexl"})
    import_configuration(str(conf), str(tmp_path / "out"), MODULES)
    text = (tmp_path / "out" / "exchanges.xml").read_text()

    assert 'id="solr1"' in text
    assert "csv1" not in text
    assert "rabbit1" not in text
    assert (
        f'exchanges = "{(tmp_path / "out").resolve()}/exchanges.xml"'
        in (tmp_path / "out" / "nutbeam.toml").read_text()
    )


def test_copies_with_secrets_are_for_their_owner(conf, tmp_path):
    import_configuration(str(conf), str(tmp_path / "out"), MODULES)
    credentials = tmp_path / "out" / "credentials.txt"

    assert credentials.read_text() == (
        "https://a.example basic me geheim\nhttp://p.example:3128 basic pia geheim\n"
    )
    assert credentials.stat().st_mode & 0o077 == 0
    assert 'id="rabbit1"' not in (tmp_path / "out" / "index-writers.xml").read_text()


@pytest.mark.parametrize(
    ("version", "options"),
    [("1.9", {"ignore_internal_links": "false"}), ("1.20", {}), ("2.4", {"ignore_internal_links": "false"})],
)  # fmt: skip
def test_properties_with_the_defaults_of_their_version_are_left_out(tmp_path, version, options):
    defaults = {name: default_of(name, version) for name in read_defaults()}
    conf = tmp_path / "conf"
    conf.mkdir()
    write(
        conf,
        {n: v.replace("&", "&amp;") for n, v in defaults.items() if v is not None},
        "nutch-default.xml",
    )
    write(conf, {"db.ignore.internal.links": "false"})
    report = import_configuration(str(conf), str(tmp_path / "out"), MODULES)

    assert report.version == version
    assert {
        k: v for each in report.properties for k, v in each.converted.options.items()
    } == options
    assert report.files == ()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nutch-site.xml", "<configuration>\n<property>", "nutch-site.xml, line 2, column 11: it must be XML: no element found"),
        ("our-domains.txt", None, "has no file 'our-domains.txt', which urlfilter.domain.file names"),
        ("regex-urlfilter.txt", "+(\n", "regex-urlfilter.txt"),
        ("regex-normalize.xml", "<regex-normalize>", "regex-normalize.xml"),
        ("httpclient-auth.xml", "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>", "must be XML without a document type"),
        ("httpclient-auth.xml", FILES["httpclient-auth.xml"].replace('"me"', '"m:e"'), "httpclient-auth.xml, line 1: a user name of basic must not have a colon"),
        ("our-domains.txt", "b\udcff.example\n", "got 'our-domains.txt': it is not utf-8 text"),
        ("nutch-site.xml", "<configuration><property name='urlfilter.regex.file' value='../secret.txt'/></configuration>", "only files of"),
        ("index-writers.xml", "<writers", "index-writers.xml must be XML"),
    ],
)  # fmt: skip
def test_nothing_is_written_if_a_file_cannot_be_read(conf, tmp_path, name, text, message):
    (conf.parent / "secret.txt").write_text("+.")
    (conf / name).unlink() if text is None else (conf / name).write_text(
        text, errors="surrogateescape"
    )
    with pytest.raises(UsageError, match=r"\w") as refused:
        import_configuration(str(conf), str(tmp_path / "out"), MODULES)
    assert message in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_the_faults_of_all_files_are_named_at_once(conf, tmp_path):
    plugins = PLUGINS.replace("(regex|domain)", "(regex|domain|prefix|fast)")
    files = {"urlfilter.regex.file": "sub/ours.txt", "urlfilter.domain.file": "../secret.txt",
             "urlfilter.prefix.file": "none.txt"}  # fmt: skip
    write(conf, SITE | files | {"plugin.includes": plugins})
    (conf.parent / "secret.txt").write_text("+.")
    (conf / "sub").mkdir()
    (conf / "sub" / "ours.txt").write_text("+.\n+(\n")
    (conf / "regex-normalize-inject.xml").write_text("<regex-normalize>")
    (conf / "regex-normalize-fetcher.xml").write_text("<regex-normalize")
    (conf / "index-writers.xml").write_text("<writers")
    with pytest.raises(UsageError) as refused:
        import_configuration(str(conf), str(tmp_path / "out"), MODULES)
    said = str(refused.value)
    for fault in (
        "sub/ours.txt:2: ",
        "nutch-site.xml, line 17: urlfilter.domain.file: only files of",
        "nutch-site.xml, line 20: urlfilter.prefix.file: ",
        "regex-normalize-inject.xml",
        "regex-normalize-fetcher.xml",
        "index-writers.xml must be XML",
    ):
        assert said.count(fault) == 1, said
    assert "regex-urlfilter.txt" not in said
    assert "nutbeam-conf-" not in said
    assert "\n" not in said
    assert not (tmp_path / "out").exists()


def test_all_faults_of_each_file_are_named_with_their_places(conf, tmp_path):
    plugins = PLUGINS.replace("(regex|domain)", "(regex|domain|fast)")
    write(conf, SITE | {"plugin.includes": plugins})
    site = (conf / "nutch-site.xml").read_text().replace("</configuration>", (
        '<property><value>1</value></property>\n<xi:include href="gone.xml"/>\n</configuration'
    ))  # fmt: skip
    (conf / "nutch-site.xml").write_text(site)
    (conf / "nutch-default.xml").write_text("<configuration>\n<property/></configuration>")
    (conf / "regex-urlfilter.txt").write_text("+(\n-[?*!@=]\n+[\nno rule\n")
    (conf / "fast-urlfilter.txt").write_text("Host /\nDenyPath /a\nDenyPath (\nHost ok.example\n")
    (conf / "our-domains.txt").write_text("a b\nacme.org\nc/d\n")
    (conf / "adaptive-host-specific-intervals.txt").write_text("acme.org\t9\t3\nb\tx\ty\n")
    (conf / "regex-normalize.xml").write_text(
        "<regex-normalize>\n<regex><pattern>(</pattern><substitution/></regex>\n"
        "<regex><pattern>a</pattern></regex></regex-normalize>"
    )
    (conf / "index-writers.xml").write_text(
        '<writers><writer class="a.solr.B"/><writer id="ok" class="a.solr.B"/><writer class="a.solr.B"/></writers>'
    )
    with pytest.raises(UsageError) as refused:
        import_configuration(str(conf), str(tmp_path / "out"), MODULES)
    said = str(refused.value)
    for fault in (
        "nutch-default.xml, line 2: a property has no name",
        "nutch-site.xml, line 19: a property has no name",
        "nutch-site.xml, line 20, column 1: there is no file 'gone.xml' to include",
        "nutch-site.xml, line 21, column 1: it must be XML",
        *(f"regex-urlfilter.txt:{line}: " for line in (1, 3, 4)),
        *(f"fast-urlfilter.txt:{line}: " for line in (1, 3)),
        *(f"our-domains.txt:{line}: " for line in (1, 3)),
        *(f"adaptive-host-specific-intervals.txt:{line}: " for line in (1, 2)),
        *(f"regex-normalize.xml:{line}: rule {line - 1} " for line in (2, 3)),
        *(f"index-writers.xml: a writer has no id (writer {number})" for number in (1, 3)),
    ):
        assert said.count(fault) == 1, (fault, said)
    assert said.count("; ") == 16, said


def test_a_place_that_is_none_and_a_file_that_is_there_are_refused(conf, tmp_path):
    with pytest.raises(UsageError, match="it is no folder"):
        import_configuration(str(conf / "nutch-site.xml"), str(tmp_path / "out"), MODULES)
    with pytest.raises(UsageError, match=r"it has no nutch-site\.xml"):
        import_configuration(str(tmp_path), str(tmp_path / "out"), MODULES)
    import_configuration(str(conf), str(tmp_path / "out"), MODULES)
    import_configuration(str(conf), str(tmp_path / "out"), MODULES)  # the same again
    with (tmp_path / "out" / "nutbeam.toml").open("a") as file:
        file.write("rounds = 7\n")
    with pytest.raises(UsageError, match="is there already"):
        import_configuration(str(conf), str(tmp_path / "out"), MODULES)
    assert "rounds = 7" in (tmp_path / "out" / "nutbeam.toml").read_text()


def test_import_nutch_takes_over_the_folder_conf_alone(conf, tmp_path, capsys):
    words = ("import_nutch", tmp_path / "table", "--conf", conf, "--conf_to", tmp_path / "out")
    assert nutbeam(*words) == 0
    assert "http.redirect.max = 50: --redirect_max must be at most 20" in capsys.readouterr().out
    assert "agent_name" in (tmp_path / "out" / "nutbeam.toml").read_text()
    assert not (tmp_path / "table").exists()
    assert nutbeam("import_nutch", tmp_path / "table") == 2
    assert "folders of Nutch, or --conf" in capsys.readouterr().err
