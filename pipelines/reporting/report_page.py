"""The report as one HTML page: no script, no request, one style that its policy names by a digest."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from ...policy.reporting.crawl_figures import CrawlFigures
from ..base.loopback_server import shown
from .fragments import foreign, time_text
from .sections import Crawls, LabelledCrawl, ReportSection, report_sections, tiles

REPORT_STYLE = Path(__file__).with_name("report_page.css").read_text("utf-8")


def report_policy() -> str:
    """Returns the Content-Security-Policy of the page: nothing is loaded, no script runs."""
    digest = base64.b64encode(hashlib.sha256(REPORT_STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'none'; base-uri 'none'"


def report_page(figures: CrawlFigures, other: CrawlFigures | None = None) -> str:
    """Returns the page.

    Args:
        figures: The crawl.
        other: What it is compared with.
    """
    crawls = _labelled(figures, other)
    sections = report_sections(crawls)
    title = f"Report on {figures.address}, snapshot {figures.snapshot}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{shown(report_policy())}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f"<title>{shown(title)}</title><style>{REPORT_STYLE}</style></head><body>"
        f"{_header(crawls, sections)}<main>{''.join(map(_section, sections))}</main>"
        '<footer class="soft"><p>Made by nutbeam report. Times are UTC.</p></footer></body></html>\n'
    )


def _labelled(figures: CrawlFigures, other: CrawlFigures | None) -> Crawls:
    if other is None:
        return [LabelledCrawl(figures.address, figures)]
    if other.address == figures.address:
        return [LabelledCrawl(f"snapshot {one.snapshot}", one) for one in (figures, other)]
    return [LabelledCrawl(one.address, one) for one in (figures, other)]


def _header(crawls: Crawls, sections: Sequence[ReportSection]) -> str:
    first = crawls[0].figures
    lines = "".join(
        f"<p>{foreign(one.address)}: snapshot {one.snapshot} of {time_text(one.time)}</p>"
        for one in (crawl.figures for crawl in crawls)
    )
    notes = "".join(
        f'<p class="note">{shown(note)}</p>' for crawl in crawls for note in crawl.figures.notes
    )
    links = "".join(f'<li><a href="#{one.name}">{shown(one.title)}</a></li>' for one in sections)
    compared = f" compared with {foreign(crawls[1].label)}" if len(crawls) > 1 else ""
    return (
        f"<header><h1>Crawl {foreign(first.address)}{compared}</h1>{lines}{notes}"
        f'<dl class="tiles">{tiles(crawls)}</dl>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
    )


def _section(section: ReportSection) -> str:
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">'
        f'<h2 id="{section.name}-title">{shown(section.title)}</h2>{section.content}</section>'
    )
