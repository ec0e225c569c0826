"""Writes the pages of the simulated web, with links in all the forms that people write.

HTML5 in UTF-8 of about 6 KB: title, meta robots, sometimes ``<base>``, navigation, headings,
paragraphs with words by Zipf's law, images, links relative and absolute, and things that look like
links and are not (in comments and scripts, ``mailto:``, ``javascript:``, a bare fragment).
"""

import html
import random
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise, repeat
from urllib.parse import urlsplit

from .model import SimLink, SimPage, SitePlan

VOCABULARY = 4000
# The most frequent words of English, in order, so that a page looks English; then invented ones.
_COMMON = (  # noqa: SIM905
    "the of and to a in is it you that he was for on are with as I his they be at one have this "
    "from or had by hot but some what there we can out other were all your when up use word how "
    "said an each she which do their time if will way about many then them would write like so "
    "these her long make thing see him two has look more day could go come did my sound no most "
    "number who over know water than call first people may down side been now find head stand own "
    "page should country found answer school grow study still learn plant cover food sun four"
).split()
_STARTS = "b br c ch d dr f g gr h j k l m n p pl qu r s st t tr v w".split()  # noqa: SIM905
_VOWELS = "a e i o u ai ea ou é ö".split()  # noqa: SIM905
_ENDS = "l n r s t nd rk st m ck".split()  # noqa: SIM905

_Style = Callable[[str, str], str]


@lru_cache(maxsize=4)
def words(seed: int) -> tuple[str, ...]:
    """Returns the vocabulary of a web, the most frequent word first."""
    dice = random.Random(f"words {seed}")
    vocabulary = dict.fromkeys(_COMMON)
    while len(vocabulary) < VOCABULARY:
        count = 1 + dice.randrange(3)
        parts = (dice.choice(_STARTS) + dice.choice(_VOWELS[: 8 + count]) for _ in range(count))
        vocabulary.setdefault("".join(parts) + dice.choice(_ENDS))
    return tuple(vocabulary)


@lru_cache(maxsize=4)
def _urn(seed: int) -> tuple[str, ...]:
    """Returns 65,536 words, distributed by Zipf's law, so that 16 random bits draw one."""
    sums = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    ends = [round(65_536 * part / sums[-1]) for part in sums]
    counts = [end - start for start, end in pairwise([0, *ends])]
    return tuple(chain.from_iterable(map(repeat, words(seed), counts)))


def title(plan: SitePlan, page: SimPage) -> str:
    """Returns the title of a page, unique in its web except for copies."""
    page = plan.original_page(page)
    if page.number == 0:
        return f"{plan.host_name(page.host)} - home"
    invented = words(plan.seed)[len(_COMMON) :]
    mix = plan.mix("title", *page)
    first, second = invented[mix % 997], invented[mix // 997 % 1999]
    return f"{first.capitalize()} {second} {page.number} - {plan.host_name(page.host)}"


def page_html(plan: SitePlan, page: SimPage) -> bytes:
    """Returns the body of a page; a copy and its original have the same bytes."""
    page = plan.original_page(page)
    robots = {"noindex": "noindex", "nofollow": "index, nofollow"}.get(plan.role(page), "")
    return _document(plan, page, plan.url(page), title(plan, page), robots, plan.links(page))


def lone_html(plan: SitePlan, kind: str, page: SimPage) -> bytes:
    """Returns the body of a ``private`` or ``hidden`` page, which no obedient crawler requests."""
    url = plan.special_url(page.host, kind, page.number)
    links = (SimLink(plan.special_url(page.host, "hidden", page.number), "hidden"),)
    return _document(plan, page, url, f"{kind} {page.number}", "", links)


def _document(
    plan: SitePlan, page: SimPage, url: str, heading: str, robots: str, links: Sequence[SimLink]
) -> bytes:
    dice = random.Random(plan.mix("page", url))
    portable = plan.has_copies(page)
    base = url
    if not portable and dice.random() < 0.1:
        base = plan.url_at(page.host, dice.choice(("/base/", "/docs/deep/er.html", "/")))
    anchors = [_anchor(plan, dice, base, link, portable) for link in links]
    texts = _paragraphs(plan.seed, dice)
    for place, anchor in enumerate(anchors[4::2]):
        texts[place % len(texts)] += f" See {anchor}."
    return "".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f"<title>{html.escape(heading)}</title>\n",
            f'<meta name="robots" content="{robots}">\n' if robots else "",
            f'<base href="{dice.choice((base, _path(base)))}">\n' if base != url else "",
            '<link rel="stylesheet" href="/style.css">\n</head>\n<body id="top">\n',
            '<a href="#content">Skip</a> <a href="">Reload</a>\n' if base == url else "",
            f"<nav><ul>{_items(anchors[:4])}</ul></nav>\n",
            f'<main id="content">\n<h1>{html.escape(heading)}</h1>\n',
            "".join(_section(text, place, dice) for place, text in enumerate(texts)),
            f"<ul>{_items(anchors[5::2])}</ul>\n</main>\n",
            _no_links(page.number) if dice.random() < 0.2 else "",
            f'<footer><a href="mailto:webmaster@{plan.host_name(page.host)}">Contact</a>',
            "</footer>\n</body>\n</html>\n",
        )
    ).encode()


def _items(anchors: Sequence[str]) -> str:
    return "".join(f"<li>{anchor}</li>\n" for anchor in anchors)


def _section(text: str, place: int, dice: random.Random) -> str:
    number = dice.randrange(1000)
    image = f'<img src="/img/0.png?{number}" alt="Figure {number}">\n' if place in (1, 4) else ""
    heading = f"<h2>Part {place // 2}</h2>\n" if place % 2 and place > 1 else ""
    return f"{heading}{image}<p>{text}</p>\n"


def _paragraphs(seed: int, dice: random.Random) -> list[str]:
    paragraphs, urn = [], _urn(seed)
    for _ in range(4 + dice.randrange(6)):
        count = 60 + dice.randrange(110)
        chosen = [urn[drawn] for drawn in struct.unpack(f"<{count}H", dice.randbytes(2 * count))]
        sentences = [
            " ".join(chosen[start : start + 12]).capitalize() for start in range(0, len(chosen), 12)
        ]
        paragraphs.append(". ".join(sentences) + ".")
    return paragraphs


def _no_links(number: int) -> str:
    return (
        f'<!-- <a href="/trap/comment-{number}.html">not a link</a> -->\n'
        f"<script>var s = '<a href=\"/trap/script-{number}.html\">no link either</a>';</script>\n"
        '<a href="javascript:void(0)">Menu</a> <a name="end">End</a>\n'
    )


def _anchor(plan: SitePlan, dice: random.Random, base: str, link: SimLink, portable: bool) -> str:
    styles = _PORTABLE if portable else _STYLES
    href = styles[int(dice.random() * len(styles))](base, link.url)
    if link.fragment:
        href += f"#{link.fragment}"
    rel = ' rel="external nofollow"' if link.nofollow else ""
    text = link.text
    if text.isdecimal():
        text = words(plan.seed)[len(_COMMON) + int(text) % 3000] + f" {text}"
    href = html.escape(href)
    if dice.random() < 0.1:
        return f"<A HREF='{href}'{rel.upper().replace('REL', 'Rel')}>{text}</A>"
    return f'<a class="link" href="{href}"{rel}>{html.escape(text)}</a>'


def _path(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _host(url: str) -> str:
    return url.split("/", 3)[2]


def _upper_case_url(base: str, url: str) -> str:
    return url.replace("http", "HTTP", 1).replace(_host(url), _host(url).upper(), 1)


def _rooted_url(base: str, url: str) -> str:
    return _path(url) if _host(url) == _host(base) else url


def _relative_url(base: str, url: str) -> str:
    if _host(url) != _host(base):
        return url
    folder, target = urlsplit(base).path.rpartition("/")[0] + "/", _path(url)
    if target.startswith(folder):
        return target.removeprefix(folder) or "./"
    return "../" * (folder.count("/") - 1) + target[1:] or "./"


def _dotted_url(base: str, url: str) -> str:
    relative = _relative_url(base, url)
    return relative if relative == url else f"./x/../{relative}"


# Ways to write a URL that do not depend on the page, and all ways.
_PORTABLE: tuple[_Style, ...] = (
    lambda base, url: url,
    lambda base, url: url.removeprefix("http:"),
    _upper_case_url,
)
_STYLES: tuple[_Style, ...] = (
    *(_relative_url,) * 5,
    *(_rooted_url,) * 4,
    *_PORTABLE,
    lambda base, url: url.replace(_host(url), _host(url) + ":80", 1),
    lambda base, url: f"\n {url}",
    _dotted_url,
    lambda base, url: url.replace("%C3%A9", "é"),
)
