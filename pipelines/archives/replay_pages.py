"""Pages of a replay for people: hosts, pages of a host, captures of a URL, the frame of a page."""

from urllib.parse import quote, urlencode

from ...policy.archives.capture_index import CaptureIndex, ReplayedRows
from ...web.archives.captures import Capture
from ...web.archives.warc_records import timestamp14, warc_date
from ...web.replay.replay_answers import incompleteness
from ...web.replay.replay_requests import FRAMED, page_path
from ...web.urls.row_keys import host_key, shown_url
from ..base.loopback_server import page_start, shown

_ITEMS = 200  # of a page


def start_page(name: str, index: CaptureIndex, first: int) -> str:
    """Returns the page with the hosts of an archive.

    Args:
        name: Name of the archive.
        index: Its captures.
        first: Number of hosts that are left out before.
    """
    hosts = index.hosts()
    items = [
        f'<li><a href="/?{shown(urlencode({"host": host}))}">{shown(host or "file:")}</a> '
        f'<span class="soft">{urls:,}</span></li>'
        for host, urls in hosts.slice(first, _ITEMS).iter_rows()
    ]
    form = (
        '<form action="/" method="get"><input name="url" aria-label="URL" '
        'placeholder="http://" autocomplete="off" autofocus><button>Show</button></form>'
    )
    steps = _steps({}, first, len(hosts))
    return _page(name, f"{form}{_list(items)}{steps}")


def host_page(name: str, host: str, index: CaptureIndex, first: int) -> str:
    """Returns the page with the pages of a host, each with its newest capture."""
    rows = index.pages_of(host_key(host))
    items = [
        f'<li><a href="{_href(page_path(url, timestamp14(time)))}">{shown(url)}</a> '
        f'<span class="soft">{_facts(status, mime)} · '
        f'<a href="{_href(page_path(url, "*"))}">captures</a></span></li>'
        for url, time, status, mime in _shown_rows(rows.slice(first, _ITEMS))
    ]
    return _page(f"{host} in {name}", _list(items) + _steps({"host": host}, first, len(rows)))


def captures_page(name: str, url: str, rows: ReplayedRows) -> str:
    """Returns the page with the captures of a URL, the newest first."""
    items = [
        f'<li><a href="{_href(page_path(own, timestamp14(time)))}">{warc_date(time)}</a> '
        f'<span class="soft">{_facts(status, mime)} · {shown(own)}</span></li>'
        for own, time, status, mime in _shown_rows(rows.reverse().head(10 * _ITEMS))
    ]
    return _page(f"{url} in {name}", _list(items))


def framed_page(capture: Capture, url: str, secret: str) -> str:
    """Returns the page that shows an archived page in a frame, which cannot leave the archive.

    Args:
        capture: The capture.
        url: The URL that was asked for.
        secret: The first part of the path of framed pages.
    """
    source = f"{secret}{page_path(url, timestamp14(capture.time), FRAMED)}"
    incomplete = incompleteness(capture)
    warning = f"<strong>incomplete: {shown(incomplete)}</strong> · " if incomplete else ""
    return (
        f'{page_start(url)}<body class="frame"><header class="soft"><a href="/">Archive</a> · '
        f"{warning}{warc_date(capture.time)} · "
        f'<a href="{_href(page_path(url, "*"))}">captures</a> · {shown(url)}</header>'
        f'<iframe title="Archived page" sandbox="allow-scripts allow-forms" '
        f'src="{_href(source)}"></iframe></body></html>\n'
    )


def message_page(title: str, message: str) -> str:
    """Returns a page that says one thing."""
    return _page(title, f'<p role="alert">{shown(message)}</p>')


def _shown_rows(rows: ReplayedRows) -> list[tuple[str, int, int | None, str | None]]:
    columns = rows.select("key", "time", "status", "mime").iter_rows()
    return [(shown_url(key), time, status, mime) for key, time, status, mime in columns]


def _page(title: str, content: str) -> str:
    return (
        f'{page_start(title)}<body><header><h1>{shown(title)}</h1><a href="/">All hosts</a></header>'
        f"<main>{content}</main></body></html>\n"
    )


def _list(items: list[str]) -> str:
    return f"<ol>{''.join(items)}</ol>" if items else "<p>Nothing is here.</p>"


def _facts(status: int | None, mime: str | None) -> str:
    kind = (mime or "").partition(";")[0].strip()
    return " ".join(filter(None, (str(status or ""), shown(kind[:80]))))


def _steps(fields: dict[str, str], first: int, total: int) -> str:
    steps = []
    if first > 0:
        steps.append(("Previous", max(0, first - _ITEMS)))
    if first + _ITEMS < total:
        steps.append(("Next", first + _ITEMS))
    links = (
        f'<a href="/?{shown(urlencode({**fields, "first": start}))}">{name}</a>'
        for name, start in steps
    )
    return f'<nav aria-label="Pages of the list">{"".join(links)}</nav>' if steps else ""


def _href(path: str) -> str:
    return shown(quote(path, safe="%/:=&?~#+!$,;'@()*[]"))
