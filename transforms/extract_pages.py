"""Take fields from stored pages by rules: in processes, with a time limit for each page."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from ..io.parsing.parse_pool import ParsePool
from ..io.parsing.parse_worker import Job, ParseTask
from ..policy.extracting.extracted_rows import extract_rows, extracted_schema
from ..policy.extracting.page_records import EXTRACTED_FROM
from ..web.extracting.extraction_rules import RuleSet
from .parsing import parts_of_pages


def extract_pages(
    pages: pl.DataFrame, rules: RuleSet, pool: ParsePool, page_timeout: float
) -> Iterator[tuple[pa.Table, Counter[str]]]:
    """Yields (rows of a set of rules, counts) for one part of the pages after the other.

    A page that stalls or ends its process costs only that page; it is counted.

    Args:
        pages: Rows with ``EXTRACTED_FROM``.
        rules: The rules.
        pool: The processes.
        page_timeout: Longest time for a page, s.

    Raises:
        ParserDied: A process ended twice, and none of its pages is the reason.
    """
    yield extracted_schema(rules).empty_table(), Counter()
    yield from in_processes(pages, rules, extract_rows, pool, page_timeout)


def in_processes(
    pages: pl.DataFrame,
    rules: RuleSet,
    work: Callable[..., tuple[pa.Table, dict[str, int]]],
    pool: ParsePool,
    page_timeout: float,
) -> Iterator[tuple[pa.Table, Counter[str]]]:
    """Yields what a function makes of pages in child processes, see ``extract_pages``.

    Args:
        pages: Rows with ``EXTRACTED_FROM``.
        rules: The rules.
        work: Has the arguments and results of ``extract_rows``.
        pool: The processes.
        page_timeout: Longest time for a page, s.
    """
    pages = pages.select(EXTRACTED_FROM).filter(pl.col("body").is_not_null())
    task = ParseTask(work, functools.partial(_rules_in_child, rules), (), (), page_timeout)
    job = Job("", "a chunk of pages", (), "", task)
    numbers = [pool.submit(job, part.to_arrow()) for part in parts_of_pages(pages)]
    with contextlib.ExitStack() as stack:
        stack.callback(pool.abandon, numbers)
        for number in numbers:
            done = pool.result(number)
            yield done.documents, Counter(done.counts)


def _rules_in_child(rules: RuleSet, *_: Any) -> RuleSet:
    """Returns the rules; a task makes its rules of seeds and filters, which these do not need."""
    return rules
