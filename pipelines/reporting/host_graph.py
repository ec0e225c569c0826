"""Draws the links between hosts: hosts on a circle, a curve for each pair with links."""

import html
import math

from ...policy.reporting.crawl_figures import HostLinks
from ...web.base.visible import visible

_SIZE, _RADIUS, _MIDDLE = 640, 200.0, 320.0
_LABEL_CHARS = 22
_NARROWEST, _WIDEST = 0.75, 8.0


def draw_host_links(links: HostLinks) -> str:
    """Returns the drawing as an SVG element; empty if there are no links.

    >>> draw_host_links(HostLinks(("a.com", "b.com"), ((0, 1, 5),))).count("<circle")
    2
    >>> draw_host_links(HostLinks(("a.com",)))
    ''
    """
    if not links.links:
        return ""
    both: dict[tuple[int, int], int] = {}
    for source, target, number in links.links:
        pair = min(source, target), max(source, target)
        both[pair] = both.get(pair, 0) + number
    most = max(both.values())
    curves = "".join(_curve(links, pair, number, most) for pair, number in both.items())
    nodes = "".join(_node(links.hosts, place) for place in range(len(links.hosts)))
    return (
        f'<svg class="chart graph" role="img" aria-label="Links between the largest hosts; the table '
        f'below has the numbers" viewBox="0 60 {_SIZE} {_SIZE - 120}">{curves}{nodes}</svg>'
    )


def _point(place: int, hosts: int, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * place / hosts - math.pi / 2
    return _MIDDLE + radius * math.cos(angle), _MIDDLE + radius * math.sin(angle)


def _curve(links: HostLinks, pair: tuple[int, int], number: int, most: int) -> str:
    count = len(links.hosts)
    (x1, y1), (x2, y2) = (_point(place, count, _RADIUS) for place in pair)
    share = number / most
    width = _NARROWEST + (_WIDEST - _NARROWEST) * share
    bend_x, bend_y = ((a + b) / 4 + _MIDDLE / 2 for a, b in ((x1, x2), (y1, y2)))
    names = " and ".join(html.escape(visible(links.hosts[place])) for place in pair)
    return (
        f'<path class="edge" d="M{x1:.1f} {y1:.1f}Q{bend_x:.1f} {bend_y:.1f} {x2:.1f} {y2:.1f}" '
        f'stroke-width="{width:.1f}" opacity="{0.25 + 0.6 * share:.2f}"><title>{names}: {number:,} links</title></path>'
    )


def _node(hosts: tuple[str, ...], place: int) -> str:
    x, y = _point(place, len(hosts), _RADIUS)
    label_x, label_y = _point(place, len(hosts), _RADIUS + 14)
    label_y += 6 * (1 if y > _MIDDLE else -1) if abs(x - _MIDDLE) < 1 else 0
    anchor = "middle" if abs(x - _MIDDLE) < 1 else "start" if x > _MIDDLE else "end"
    name = visible(hosts[place])
    short = name if len(name) <= _LABEL_CHARS else f"{name[: _LABEL_CHARS - 1]}…"
    return (
        f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="6"></circle>'
        f'<text x="{label_x:.1f}" y="{label_y + 5:.1f}" text-anchor="{anchor}">{html.escape(short)}'
        f"<title>{html.escape(name)}</title></text>"
    )
