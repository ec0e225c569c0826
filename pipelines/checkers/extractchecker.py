"""extractchecker: fetches a URL, and shows what rules take from it; needs no table."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from ...policy.extracting.described_records import describe_rows
from ...transforms.extract_pages import in_processes
from ...transforms.parsing import PoolOptions, parse_pool
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.extracting.rule_reader import read_extraction_file
from ..base.command import Argument, Invocation, configuration
from . import parsechecker
from .parsechecker import check_pages, error_lines

ARGUMENTS = (
    Argument("url", "URL of the page."),
    Argument("rules", "File of rules (toml); see the guide on extracting."),
)
_SHOWN_RECORDS, _SHOWN_CHARS = 20, 200


@dataclass(frozen=True)
class Options(parsechecker.Options):
    """Options of extractchecker. robots.txt is obeyed."""

    GROUP = "checkers"


def run(invocation: Invocation) -> int:
    """Prints each field of each record; returns 1 if the page was not fetched, or no rule is for it."""
    with configuration():
        rules = read_extraction_file(invocation.arguments["rules"], "rules")
    if "extract" in invocation.typed:
        raise UsageError("the rules are an argument of extractchecker: leave out --extract")

    def check(page: Mapping[str, Any], options: Options) -> dict[str, Any]:
        if page["fetch_status"] != "success":
            moved = str(page["fetch_status"]).startswith("redir_")
            reason = "redirected" if moved else f"http_{page['http_code']}"
            return {"error": {"reason": reason, "message": page["redirect"]}}
        row = {"url": page["url"], "body": page["body"] or b"", "last_fetch_time": None, "headers": page["headers"],
               "content_type": options.force_as or page["content_type"]}  # fmt: skip
        frame = pl.DataFrame([row], schema_overrides={"body": pl.Binary, "content_type": pl.String})
        pool = parse_pool(PoolOptions(1, options.parser_memory))
        ((table, _),) = in_processes(frame, rules, describe_rows, pool, options.parser_timeout)
        described = json.loads(table.column("record")[0].as_py())
        named = {
            "rules": rules.name,
            "version": rules.version,
            **described,
            "applied": described["rules"],
        }
        return {"extract": named} if described["rules"] else {"no_rule": named}

    pages = dataclasses.replace(invocation, arguments={"urls": [invocation.arguments["url"]]})
    return check_pages(pages, check, _lines, "extract")


def _lines(record: Mapping[str, Any], options: Options) -> list[str]:
    lines = [f"redirect from: {url}" for url in record.get("redirects", ())]
    if "error" in record:
        return [*lines, *error_lines(record, options)]
    if "no_rule" in record:
        ended = record["no_rule"].get("ended")
        why = f"it was not worked on: {ended}" if ended else "no rule is for this page"
        return [*lines, f"{record['fetch']['url']}: {why}"]
    for rule in record["extract"]["applied"]:
        number = len(rule["records"])
        lines.append(
            f"rule {rule['rule']} (line {rule['line']}): {number} record{'s' * (number != 1)}"
        )
        if ended := rule.get("ended"):
            lines.append(f"  ended: {ended}")
        if cut := rule.get("cut"):
            lines.append(f"  not all of its records: {cut}")
        for one in rule["records"][:_SHOWN_RECORDS]:
            lines += [f"record {one['position']}"] if number > 1 else []
            lines += [text for field in one["fields"] for text in _field_lines(field)]
            if one["missing"]:
                lines.append(f"  left out: it lacks {', '.join(one['missing'])}")
        if number > _SHOWN_RECORDS:
            lines.append(f"and {number - _SHOWN_RECORDS:,} more records")
    return lines


def _field_lines(field: Mapping[str, Any]) -> list[str]:
    value, shown = field["value"], "nothing"
    if value is not None:
        shown = json.dumps(value, ensure_ascii=False)
        shown = shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…"
        shown = f"{shown}  ({field['type']}, {field['source']})"
    lines = [f"  {field['field']}: {shown}"]
    for one in field["failed"]:
        what = json.dumps(one["text"], ensure_ascii=False)
        lines.append(f"    {one['source']}: {what} is no {field['type']}: {one['reason']}")
    return lines
