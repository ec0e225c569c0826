"""The pages of the console as HTML. Texts of strangers stay texts; its one script is served with it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from rich.filesize import decimal

from ...web.base.wording import format_count
from ..base.live import duration
from ..base.loopback_server import content_policy, page_start, shown

_HERE = Path(__file__).parent
_STYLE = (_HERE / "console_page.css").read_text("utf-8")
CONSOLE_SCRIPT = (_HERE / "console_page.js").read_text("utf-8")
CONSOLE_POLICY = content_policy(_STYLE, more="script-src 'self'; connect-src 'self'; ")
_Record = Mapping[str, Any]


def console_page(table: str, base: str, live: str, *, searches: bool) -> str:
    """Returns the console.

    Args:
        table: Address of the table.
        base: Path of the console.
        live: The part that changes, see ``live_part``.
        searches: Whether there is an index to search.
    """
    state = live.partition('data-state="')[2].partition('"')[0] or "unknown"
    top = (
        f'<div class="top"><p id="state" role="status" class="state {state}">{state}</p>'
        '<p class="soft" id="looked"></p>'
        '<button type="button" class="quiet" id="pause" hidden>Pause</button></div>'
    )
    script = f'<script type="module" src="{base}console.js"></script>'
    main = f'<main id="live" data-address="{base}live">{live}</main>'
    return _page(table, base, top + _forms(base, "", searches=searches), main, script)


def explained_page(
    table: str, base: str, url: str, lines: Sequence[str], message: str, *, searches: bool
) -> str:
    """Returns the page that explains a URL.

    Args:
        table: Address of the table.
        base: Path of the console.
        url: The URL; empty if none was typed.
        lines: What ``explain`` says of it, the verdict last.
        message: What is wrong; empty if nothing is.
        searches: Whether there is an index to search.
    """
    pairs = (line.partition(": ")[::2] for line in lines[:-1])
    terms = "".join(f"<dt>{shown(name)}</dt><dd>{shown(text)}</dd>" for name, text in pairs)
    content = f'<p role="alert">{shown(message)}</p>' if message else f"<dl>{terms}</dl>"
    if lines:
        content = f'<p class="verdict">{shown(lines[-1].removeprefix("verdict: "))}</p>{content}'
    if not (url or message):
        content = "<p>Type a URL: what would happen to it, step by step?</p>"
    return _page(
        table,
        base,
        _forms(base, url, searches=searches),
        f"<main><section><h2>What happens to a URL</h2>{content}</section></main>",
    )


def unreadable_part(message: str) -> str:
    """Returns the live part for a table that cannot be read."""
    return f'<div data-state="unknown"><p role="alert">{shown(message)}</p></div>'


def live_part(record: _Record, base: str) -> str:
    """Returns the part of the console that changes, as HTML.

    Args:
        record: What was seen of the table, see ``watched_record``.
        base: Path of the console.
    """
    problems = "".join(f"<li>{shown(text)}</li>" for text in record["problems"])
    wrong = f'<ul class="problems" aria-label="What is wrong">{problems}</ul>' if problems else ""
    panels = "".join(
        [
            *(_work(work) for work in record["running"]),
            *([] if record["running"] else [_panel("Nothing runs", _last(record["last"]), "wide")]),
            *(_hosts(work) for work in record["running"]),
            *(
                _failures(work, base)
                for work in record["running"] or filter(None, [record["last"]])
            ),
            _urls(record["urls"]),
            _batches(record["batches"]),
            _snapshot(record),
        ]
    )
    return f'<div data-state="{record["state"]}">{wrong}<div class="panels">{panels}</div></div>'


def _page(table: str, base: str, top: str, main: str, script: str = "") -> str:
    head = f"<style>{_STYLE}</style>{script}"
    return (
        f"{page_start(f'{table} - console', head)}<body><header>"
        f'<h1><a href="{base}">Console of {shown(table)}</a></h1>{top}</header>{main}'
        f'<footer class="soft"><a href="{base}report">Report on the whole crawl</a>. Read only. The same for programs: <a href="{base}status.json">'
        "status.json</a>. In a terminal: nutbeam status</footer></body></html>\n"
    )


def _forms(base: str, url: str, *, searches: bool) -> str:
    search = (
        f'<form action="{base}search/" role="search"><label for="query">Search the index</label>'
        '<input type="search" id="query" name="q" maxlength="1000"><button>Search</button></form>'
    )
    return (
        f'<div class="forms"><form action="{base}explain"><label for="url">Explain a URL</label>'
        f'<input type="text" inputmode="url" id="url" name="url" value="{shown(url)}" '
        'autocomplete="off" spellcheck="false" maxlength="20000"><button>Explain</button></form>'
        f"{search if searches else ''}</div>"
    )


def _panel(title: str, content: str, kind: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f"<section{name}><h2>{shown(title)}</h2>{content}</section>"


def _list(pairs: Iterable[tuple[str, Any]], kind: str = "") -> str:
    """Returns terms and their values; those without a value are left out."""
    name = f' class="{kind}"' if kind else ""
    items = "".join(
        f"<dt>{shown(name)}</dt><dd>{shown(str(value))}</dd>"
        for name, value in pairs
        if value not in ("", None)
    )
    return f"<dl{name}>{items}</dl>"


def _moment(time: str | None) -> str:
    """Returns a time of a record, to the second.

    >>> _moment("2026-11-30T03:13:25.991Z")
    '2026-11-30 03:13:25 UTC'
    """
    return f"{time[:10]} {time[11:19]} UTC" if time else ""


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table of HTML cells; the columns whose heads begin with # have numbers."""
    kinds = [' class="number"' if head.startswith("#") else "" for head in heads]
    names = "".join(
        f'<th scope="col"{kind}>{shown(head.removeprefix("#"))}</th>'
        for head, kind in zip(heads, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row"{kind}>{cell}</th>' if not at else f"<td{kind}>{cell}</td>"
            for at, (cell, kind) in enumerate(zip(row, kinds, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    label = f"<caption>{shown(caption)}</caption>" if caption else ""
    return f"<table>{label}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _work(work: _Record) -> str:
    phase, job = work["phase"], work["job"]
    doing = f"{work['command']}: {phase['name'] if phase else job or 'between phases'}"
    facts = _list(
        [
            ("round", phase["round"] if phase else ""),
            ("batch", work["batch"]),
            ("since", _moment(work["began"])),
            ("process", f"{work['pid']} on {work['host']}" if work["host"] else ""),
            ("operation", work["operation"]),
        ]
    )
    answers = _answers(phase) if phase else ""
    progress = _progress(phase) if phase else ""
    content = f'{progress}<div class="split"><div>{facts}</div>{answers}</div>'
    return _panel(doing, content, "wide")


def _progress(phase: _Record) -> str:
    done, total, unit = phase["done"], phase["total"], phase["unit"]
    amount = f"{done:,} of {total:,} {unit}" if total is not None else format_count(done, unit)
    elapsed = phase["elapsed"]
    bar = (
        f'<progress max="{max(total, 1)}" value="{min(done, total)}" aria-label="{shown(amount)}">'
        "</progress>"
        if total is not None
        else ""
    )
    speeds = [f"{phase['rate']:,.1f} {unit}/s now"]
    if elapsed:
        speeds.append(f"{done / elapsed:,.1f} {unit}/s since {duration(elapsed)}")
    if elapsed and phase["counts"].get("bytes"):
        speeds.append(f"{decimal(int(phase['counts']['bytes'] / elapsed))}/s")
    if phase["seconds_left"] is not None:
        speeds.append(f"{duration(phase['seconds_left'])} left")
    return f'<p class="big">{shown(amount)}</p>{bar}<p>{shown(", ".join(speeds))}</p>'


def _answers(phase: _Record) -> str:
    counts = sorted(
        ((name, number) for name, number in phase["counts"].items() if name != "bytes"),
        key=lambda item: -item[1],
    )
    return f"<div><h3>Answers and results</h3>{_counts(counts)}</div>" if counts else ""


def _counts(counts: Iterable[tuple[str, int]]) -> str:
    return _list(((name, f"{number:,}") for name, number in counts), "counts")


def _hosts(work: _Record) -> str:
    phase = work["phase"]
    if not phase or not (phase["active"] or phase["waiting"] or phase["slowest"]):
        return ""
    rows = (
        [
            shown(host["host"]),
            f"{host['pages']:,}",
            duration(host["seconds"]),
            "under way" if host["active"] else duration(host["wait"]) if host["wait"] else "now",
        ]
        for host in phase["slowest"]
    )
    heads = ("host", "#pages wait", "#take at least", "#next request")
    caption = (
        f"{format_count(phase['active'], 'hosts')} active, {phase['waiting']:,} waiting; "
        "the slowest first"
    )
    return _panel("Hosts that are waited for", _table(caption, heads, rows))


def _failures(work: _Record, base: str) -> str:
    if not work["failures"]:
        return ""
    rows = (
        [
            f"<time>{shown(one['time'][11:19])}</time>",
            shown(one["reason"]),
            f'<a href="{shown(_explain_address(base, one["url"]))}">{shown(one["url"])}</a>',
        ]
        for one in reversed(work["failures"])
    )
    return _panel("Last requests that failed", _table("", ("time, UTC", "reason", "URL"), rows))


def _explain_address(base: str, url: str) -> str:
    return f"{base}explain?{urlencode({'url': url})}"


def _last(last: _Record | None) -> str:
    if last is None:
        return "<p>Nothing has ended yet.</p>"
    end = "ended well" if last["outcome"] == "well" else str(last["outcome"])
    pairs = [("message", last["message"]), ("operation", last["operation"])]
    return f"<p>{shown(last['command'])} {shown(end)} at {_moment(last['ended'])}</p>{_list(pairs)}"


def _urls(urls: _Record | None) -> str:
    if urls is None:
        return _panel("URLs", "<p>Not counted.</p>")
    total = f'<p class="big">{urls["total"]:,}</p>'
    if urls["by_status"] is None:
        return _panel("URLs", f"{total}<p>They are too many to count them by status.</p>")
    statuses = sorted(urls["by_status"].items(), key=lambda item: -item[1])
    due = ((name.replace("_", " "), number) for name, number in urls["due"].items())
    return _panel("URLs", f"{total}{_counts(statuses)}<h3>Due</h3>{_counts(due)}")


def _batches(batches: Sequence[_Record]) -> str:
    rows = (
        [
            shown(batch["id"]),
            f"{batch['urls']:,}",
            shown(batch["phase"]),
            "under way" if batch["under_way"] else shown(f"waits for {batch['waits_for']}"),
        ]
        for batch in batches
    )
    heads = ("batch", "#URLs", "phase", "state")
    content = _table("", heads, rows) if batches else "<p>No batch is open.</p>"
    return _panel("Open batches", content)


def _snapshot(record: _Record) -> str:
    return _panel("Newest snapshot", "".join(_snapshot_parts(record)))


def _snapshot_parts(record: _Record) -> Iterator[str]:
    snapshot, last = record["snapshot"], record["last"]
    if snapshot["number"]:
        yield _list(
            [
                ("number", snapshot["number"]),
                ("made by", snapshot["job"]),
                ("committed", _moment(snapshot["committed"])),
                ("age", duration(snapshot["age_seconds"] or 0.0)),
            ]
        )
    if record["running"] and last is not None and last["outcome"] != "well":
        yield f"<h3>The last work before</h3>{_last(last)}"
    if snapshot["counts"]:
        yield f"<h3>It counted</h3>{_counts(snapshot['counts'].items())}"
