"""Which documents each writer gets, and under which names; Nutch's files and ours."""

import polars as pl
import pytest

from nutbeam.policy.components.index_routes import FieldMapping, IndexRoute, IndexRoutes, WriterRule
from nutbeam.policy.expressions.syntax import ExpressionError
from nutbeam.policy.indexing.index_options import read_nutch_routes, read_routes
from nutbeam.policy.indexing.index_rule_filters import read_replacements
from nutbeam.policy.indexing.writer_documents import mapped_fields, share_documents
from nutbeam.web.rule_files.rule_files import RuleFile

DOCUMENTS = pl.DataFrame(
    {
        "id": ["http://example.org/", "http://a.de/", "http://b.de/"],
        "host": ["example.org", "a.de", "b.de"],
        "lang": [None, "de", "de"],
        "title": ["T", None, "U"],
        "anchor": [["x", "y"], None, None],
        "boost": [1.0, 2.0, 0.5],
        "dropped_by": [None, None, None],
    }
)
WRITERS = """<?xml version="1.0" encoding="UTF-8" ?>
<!-- comment -->
<writers xmlns="http://lucene.apache.org/nutch">
  <writer id="indexer_solr_1" class="org.apache.nutch.indexwriter.solr.SolrIndexWriter">
    <parameters><param name="url" value="http://localhost:8983/solr/nutch"/></parameters>
    <mapping>
      <copy><field source="title" dest="title,search"/></copy>
      <rename><field source="metatag.description" dest="description"/></rename>
      <remove><field source="segment"/></remove>
    </mapping>
  </writer>
  <writer id="e" class="org.apache.nutch.indexwriter.elastic.ElasticIndexWriter">
    <parameters/><mapping><copy/><rename/><remove/></mapping>
  </writer>
</writers>"""
EXCHANGES = """<exchanges xmlns="http://lucene.apache.org/nutch">
  <exchange id="x" class="org.apache.nutch.exchange.jexl.JexlExchange">
    <writers><writer id="indexer_solr_1"/></writers>
    <params><param name="expr" value="doc.getFieldValue('host')=='example.org'"/></params>
  </exchange>
  <exchange id="default" class="default"><writers><writer id="e"/></writers><params/></exchange>
</exchanges>"""


def shares(routes):
    return {name: mask.to_list() for name, mask in share_documents(routes, DOCUMENTS).items()}


def test_nutchs_files():
    routes = read_nutch_routes(RuleFile("w.xml", WRITERS), RuleFile("e.xml", EXCHANGES))
    solr, elastic = routes.writers
    assert (solr.kind, elastic.kind) == ("solr", "elasticsearch")
    assert solr.parameters == {"url": "http://localhost:8983/solr/nutch"}
    assert solr.mapping == FieldMapping(
        (("title", ("title", "search")),), (("metatag.description", "description"),), ("segment",)
    )
    assert shares(routes) == {"indexer_solr_1": [True, False, False], "e": [False, True, True]}
    assert mapped_fields(DOCUMENTS, FieldMapping((("id", ("key",)),)))["key"].to_list() == (
        DOCUMENTS["id"].to_list()
    )
    everything = read_nutch_routes(RuleFile("w.xml", WRITERS))
    assert shares(everything) == {"indexer_solr_1": [True] * 3, "e": [True] * 3}


def test_writers_that_no_exchange_names_are_not_opened():
    only = EXCHANGES.partition('<exchange id="default"')[0] + "</exchanges>"
    (solr,) = read_nutch_routes(RuleFile("w.xml", WRITERS), RuleFile("e.xml", only)).writers
    assert solr.name == "indexer_solr_1"


def test_our_toml():
    text = """
[[writer]]
name = "german"
kind = "opensearch"
url = "http://localhost:9200"
gzip = true
only = "doc.lang == 'de'"
rename = { title = "name" }
[[writer]]
name = "all"
kind = "jsonl"
copy = { title = ["search", "text"] }
remove = ["boost"]
[[writer]]
name = "rest"
kind = "dummy"
otherwise = true
"""
    routes = read_routes(RuleFile("index.toml", text))
    german, every, _ = routes.writers
    assert german.parameters == {"url": "http://localhost:9200", "gzip": "true"}
    assert (german.mapping.rename, every.mapping.remove) == ((("title", "name"),), ("boost",))
    assert shares(routes) == {"german": [False, True, True], "all": [True] * 3, "rest": [False] * 3}


def test_fields_are_copied_renamed_and_removed():
    mapping = FieldMapping(
        (("title", ("search", "anchor")), ("boost", ("search",))), (("host", "site"),), ("lang",)
    )
    assert mapped_fields(DOCUMENTS, mapping).to_dicts() == [
        {"id": "http://example.org/", "title": "T", "anchor": ["x", "y", "T"], "boost": 1.0,
         "search": ["T", "1.0"], "site": "example.org"},
        {"id": "http://a.de/", "title": None, "anchor": None, "boost": 2.0,
         "search": ["2.0"], "site": "a.de"},
        {"id": "http://b.de/", "title": "U", "anchor": ["U"], "boost": 0.5,
         "search": ["U", "0.5"], "site": "b.de"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "index.toml must be toml"),
        ("a = 1", r"index.toml must have only \[\[writer\]\] sections, got 'a'"),
        ("[[writer]]\nname = 'a'", "index.toml: a writer needs the text 'kind', got None"),
        ("[[writer]]\nname='a'\nkind='b'\nonly='x'\notherwise=true", "must have only = an"),
        ("[[writer]]\nname='a'\nkind='b'\n" * 2, "index.toml: two index writers are called 'a'"),
        ("[[writer]]\nname='a'\nkind='b'\nremove=[1]", "remove must have names of fields"),
        ("[[writer]]\nname='a'\nkind='b'\ncopy='x'", "copy must be a table of fields"),
        ("[[writer]]\nname='a'\nkind='b'\nrename={a=[]}", "rename must have names of fields"),
        ("[[writer]]\nname='a'\nkind='b'\nremove=['id']", "index.toml: .* id, .* got 'remove id'"),
        ("[[writer]]\nname='a'\nkind='b'\nrename={id='url'}", "got 'rename id to url'"),
        ("[[writer]]\nname='a'\nkind='b'\nrename={url='id'}", "got 'rename url to id'"),
        ("[[writer]]\nname='a'\nkind='b'\ncopy={title=['x','id']}", "got 'copy title to id'"),
    ],
)
def test_wrong_toml(text, message):
    with pytest.raises(ValueError, match=message):
        read_routes(RuleFile("index.toml", text))


@pytest.mark.parametrize(
    ("writers", "exchanges", "message"),
    [
        ("<writers", None, "w.xml must be XML"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", None, "w.xml must be XML without a document type"),
        ("<writers><writer class='a.b.C'/></writers>", None, "w.xml: a writer has no id"),
        ("<writers/>", EXCHANGES, "e.xml: no index writer 'indexer_solr_1': there are none"),
        ("<writers/>", "<e><exchange id='a'/></e>", "e.xml: exchange 'a' has no expr"),
        (
            WRITERS.replace('source="segment"', 'source="id"'),
            None,
            "w.xml: writer 'indexer_solr_1': a mapping must not change id, .* got 'remove id'",
        ),
    ],
)
def test_wrong_xml(writers, exchanges, message):
    file = exchanges and RuleFile("e.xml", exchanges)
    with pytest.raises(ValueError, match=message):
        read_nutch_routes(RuleFile("w.xml", writers), file)


def test_a_wrong_expression_of_a_route_is_named():
    routes = IndexRoutes((WriterRule("a", "dummy", {}),), (IndexRoute("hots == 'x'", ("a",)),))
    with pytest.raises(ExpressionError, match="unknown name 'hots'; did you mean 'host'"):
        share_documents(routes, DOCUMENTS)


def test_texts_of_replacements_are_javas():
    (rule,) = read_replacements(r"url=/file\:/http\:my.site.com $1\$/")
    assert (rule.pattern, rule.text) == (r"file\:", "http:my.site.com ${1}$$")
    assert pl.select(pl.lit("file:x").str.replace_all(rule.pattern, rule.text)).item() == (
        "http:my.site.com $x"
    )
