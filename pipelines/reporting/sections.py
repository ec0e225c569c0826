"""The sections of a report as HTML: figures of one crawl, or of two side by side."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...policy.components.reasons import Reason
from ...policy.reporting.crawl_figures import CrawlFigures, DroppedFigures, HostFigures
from ..base.loopback_server import shown
from ..checkers.reasons import advice_of
from .charts import Chart, titled_chart
from .fragments import (
    Cell,
    change_text,
    counts_table,
    day_after,
    foreign,
    link_to,
    number_text,
    side_by_side,
    table,
)
from .host_graph import draw_host_links
from .job_sections import rounds_section, speed_section

_CODE = re.compile(r"`([^`]+)`")
_BLOCKS = {
    "robots": "robots.txt",
    "robots_failing": "robots.txt that fails",
    "denied": "401 and 403",
    "busy": "429",
    "walls": "bot walls",
}
_MOST_DROPPED = 60
_MOST_LINKS = 25


class ReportSection(NamedTuple):
    """A section of the page.

    Attributes:
        name: Its anchor.
        title: Its title.
        content: Its HTML.
    """

    name: str
    title: str
    content: str


class LabelledCrawl(NamedTuple):
    """A crawl with what it is called beside another.

    Attributes:
        label: Its name, as text.
        figures: Its figures.
    """

    label: str
    figures: CrawlFigures


Crawls = Sequence[LabelledCrawl]


def report_sections(crawls: Crawls) -> list[ReportSection]:
    """Returns all sections.

    Args:
        crawls: One crawl, or two: the second is what the first is compared with.
    """
    return [
        ReportSection("state", "State", _state(crawls)),
        ReportSection("rounds", "Rounds", _each(crawls, rounds_section)),
        ReportSection("speed", "Speed", _each(crawls, speed_section)),
        ReportSection("due", "Due and fresh", _due(crawls)),
        ReportSection("hosts", "Hosts", _each(crawls, _hosts)),
        ReportSection("blocking", "Hosts that block", _blocking(crawls)),
        ReportSection("answers", "Answers and types", _answers(crawls)),
        ReportSection("dropped", "What was left out, and why", _each(crawls, _dropped)),
        ReportSection("duplicates", "Duplicates", _each(crawls, _duplicates)),
        ReportSection("links", "Links between hosts", _each(crawls, _links)),
        ReportSection("pages", "Pages", _each(crawls, _pages)),
    ]


def tiles(crawls: Crawls) -> str:
    """Returns the most important figures, as a list of names and values."""
    numbers: list[tuple[str, Callable[[CrawlFigures], int]]] = [
        ("URLs", lambda one: one.urls),
        ("fetched", lambda one: _of_status(one, "db_fetched", "db_notmodified")),
        ("unfetched", lambda one: _of_status(one, "db_unfetched")),
        ("gone", lambda one: _of_status(one, "db_gone")),
        ("hosts", lambda one: one.hosts),
        ("due now", lambda one: one.due.now),
        ("kept from the crawler", lambda one: sum(one.blocks.values())),
    ]
    return "".join(
        f"<div><dt>{shown(name)}</dt><dd>{number_text(number(crawls[0].figures))}"
        f"{_beside(crawls, number)}</dd></div>"
        for name, number in numbers
    )


def _of_status(figures: CrawlFigures, *names: str) -> int:
    return sum(figures.statuses.get(name, 0) for name in names)


def _beside(crawls: Crawls, number: Callable[[CrawlFigures], int]) -> str:
    if len(crawls) == 1:
        return ""
    one, other = (number(crawl.figures) for crawl in crawls)
    return f"<small>{number_text(other)} there, {change_text(other, one)}</small>"


def _each(crawls: Crawls, content: Callable[[CrawlFigures, str], str]) -> str:
    """Returns what a function makes of each crawl, side by side; it gets the end of captions, too."""
    if len(crawls) == 1:
        return content(crawls[0].figures, "")
    parts = (f"<div>{content(crawl.figures, f', {crawl.label}')}</div>" for crawl in crawls)
    return f'<div class="columns">{"".join(parts)}</div>'


def _counts(
    crawls: Crawls, name: str, caption: str, head: str, unit: str, kind: str = "lying"
) -> str:
    """Returns a figure that is numbers by name: a chart of each crawl, and a table."""
    counts: list[Mapping[str, int]] = [getattr(crawl.figures, name) for crawl in crawls]
    charts = "".join(
        titled_chart(_counts_chart(f"{caption}{_end(crawls, crawl)}", unit, one, kind))
        for crawl, one in zip(crawls, counts, strict=True)
        if len(one) > 1
    )
    labels = [crawl.label for crawl in crawls]
    below = bool(charts) and len(crawls) == 1
    return charts + counts_table(caption, head, unit, counts, labels, below_chart=below)


def _end(crawls: Crawls, crawl: LabelledCrawl) -> str:
    return f", {crawl.label}" if len(crawls) > 1 else ""


def _counts_chart(title: str, unit: str, counts: Mapping[str, int], kind: str) -> Chart:
    first = dict(list(counts.items())[: 10 if kind == "lying" else 40])
    return Chart(kind, title, list(first), {unit: list(first.values())}, unit)


def _state(crawls: Crawls) -> str:
    return side_by_side(
        _counts(crawls, "statuses", "URLs by status", "status", "URLs"),
        _counts(crawls, "depths", "URLs by distance from a seed", "distance", "URLs", "bars"),
    )


def _due(crawls: Crawls) -> str:
    charts = "".join(_due_chart(crawl.figures, _end(crawls, crawl)) for crawl in crawls)
    due = [_due_counts(crawl.figures) for crawl in crawls]
    labels = [crawl.label for crawl in crawls]
    return side_by_side(
        charts
        + counts_table("Due URLs over the next 90 days", "when", "URLs", due, labels, most=100),
        _counts(
            crawls,
            "ages",
            "Living pages by the time since their last request",
            "age",
            "pages",
            "bars",
        ),
    )


def _due_chart(figures: CrawlFigures, end: str) -> str:
    labels = ["now", *(day_after(figures.now, day) for day in range(1, len(figures.due.days) + 1))]
    numbers = [figures.due.now, *figures.due.days]
    title = f"URLs that become due, by day (UTC){end}"
    return titled_chart(Chart("bars", title, labels, {"URLs": numbers}, "URLs"))


def _due_counts(figures: CrawlFigures) -> dict[str, int]:
    """Returns numbers of due URLs by time, weeks of seven days summed."""
    due, counts = figures.due, {"now": figures.due.now}
    for first in range(0, len(due.days), 7):
        last = min(first + 7, len(due.days))
        counts[f"in {first + 1} to {last} days"] = sum(due.days[first:last])
    counts["later"] = due.later
    return counts | ({"never: the row has no time": due.never} if due.never else {})


def _hosts(figures: CrawlFigures, end: str) -> str:
    def of_hosts(caption: str, hosts: Sequence[HostFigures]) -> str:
        rows = (
            (foreign(one.host), one.urls, one.fetched, one.gone, one.failing, one.mean_ms)
            for one in hosts
        )
        heads = ("host", "URLs", "fetched", "gone", "failing", "mean answer, ms")
        return table(f"{caption}{end}", heads, rows)

    return side_by_side(
        of_hosts("Hosts with most URLs", figures.biggest),
        of_hosts("Slowest hosts, by the mean time of their last answers", figures.slowest),
        of_hosts("Hosts with most URLs whose last request failed", figures.failing),
    )


def _blocking(crawls: Crawls) -> str:
    text = (
        '<p class="soft">A bot wall is the answer of a guard in place of the page. Such an answer is no '
        "content: the page keeps its text and its signature, and is tried again later.</p>"
    )
    guards = [crawl.figures.guards for crawl in crawls]
    labels = [crawl.label for crawl in crawls]
    kinds = [
        {_BLOCKS[name]: number for name, number in crawl.figures.blocks.items()} for crawl in crawls
    ]
    by_kind = counts_table("URLs kept from the crawler", "by", "URLs", kinds, labels)
    found = counts_table("URLs by the bot wall that answered", "guard", "URLs", guards, labels)
    return text + _each(crawls, _blocking_table) + side_by_side(by_kind, found)


def _blocking_table(figures: CrawlFigures, end: str) -> str:
    rows = (
        (
            foreign(one.host),
            one.robots,
            one.robots_failing,
            one.denied,
            one.busy,
            one.walls,
            shown(", ".join(one.guards)) or "-",
        )
        for one in figures.blocking
    )
    heads = ("host", "robots.txt", "robots.txt fails", "401, 403", "429", "bot wall", "guard")
    return table(f"Hosts that keep most URLs from the crawler{end}", heads, rows)


def _answers(crawls: Crawls) -> str:
    return side_by_side(
        _counts(crawls, "codes", "Answers by code", "code", "URLs"),
        _counts(crawls, "types", "Types, as servers declare them", "type", "URLs"),
        _counts(crawls, "languages", "Languages of living pages", "language", "pages")
        + "".join(map(_languages_read, crawls)),
    )


def _languages_read(crawl: LabelledCrawl) -> str:
    """Returns a line that says how many pages were read, if it is not all of them."""
    pages, all_pages = sum(crawl.figures.languages.values()), crawl.figures.links.all_pages
    if pages == all_pages:
        return ""
    return (
        f'<p class="soft">{shown(crawl.label)}: the languages of {pages:,} of {all_pages:,} pages, those '
        "whose texts were stored last.</p>"
    )


def _dropped(figures: CrawlFigures, end: str) -> str:
    rows: list[Sequence[Cell]] = [
        (
            foreign(one.reason),
            shown(one.job),
            shown(one.family),
            one.number,
            shown(one.meaning),
            _advice(one),
        )
        for one in figures.dropped[:_MOST_DROPPED]
    ]
    heads = ("reason", "job", "counted as", "times", "meaning", "what to do")
    rest = len(figures.dropped) - len(rows)
    more = (
        f'<p class="soft">{rest:,} further reasons: nutbeam history --counts</p>'
        if rest > 0
        else ""
    )
    return table(f"Reasons, over all jobs that are known{end}", heads, rows) + more


def _advice(one: DroppedFigures) -> str:
    text = advice_of(Reason(one.reason, one.meaning, one.advice, ()), None)
    return _CODE.sub(r"<code>\1</code>", shown(text))


def _duplicates(figures: CrawlFigures, end: str) -> str:
    number = _of_status(figures, "db_duplicate")
    line = f"<p>{number:,} {'URL is a duplicate' if number == 1 else 'URLs are duplicates'} of a better page{shown(end)}.</p>"
    rows = ((link_to(url), count) for url, count in figures.duplicates)
    return line + table(
        f"Pages with most duplicates{end}", ("page that was kept", "duplicates"), rows
    )


def _links(figures: CrawlFigures, end: str) -> str:
    links = figures.links
    rows = (
        (foreign(links.hosts[source]), foreign(links.hosts[target]), number)
        for source, target, number in links.links[:_MOST_LINKS]
    )
    line = (
        f'<p class="soft">Links in the newest texts of {links.pages:,} of {links.all_pages:,} pages, between '
        f"the {len(links.hosts)} hosts with most URLs{shown(end)}.</p>"
    )
    return line + side_by_side(
        draw_host_links(links), table(f"Links between hosts{end}", ("from", "to", "links"), rows)
    )


def _pages(figures: CrawlFigures, end: str) -> str:
    top = (
        (link_to(page.url), f"{page.score:.3g}", shown(page.status)) for page in figures.top_pages
    )
    return side_by_side(
        table(f"Pages with the highest scores{end}", ("URL", "score", "status"), top),
        f"<p><strong>Samples of pages as text{shown(end)}</strong></p>"
        + "".join(_samples(figures)),
    )


def _samples(figures: CrawlFigures) -> Iterator[str]:
    for sample in figures.samples:
        title = foreign(sample.title) if sample.title else foreign(sample.url)
        yield (
            f'<article class="sample"><h3>{title}</h3><p class="soft">{link_to(sample.url)}</p>'
            f'<p dir="auto">{shown(sample.text)}</p></article>'
        )
