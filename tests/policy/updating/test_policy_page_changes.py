"""What a file of pages changes: decided on frames, without a file."""

from frames import frame_of

from nutbeam.policy.components.blocklist import Names
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.page_facts import (
    COLUMNS_OF_PAGES,
    DOCUMENT_COLUMNS,
    FETCH_LIST_COLUMNS,
    BatchOrigin,
    FactNeeds,
    PageFacts,
    TableFacts,
    in_file,
)
from nutbeam.policy.components.schema import FETCHLIST, PAGES
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.policy.scoring.scorings import chosen_scorings
from nutbeam.policy.updating.page_changes import decide_page_changes, decide_unchanged_pages
from nutbeam.policy.updating.update_rules import UpdateRules, UpdateTableOptions
from nutbeam.web.exchange.status import FETCH_NOTMODIFIED, FETCH_SUCCESS

RULES = UpdateRules(UpdateTableOptions(scope="any", domain_budget=-1))


def facts_of(pages, documents=(), listed=(), **facts):
    links = [
        {**document, "outlinks": [{"key": key} for key in document["outlinks"]]}
        for document in documents
    ]
    return PageFacts(
        BatchOrigin(1, "b", "batches/b/documents/d"),
        in_file(frame_of(PAGES, *pages).select(COLUMNS_OF_PAGES), "batches/b/pages/p", 1),
        frame_of(DOCUMENTS, *links).select(DOCUMENT_COLUMNS),
        frame_of(FETCHLIST, *listed).select(FETCH_LIST_COLUMNS),
        **facts,
    )


def test_pages_that_answered_304_are_split_off_if_they_have_an_earlier_document():
    keys = ["com.a:http/1", "com.a:http/2"]
    pages = [{"key": key, "fetch_status": FETCH_NOTMODIFIED} for key in keys]
    listed = [{"key": keys[0], "document": "batches/a/documents/d"}, {"key": keys[1]}]
    decided = decide_page_changes(facts_of([*pages, pages[0]], listed=listed), RULES)
    assert decided.unchanged_rows.select("key", "document", "page").rows() == [
        (keys[0], "batches/a/documents/d", "batches/b/pages/p")
    ]
    assert decided.changes.events["key"].to_list() == keys[1:]
    assert decided.counts == {"documents_missing": 1}


def test_links_of_unchanged_pages_bring_no_score_and_only_known_urls():
    key = "com.a:http/1"
    facts = facts_of([{"key": key, "fetch_status": FETCH_NOTMODIFIED, "distance": 2}])
    earlier = frame_of(DOCUMENTS, {"key": key, "outlinks": [{"key": "com.b:http/"}]})
    changes, counts = decide_unchanged_pages(facts._replace(earlier_document_rows=earlier), RULES)
    assert changes.links.select("key", "inlink_score", "inlink_distance", "known_only").rows() == [
        ("com.b:http/", 0.0, 3, True)
    ]
    assert counts == {}
    assert decide_unchanged_pages(facts, RULES)[1] == {"documents_missing": 1}


def test_purged_pages_are_in_no_change():
    purged = TableFacts(blocklist_rows=Names(hosts=("com.gone",)).rows(0))
    pages = [{"key": f"com.{name}:http/", "fetch_status": FETCH_SUCCESS, "response_ms": 5}
             for name in ("a", "gone")]  # fmt: skip
    documents = [{"key": "com.a:http/", "outlinks": ["com.b:http/", "com.gone:http/x"]}]
    decided = decide_page_changes(facts_of(pages, documents, table=purged), RULES)
    assert decided.changes.events["key"].to_list() == ["com.a:http/"]
    assert decided.changes.links["key"].to_list() == ["com.b:http/"]
    assert decided.host_rows["key"].to_list() == ["com.a"]
    assert decided.counts == {"dropped/purged": 2}


def test_rules_declare_the_facts_that_they_need():
    assert RULES.needs == FactNeeds()
    scorings = chosen_scorings(ScoringOptions(scoring=("opic_cash",)))
    by_merit = UpdateRules(UpdateTableOptions(scope="any"), scorings)
    assert by_merit.needs == FactNeeds((), scorings.row_columns, domains=True)
    assert scorings.row_columns
