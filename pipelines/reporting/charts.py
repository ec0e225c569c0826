"""Draws charts as SVG without scripts and styles of their own: the page's style colours them.

pygal lays them out. Of its SVG only shapes and texts stay; descriptions become titles, which browsers show
when the pointer is over a shape. Colours are classes, so that light and dark follow the page.
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...web.base.imports import check_library
from ...web.base.visible import visible
from ..base.command import configuration

_WIDTH, _HEIGHT = 640, 320
_MOST_LABELS = 9
_LABEL_CHARS = 24
# Parts of pygal's SVG that need its script or its style.
_LEFT_OUT = {"defs", "title"}
_OVERLAYS = ("tooltip-overlay", "text-overlay", "plot overlay", "titles")
_KEPT_CLASSES = ("series", "color-", "axis", "guide", "line", "major", "background", "legend", "x", "y",
                 "nofill", "backwards", "dot", "horizontal", "vertical", "bar")  # fmt: skip


class Chart(NamedTuple):
    """What a chart shows.

    Attributes:
        kind: ``bars``, ``stacked``, ``lines`` or ``lying``: bars that lie.
        title: What it shows, for people who do not see it.
        labels: Names along the axis.
        series: Numbers by name of their series; as many as there are labels.
        unit: The unit of the numbers, such as ``URLs``.
        colors: Numbers of the page's colours, one for each series; by default in their order.
    """

    kind: str
    title: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    unit: str = ""
    colors: Sequence[int] = ()


def check_charts() -> None:
    """Checks that charts can be drawn.

    Raises:
        UsageError: pygal is not installed.
    """
    with configuration():
        check_library("pygal", "report", "report")


def draw_chart(chart: Chart) -> str:
    """Returns a chart as an SVG element; see ``check_charts``."""
    root = _layout(chart).render_tree()
    _clean(root)
    _recolor(root, chart.colors)
    title = html.escape(visible(chart.title))
    inner = "".join(_markup(child) for child in root)
    return (
        f'<svg class="chart" role="img" aria-label="{title}" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f"{inner}</svg>"
    )


def titled_chart(chart: Chart) -> str:
    """Returns a chart with its title as HTML; empty if it has no numbers."""
    if not any(any(numbers) for numbers in chart.series.values()):
        return ""
    return f"<figure><figcaption>{html.escape(visible(chart.title))}</figcaption>{draw_chart(chart)}</figure>"


def _layout(chart: Chart) -> Any:
    """Returns pygal's chart."""
    import pygal
    from pygal.style import Style

    kinds = {"bars": pygal.Bar, "stacked": pygal.StackedBar, "lines": pygal.Line,
             "lying": pygal.HorizontalBar}  # fmt: skip
    # Names beside bars have room for the larger letters of a narrow screen.
    size = 18 if chart.kind == "lying" else 13
    style = Style(label_font_size=size, major_label_font_size=size, legend_font_size=14)
    layout = kinds[chart.kind](
        style=style, js=(), disable_xml_declaration=True, width=_WIDTH, height=_HEIGHT, margin=8,
        legend_at_bottom=True, legend_at_bottom_columns=len(chart.series), no_prefix=True,
        show_legend=len(chart.series) > 1, dots_size=2.5, truncate_legend=-1,
        truncate_label=_LABEL_CHARS, formatter=_exact_number, value_formatter=short_number, max_scale=6,
    )  # fmt: skip
    labels = [visible(label) for label in chart.labels]
    # Bars that lie are drawn from below.
    order = slice(None, None, -1) if chart.kind == "lying" else slice(None)
    layout.x_labels = labels[order]
    if chart.kind != "lying" and len(labels) > _MOST_LABELS:
        layout.x_labels_major_count = _MOST_LABELS
        layout.show_minor_x_labels = False
    for name, numbers in chart.series.items():
        layout.add(visible(name), list(numbers)[order])
    return layout


def _exact_number(number: float | None) -> str:
    return "" if number is None else f"{number:,.10g}"


def short_number(number: float | None) -> str:
    """Returns a number for an axis.

    >>> [short_number(number) for number in (None, 0, 0.25, 1500, 2_500_000, 12)]
    ['', '0', '0.25', '1.5 k', '2.5 M', '12']
    """
    if number is None:
        return ""
    for least, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= least:
            return f"{number / least:.3g}{unit}"
    return f"{number:.3g}"


def _clean(element: Any) -> None:
    """Removes what needs a script or a style from an element of pygal's SVG and its descendants."""
    label = next((c.text for c in element if _tag(c) == "desc" and c.get("class") == "x_label"), "")
    value = next((c.text for c in element if _tag(c) == "desc" and c.get("class") == "value"), "")
    for child in list(element):
        if not isinstance(child.tag, str) or _is_left_out(child) or _tag(child) == "desc":
            element.remove(child)
        else:
            _clean(child)
    if value:
        element.set("data-title", f"{label}: {value}" if label else value)


def _recolor(root: Any, colors: Sequence[int]) -> None:
    """Gives series the colours of their meaning: pygal numbers them in their order."""
    classes = {f"color-{at}": f"color-{color}" for at, color in enumerate(colors)}
    for element in root.iter():
        if words := element.get("class"):
            element.set("class", " ".join(classes.get(word, word) for word in words.split()))


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _is_left_out(element: Any) -> bool:
    kinds = element.get("class") or ""
    return _tag(element) in _LEFT_OUT or kinds.endswith(_OVERLAYS)


def _markup(element: Any) -> str:
    """Returns an element as HTML, with the attributes that the page's style and shapes need."""
    words = (element.get("class") or "").split()
    classes = " ".join(word for word in words if word.startswith(_KEPT_CLASSES))
    given = {
        n: v for n, v in element.attrib.items() if n not in ("class", "id", "style", "data-title")
    }
    if classes:
        given["class"] = classes
    attributes = "".join(f' {name}="{html.escape(value)}"' for name, value in given.items())
    title = element.get("data-title")
    inner = f"<title>{html.escape(title)}</title>" if title else ""
    inner += html.escape(element.text or "")
    inner += "".join(_markup(child) + html.escape(child.tail or "") for child in element)
    name = _tag(element)
    return f"<{name}{attributes}>{inner}</{name}>"
