"""Reads configuration files as Hadoop does, and refuses what reads other files or fills the memory."""

import pytest

from nutbeam.pipelines.nutch_conf.hadoop_configuration import read_configuration

NAMES = ("nutch-default.xml", "nutch-site.xml")
INCLUDE = '<xi:include href="{}" xmlns:xi="http://www.w3.org/2001/XInclude"/>'


def wrap(*entries):
    lines = "\n".join(
        each if each.startswith("<") else "<property><name>{}</name><value>{}</value></property>".format(
            *each.split("=", 1))
        for each in entries
    )  # fmt: skip
    return f'<?xml version="1.0"?>\n<configuration>\n{lines}\n</configuration>'


@pytest.fixture
def read(tmp_path):
    def run(site, **others):
        (tmp_path / "nutch-site.xml").write_text(site)
        for name, text in others.items():
            (tmp_path / f"{name.replace('_', '-')}.xml").write_text(text)
        return read_configuration(tmp_path, NAMES)

    return run


def values(configuration):
    return {name: entry.value for name, entry in configuration.entries.items()}


def test_the_site_overrides_the_defaults_and_variables_are_replaced(read):
    default = wrap("delay=5.0", "least=${delay}", "kept=1")
    configuration = read(wrap("delay=2.0"), nutch_default=default)

    assert values(configuration) == {"delay": "2.0", "least": "2.0", "kept": "1"}
    assert configuration.entries["delay"].place == "nutch-site.xml, line 3"
    assert configuration.entries["kept"].place == "nutch-default.xml, line 5"


def test_attributes_are_read_as_elements_are(read):
    site = wrap('<property name="a" value="1" final="true"/>')

    assert values(read(site)) == {"a": "1"}


def test_a_final_property_stays_and_the_last_of_two_counts(read):
    default = wrap("<property><name>a</name><value>1</value><final>true</final></property>")
    configuration = read(wrap("a=2", "b=1", "b=2"), nutch_default=default)

    assert values(configuration) == {"a": "1", "b": "2"}
    assert configuration.remarks == (
        "b is there twice: nutch-site.xml, line 5 counts, not nutch-site.xml, line 4",
        "a of nutch-site.xml, line 3 does not count: it is final in nutch-default.xml, line 3",
    )


def test_a_final_property_stays_in_its_own_file_too(read):
    final = "<property><name>a</name><value>1</value><final>true</final></property>"
    configuration = read(wrap(final, "a=2"))

    assert values(configuration) == {"a": "1"}
    assert configuration.remarks == (
        "a is there twice: nutch-site.xml, line 3 is final and counts, not nutch-site.xml, line 4",
    )


def test_files_of_the_folder_are_included(read):
    assert values(read(wrap(INCLUDE.format("more.xml"), "b=2"), more=wrap("a=1"))) == {
        "a": "1",
        "b": "2",
    }


@pytest.mark.parametrize(
    ("site", "text"),
    [
        ("<configuration>\n<property></configuration>", "nutch-site.xml, line 2, column 13: it must be XML: mismatched tag"),
        ("<html/>", "line 1, column 1: it must be a configuration of Hadoop, got <html>"),
        (wrap("<property><value>1</value></property>"), "line 3: a property has no name"),
        (wrap(INCLUDE.format("../secret.xml")), "only files of the folder can be included, got '../secret.xml'"),
        (wrap(INCLUDE.format("file:///etc/passwd")), "only files of the folder can be included"),
        (wrap(INCLUDE.format("http://x.example/a.xml")), "only files of the folder can be included"),
        (wrap(INCLUDE.format("gone.xml")), "line 3, column 1: there is no file 'gone.xml' to include"),
        (wrap(INCLUDE.format("nutch-site.xml")), "which includes it"),
        ('<!DOCTYPE c [<!ENTITY e SYSTEM "file:///etc/passwd">]>\n<configuration>&e;</configuration>',
         "nutch-site.xml, line 1, column 52: entities are refused"),
        ('<!DOCTYPE c SYSTEM "c.dtd">\n<configuration>&e;</configuration>', "line 2, column 16: entities are refused"),
        (wrap("a=" + "${b}" * 100, "b=" + "${c}" * 100, "c=" + "x" * 100), "longer than 65,536 characters"),
        (wrap("a=${a}${a}"), "longer than 65,536 characters"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_their_place(read, tmp_path, site, text):
    (tmp_path.parent / "secret.xml").write_text(wrap("a=1"))
    (fault,) = read(site).faults
    assert text in fault


def test_a_link_out_of_the_folder_is_not_included(read, tmp_path_factory, tmp_path):
    outside = tmp_path_factory.mktemp("outside") / "secret.xml"
    outside.write_text(wrap("a=1"))
    (tmp_path / "link.xml").symlink_to(outside)
    (fault,) = read(wrap(INCLUDE.format("link.xml"))).faults
    assert "only files of the folder can be included" in fault


def test_a_variable_of_nothing_stays(read):
    assert values(read(wrap("a=${env.HOME}/x"))) == {"a": "${env.HOME}/x"}
