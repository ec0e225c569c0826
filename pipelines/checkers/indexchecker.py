"""indexchecker: fetches single URLs, and shows what they would become in an index."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import polars as pl

from ...io.indexing.index_writer import IndexTarget
from ...io.indexing.writer_kinds import open_writer
from ...io.snapshots.operations import new_id
from ...io.table.opening import open_table
from ...policy.components.index_schema import DROPPED, INDEX_PAGES
from ...policy.components.schema import ParseStatus, Status, conform, to_frame
from ...policy.indexing.index_decisions import decide_on_pages
from ...policy.indexing.index_documents import DocumentRules, documents_of_pages
from ...policy.indexing.index_options import IndexTableOptions
from ...policy.indexing.writer_documents import mapped_fields, share_documents
from ...transforms.indexing.index_setup import check_index, chosen_writers, document_rules_of
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.content.usage import usage_of_page
from ...web.exchange.status import FETCH_SUCCESS
from ...web.urls.row_keys import to_key
from ..base.command import Argument, Invocation, configuration
from . import parsechecker
from .checking import URLS
from .reasons import NOT_INDEXED, in_brackets

ARGUMENTS: tuple[Argument, ...] = (URLS,)
_LONGEST = 100


@dataclass(frozen=True)
class Options(IndexTableOptions, parsechecker.Options):
    """Options of indexchecker. robots.txt is obeyed."""

    do_index: bool = option(
        False,
        "Send the documents to the writer, too; no table records them. --writer must not be "
        "tantivy, whose index is in a table.",
        group="checkers",
    )


def run(invocation: Invocation) -> int:
    """Prints the document of each URL; returns 1 if one of them would not be indexed."""
    options: Options = invocation.options
    with configuration():
        document_rules = document_rules_of(options)
        check_index(options if options.do_index else _only_filters(options), ".")
    check = functools.partial(_check_page, document_rules=document_rules)
    return parsechecker.check_pages(invocation, check, _lines, "document")


def _only_filters(options: Options) -> Options:
    """Returns options without the writers that are not used."""
    return dataclasses.replace(
        options, writer="dummy", writer_parameters=("path=.",), index_writers="", exchanges=""
    )


def _check_page(
    page: Mapping[str, Any], options: Options, document_rules: DocumentRules
) -> dict[str, Any]:
    """Returns ``document``, or why there is none: ``error`` or ``left_out``."""
    parsed, _, error = parsechecker.parse_answer(page, options)
    if error:
        return {"error": error}
    pages = _index_page(page, parsed.row(0, named=True))
    documents = documents_of_pages(pages, document_rules)
    decided = decide_on_pages(
        pages.select(
            "status", "directives", "usage", fetch_status=pl.lit(FETCH_SUCCESS),
            parse_status=pl.lit(int(ParseStatus.SUCCESS)),
        ),
        document_rules.options,
    )  # fmt: skip
    action, reason = decided.select("action", "reason").row(0)
    if action != "add":
        return {"left_out": str(reason).removeprefix("deleted_")}
    if (dropped := documents.get_column(DROPPED).item()) is not None:
        return {"left_out": f"index filter {dropped}"}
    fields = documents.drop(DROPPED).row(0, named=True)
    record: dict[str, Any] = {
        "document": {n: value for n, value in fields.items() if value is not None}
    }
    if extracted := parsechecker.extracted_records(parsed.row(0, named=True)):
        record["extracted"] = extracted
    return record | ({"sent": _send_document(documents, options)} if options.do_index else {})


def _index_page(page: Mapping[str, Any], parsed: Mapping[str, Any]) -> pl.DataFrame:
    """Returns a page that was fetched and parsed as one row of INDEX_PAGES.

    It has neither inlinks nor a rank, and the score of a new page.
    """
    links = [
        {"key": to_key(link["url"]), "anchor": link["anchor"], "rel": link["rel"]}
        for link in parsed["links"]
    ]
    headers = [(header["name"].lower(), header["value"]) for header in page["headers"] or ()]
    same = ("title", "text", "main", "directives", "language", "charset", "metadata", "signature")
    row = {name: parsed[name] for name in same} | {
        "key": to_key(str(page["url"])), "outlinks": links, "content_type": page["content_type"],
        "usage": usage_of_page(page["usage"], headers, parsed["directives"] or ()),
        "fetch_time": page["fetch_time"], "headers": page["headers"], "ip": page["ip"],
        "status": int(Status.DB_FETCHED), "score": 1.0, "retries": 0,
    }  # fmt: skip
    wide = pl.Schema(INDEX_PAGES)
    row = {
        **row,
        "metadata": [{"key": k, "value": v} for k, v in dict(row["metadata"] or {}).items()],
    }
    return to_frame(conform(pl.DataFrame([row], schema=wide), INDEX_PAGES))


def _send_document(documents: pl.DataFrame, options: Options) -> dict[str, int]:
    """Sends a document; returns the numbers of the writers, by writer and reason."""
    routes, counts = chosen_writers(options), dict[str, int]()
    shares, nothing = share_documents(routes, documents), pl.Series([], dtype=pl.String)
    for rule in routes.writers:
        target = IndexTarget(
            options.index, rule.name, rule.parameters, open_table("."), now_ms(), new_id(),
            part="0" * 16,
        )  # fmt: skip
        writer = open_writer(rule, target)
        if writer.component:
            raise UsageError(
                f"index writer {rule.name!r} keeps its index in a table: nutbeam index sends to it"
            )
        mine = mapped_fields(documents.filter(shares[rule.name]), rule.mapping)
        writer.prepare()
        results = [writer.write(mine, nothing)] if len(mine) else []
        for result in [*results, writer.close()]:
            for reason, number in result.counts.items():
                name = f"{rule.name}/{reason}"
                counts[name] = counts.get(name, 0) + number
        writer.finish()
    return counts


def _lines(record: Mapping[str, Any], options: Options) -> list[str]:
    lines = [f"given: {record['url']}"]
    if "error" in record:
        return [*lines, *parsechecker.error_lines(record, options), ""]
    if "left_out" in record:
        explanation = in_brackets(f"deleted_{record['left_out']}", NOT_INDEXED, options)
        return [*lines, f"not indexed: {record['left_out']}{explanation}", ""]
    for name, value in record["document"].items():
        values = value if isinstance(value, list) else [value]
        lines += [f"{name}: {_short(str(one))}" for one in values]
    lines += parsechecker.extracted_lines(record.get("extracted", ()))
    lines += [f"sent: {name} {number}" for name, number in record.get("sent", {}).items()]
    return [*lines, ""]


def _short(text: str) -> str:
    one = " / ".join(filter(None, text.splitlines()))
    return one if len(one) <= _LONGEST else f"{one[:_LONGEST]}… ({len(text)} characters)"
