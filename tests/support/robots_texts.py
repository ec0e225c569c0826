"""Texts of robots.txt: as sites have them, as chance makes them, and as one would write them to do harm."""

import itertools
import random

MOST = 500 * 1024
WORDPRESS = """\
User-agent: *
Disallow: /wp-admin/
Allow: /wp-admin/admin-ajax.php
Disallow: /wp-includes/
Disallow: /*?s=
Disallow: /*&s=
Disallow: /search/
Disallow: */trackback/
Disallow: */feed/$
Disallow: /?p=*
Disallow: /tag/{word}/
Allow: /wp-content/uploads/{year}/*.pdf$

Sitemap: https://{host}/sitemap_index.xml
"""
DRUPAL = """\
#
# robots.txt
#
# This file is to prevent the crawling and indexing of certain parts of your site.

User-agent: *
Crawl-delay: 10
# CSS, JS, Images
Allow: /core/*.css$
Allow: /core/*.css?
Allow: /core/*.js$
Allow: /profiles/*.png
# Directories
Disallow: /core/
Disallow: /profiles/
# Paths (clean URLs)
Disallow: /admin/
Disallow: /node/add/
Disallow: /user/{word}
# Paths (no clean URLs)
Disallow: /index.php/admin/
Disallow: /?q=admin/
Disallow: /?q={word}/
"""
MEDIAWIKI = """\
User-agent: {other}
Disallow: /

User-agent: nutbot
User-agent: {other}-image
Allow: /w/api.php?action=mobileview&
Allow: /w/load.php?
Allow: /wiki/Special:RecentChanges$
Disallow: /w/
Disallow: /wiki/Special:
Disallow: /wiki/Special%3A{word}
Disallow: /wiki/Spécial:{word}
Disallow: /wiki/Wikipedia%3AArticles_for_deletion
Disallow: /wiki/特別:検索
Crawl-delay: {delay}

User-agent: *
Disallow: /api/
Disallow: /trap/
"""
SEARCH = """\
User-agent: *
Disallow: /search
Allow: /search/about
Allow: /search/howsearchworks
Disallow: /sdch
Disallow: /groups
Disallow: /index.html?
Disallow: /?
Allow: /?hl=
Disallow: /?hl=*&
Allow: /?hl=*&gws_rd=ssl$
Disallow: /?hl=*&*&gws_rd=ssl
Allow: /?gws_rd=ssl$
Disallow: /m/{word}?
Disallow: /imgres
Disallow: /maps/api/js?
Allow: /maps?*output=classic*
Disallow: /maps?
Allow: /{word}/index.html

# Others
User-agent: {other}
Allow: /imgres
Request-rate: 1/5

Sitemap: https://{host}/sitemap.xml
Sitemap: https://{host}/news/{word}.xml
"""
SHOP = """\
User-agent: {other}
User-agent: {other}-video
Disallow:

User-agent: *
Disallow: /cart
Disallow: /checkout
Disallow: /*/{word}/*sort_by*
Disallow: /collections/*+*
Disallow: /collections/*%2B*
Disallow: /collections/*%2b*
Disallow: /*?*variant=*
Disallow: /*.atom
Disallow: /{word}$
Disallow: /cgi-bin
Disallow: /*preview_theme_id*
"""
FORUM = """\
User-agent: nutbot
Disallow: /members/
Disallow: /attachments/*.{word}

User-agent: *
Disallow: /
"""
TEMPLATES = (WORDPRESS, DRUPAL, MEDIAWIKI, SEARCH, SHOP, FORUM)
_WORDS = (
    "blog",
    "archive",
    "produkte",
    "über-uns",
    "caf%C3%A9",
    "a~b",
    "%7Euser",
    "en-US",
    "v1.2",
    "日本",
)
_OTHERS = ("Googlebot", "bingbot", "AhrefsBot", "ia_archiver", "360Spider", "GPTBot")
_PATHS = (
    *("/", "/robots.txt", "/index.html", "/wp-admin/", "/wp-admin/admin-ajax.php", "/?s=x", "/a?b=1&s=x"),
    *("/tag/blog/", "/a/feed/", "/a/feed/x", "/a/trackback/", "/wp-content/uploads/2024/x.pdf"),
    *("/core/a.css", "/core/a.css?v", "/core/misc/x", "/profiles/x.png", "/user/blog", "/?q=admin/x"),
    *("/w/load.php?x", "/w/index.php", "/wiki/Special:RecentChanges", "/wiki/Special%3Ablog"),
    *("/wiki/Sp%C3%A9cial:archive", "/wiki/特別:検索", "/wiki/%E7%89%B9%E5%88%A5:検索", "/trap/x", "/api/"),
    *("/search", "/search/about", "/?hl=de", "/?hl=de&x", "/?hl=de&gws_rd=ssl", "/?hl=de&x&gws_rd=ssl"),
    *("/maps?x&output=classic&y", "/m/blog?x", "/blog/index.html", "/blog/", "/archive", "/archive/x"),
    *("/cart", "/en/blog/x?sort_by=y", "/collections/a+b", "/collections/a%2Bb", "/x?y&variant=3"),
    *("/%7Euser", "/~user", "/a~b/?p=1", "/members/x", "/attachments/x.blog", "/caf%c3%a9/", "/über-uns$"),
    *("/a%24b", "/a$b", "/x*y", "/%2A", "/a%2Fb", "/a//b", "/x;y=1", "/100%", "/%zz", "/a b", "/x#s=1"),
)  # fmt: skip


def honest(number):
    """Returns a robots.txt as sites have them."""
    chance = random.Random(number)
    parts = [
        template.format(
            host=f"w{number}.example.com", word=chance.choice(_WORDS), other=chance.choice(_OTHERS),
            year=chance.randint(2000, 2030), delay=chance.choice(("1", "2.5", "10", "soon")),
        )
        for template in chance.sample(TEMPLATES, chance.choice((1, 1, 1, 2)))
    ]  # fmt: skip
    lines = "\n".join(parts).split("\n")
    if chance.random() < 0.3:
        lines = [f"  {line} \t" if chance.random() < 0.3 else line for line in lines]
    if chance.random() < 0.3:
        lines = [line.replace(": ", chance.choice((":", " : ", ":\t"))) for line in lines]
    if chance.random() < 0.2:
        lines = [line.swapcase() if line.startswith("User") else line for line in lines]
    return chance.choice(("", "\ufeff")) + chance.choice(("\n", "\r\n", "\r")).join(lines)


def honest_urls(number):
    """Returns URLs that such files speak of."""
    chance = random.Random(number)
    made = [f"/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}?x={n}" for n in range(5)]
    return [f"https://w.example.com{path}" for path in (*_PATHS, *made)]


_PIECES = ("/", "a", "b", "ab", "*", "$", "%41", "%2f", "%2F", "%25", "%", "%e4", "ä", "é", "?", "&", "=",
           ".html", "/index.html", "%2A", "%24", " ", "~", "%7E", "+", ";", ":", "日", "%C3%A4", "|",
           "<")  # fmt: skip
# Fields that end the names of a group, if anything does: see the differences from Protego.
_FIELDS = ("Disallow:", "Allow:", "disallow :", "ALLOW: ", "Disallow ", "Dissallow: ", "Disallow\t")
_OTHER_LINES = ("Crawl-delay: 3", "Crawl-delay: x", "Sitemap: http://a/s", "# c", "Host: x", "Disallow:",
                "Request-rate: 1/5", "Visit-time: 1", "", "   ")  # fmt: skip
_NAMES = (
    "*",
    "nutbot",
    "other",
    "NutBot",
    "*nutbot*",
    "googlebot",
    "nutbot-x",
    "bot",
    "",
)


def made_up(number):
    """Returns a robots.txt as chance makes it."""
    chance = random.Random(number)

    def group():
        for _ in range(chance.randint(1, 2)):
            name = chance.choice(("User-agent: ", "user agent ", "User-Agent:", "useragent : "))
            yield name + chance.choice(_NAMES) + chance.choice(("", " # c"))
        for _ in range(chance.choice((0, 1, 2, 5, 60))):
            if chance.random() < 0.3:
                yield chance.choice(_OTHER_LINES)
                continue
            path = "".join(chance.choices(_PIECES, k=chance.randint(0, 6)))
            begins = chance.choice(("/", "/", "/", "*", "", "http://a/"))
            yield chance.choice(_FIELDS) + begins + path + chance.choice(("", "$", "*", " # c"))

    lines = [line for _ in range(chance.randint(1, 4)) for line in group()]
    # Such a line is none: again, see the differences.
    lines = [line for line in lines if ": " not in line.partition(" ")[2].partition("#")[0].strip()]
    return chance.choice(("\n", "\r\n", "\r")).join(lines)


def made_up_urls(number, count):
    """Returns URLs of the same pieces."""
    chance = random.Random(number)
    made = ("".join(chance.choices(_PIECES, k=chance.randint(0, 9))) for _ in range(count))
    return [f"http://a.example.com/{path}" for path in made]


def filled(line, most=MOST, names="User-agent: *\n"):
    """Returns a robots.txt as large as is read, of lines by their number."""
    lines, size = [], len(names)
    for number in itertools.count():
        lines.append(line(number))
        size += len(lines[-1].encode()) + 1
        if size > most:
            return names + "\n".join(lines[:-1])


def _permuted(most):
    words = itertools.permutations("abcdefgh")
    return filled(lambda _: "Disallow: /*" + "*".join(next(words)), most)


def _many_names(most):
    names = filled(lambda number: f"User-agent: u{number}", most // 2, "")
    return filled(lambda n: f"Disallow: /{n}*b", most, f"{names}\nUser-agent: *\n")


# By name: a robots.txt of a size in bytes, and a path that its rules are meant for.
ATTACKS = {
    "numbered ends": (lambda most: filled(lambda n: f"Allow: /*a${n}$", most), "/x" + "a$12345" * 100),
    "numbered pieces": (
        lambda most: filled(lambda n: f"Disallow: /*a{n}*b", most),
        "/" + "".join(f"a{n}" for n in range(200)),
    ),
    "more and more pieces": (
        lambda most: filled(lambda n: f"Disallow: /{'*a' * (n + 1)}*b", most),
        "/" + "a" * 4000,
    ),
    "one rule": (lambda most: f"User-agent: *\nDisallow: /{'a*' * (most * 4 // 10)}b", "/" + "a" * 4000),
    "wildcards": (lambda most: f"User-agent: *\nDisallow: /{'*' * (most - 30)}b", "/" + "a" * 4000),
    "prefixes": (lambda most: filled(lambda n: f"Disallow:/{n}", most), "/12345/x"),
    "prefixes of each other": (
        lambda most: filled(lambda n: f"Disallow: /{'a' * (n + 1)}$", most),
        "/" + "a" * 4000,
    ),
    "the same piece": (
        lambda most: filled(lambda n: f"Disallow: /*same*{n}*", most),
        "/same/" + "0123456789" * 40,
    ),
    "the same long piece": (
        lambda most: filled(lambda n: f"Disallow: /*{n}{'same' * 16}*x", most),
        "/" + "same" * 1000,
    ),
    "permutations": (_permuted, "/" + "bcdefgh" * 4),
    "what nearly matches": (
        lambda most: filled(lambda n: f"Disallow: /*{'a' * (1000 + n)}b{'a' * 40}", most),
        "/" + "a" * 2400,
    ),
    "many names": (_many_names, "/1b"),
    "names and rules in turn": (
        lambda most: filled(lambda n: f"User-agent: *\nDisallow: /{n}", most),
        "/12",
    ),
    "lines of nothing": (lambda most: "User-agent: *\n" + "\n" * (most - 14), "/x"),
    "lines of one letter": (lambda most: "User-agent: *\n" + "x\n" * ((most - 14) // 2), "/x"),
    "spaces": (lambda most: "User-agent: *\nDisallow: /" + " " * (most - 30) + "x", "/x"),
    "escapes": (lambda most: filled(lambda n: f"Disallow: /%41%e4%zz{n}", most), "/A%E4%zz7"),
    "what is no ASCII": (lambda most: filled(lambda n: f"Disallow: /ä\u2028{n}", most), "/ä%E2%80%A87"),
}  # fmt: skip
