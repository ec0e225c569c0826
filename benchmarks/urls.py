"""URLs normalized and filtered a second, against w3lib's ``canonicalize_url``.

``python benchmarks/urls.py [--small]``. Distinct URLs on 20,000 hosts, once such that are already
normal, and once such that each has something to change: case, ports, escapes, dots, fragments,
session ids, no ASCII. Ours is ``UrlRules().admit``: the default normalizers and filter, and the row
key as well; w3lib's is one call for each URL. Budget: 15 times as many of the former, 3 times as
many of the latter, by CPU seconds. The third block is of what each filter takes on its own, with
rule files as large as some have. The last one is of plug-ins that do nothing, beside the default chain
without one; budget: 1 µs a URL more for each.
"""

import functools
import tempfile

import measure

SEGMENTS = ("news", "2024", "products", "item-17", "a", "archive", "index.html", "Über-uns", "p_1")


def urls(number: int, normal: bool) -> list[str]:
    """Returns this many distinct URLs, the same each time."""
    made = []
    for n in range(number):
        host = f"{('www', 'shop', 'blog', 'm')[n % 4]}.site{n * 7919 % 5000}.{('com', 'org', 'co.uk', 'de')[n % 5 % 4]}"
        depth = 1 + n * 31 % 5
        path = "/".join(SEGMENTS[(n * 13 + at * 5) % 7] for at in range(depth))
        query = (f"?id={n}", f"?page={n}&sort=asc&lang=en", "", "")[n * 3 % 4]
        url = f"https://{host}/{path}/{n}{query}"
        made.append(url if normal else CHANGES[n % len(CHANGES)](url))
    return made


CHANGES = (
    lambda url: url.replace("https://", "HTTPS://", 1),
    lambda url: url.replace(".site", ".Site", 1),
    lambda url: url.replace("/", ":443/", 3).replace(":443/:443/", "//", 1).replace("https::443", "https:"),
    lambda url: f"{url}#part-2",
    lambda url: url.replace("/", "/%7Euser/", 3).replace("/%7Euser//%7Euser/", "//", 1).replace("https:/%7Euser", "https:"),
    lambda url: f"{url}/a/../b/./c",
    lambda url: f"{url}{'&' if '?' in url else '?'}PHPSESSID=0123456789abcdef",
    lambda url: f"{url}{'&' if '?' in url else '?'}q=a b|c",
    lambda url: f"{url}{'&' if '?' in url else '?'}q=stra\u00dfe",
    lambda url: f"{url}{'&' if '?' in url else '?'}&x=1&&",
)  # fmt: skip


def ours(number: int, normal: bool) -> int:
    """Admits URLs as jobs do, by the chunk; returns how many were taken."""
    import polars as pl

    from nutbeam.web.rules.url_rules import UrlRules

    rules = UrlRules()
    chunks = _chunks(pl.Series(urls(number, normal)))
    rules.admit(chunks[0].head(100))  # what is done once, is done
    with measure.measured():
        return sum(rules.admit(chunk).get_column("key").count() for chunk in chunks)


def w3lib(number: int, normal: bool) -> int:
    """Canonicalizes the same URLs; returns how many there were."""
    from w3lib.url import canonicalize_url

    made = urls(number, normal)
    canonicalize_url(made[0])
    with measure.measured():
        return len([canonicalize_url(url) for url in made])


NUTCHS = (
    "-^(?:file|ftp|mailto):\n-(?i)\\.(?:gif|jpg|png|ico|css|zip|exe|js)$\n"
    "-[?*!@=]\n-.*(/[^/]+)/[^/]+\\1/[^/]+\\1/\n+."
)
FILTERS = {
    "regex": ("regex-urlfilter.txt", ""),
    "regex, Nutch's own file": (
        "regex-urlfilter.txt",
        NUTCHS,
    ),
    "automaton": ("automaton-urlfilter.txt", "-(file|ftp|mailto):.*\n-.*\\.(gif|jpg|js)\n+.*"),
    "suffix": ("suffix-urlfilter.txt", "+PI\n.gif\n.jpg\n.js\n.css\n.zip\n.exe\n"),
    "prefix, 100,000": (
        "prefix-urlfilter.txt",
        "https://{}.example.com/\n" * 100_000 + "https://\n",
    ),
    "domain, 100,000": ("domain-urlfilter.txt", "d{}.example.com\n" * 100_000 + "com\norg\n"),
    "domaindenylist, 1,000,000": ("domaindenylist-urlfilter.txt", "d{}.example.com\n" * 1_000_000),
    "fast, 100,000 domains": ("fast-urlfilter.txt", "Domain d{}.com\nDenyPath .*\n" * 100_000),
    "validator": ("", ""),
}


def filtered(number: int, name: str) -> int:
    """Asks one filter; returns how many URLs it takes."""
    import pathlib

    import polars as pl

    from nutbeam.web.rules.url_rules import UrlOptions, UrlRules

    file, text = FILTERS[name]
    with tempfile.TemporaryDirectory() as folder:
        if text:
            filled = text.replace("{}", "\0").split("\0")
            numbered = "".join(f"{part}{at}" for at, part in enumerate(filled[:-1])) + filled[-1]
            pathlib.Path(folder, file).write_text(numbered if len(filled) > 1 else text)
        rules = UrlRules(UrlOptions(url_rules_dir=folder, url_filters=(name.partition(",")[0],)))
    chunks = _chunks(pl.Series(urls(number, True)))
    rules.filters.judge_column(chunks[0].head(100))
    with measure.measured():
        return sum(rules.filters.judge_column(c).get_column("reason").null_count() for c in chunks)


PLUGINS = """
def accept(urls):
    return urls.is_not_null()

def same(urls, scope):
    return urls
"""
# What the options have besides the default.
PLUGGED = {
    "no plug-in": {},
    "a URL filter": {"url_filters": ("regex", "@accept")},
    "a URL normalizer": {"url_normalizers": ("basic", "regex", "@same")},
    "both": {
        "url_filters": ("regex", "@accept"),
        "url_normalizers": ("basic", "regex", "@same"),
    },
}


def plugged(number: int, name: str, normal: bool) -> int:
    """Admits URLs with plug-ins that do nothing; returns how many were taken."""
    import pathlib

    import polars as pl

    from nutbeam.web.rules.url_rules import UrlOptions, UrlRules

    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "none.py").write_text(PLUGINS)
        options = {
            option: tuple(word.replace("@", f"{folder}/none.py:") for word in words)
            for option, words in PLUGGED[name].items()
        }
        rules = UrlRules(UrlOptions(**options))
    chunks = _chunks(pl.Series(urls(number, normal)))
    rules.admit(chunks[0].head(1000))
    with measure.measured():
        return sum(rules.admit(chunk).get_column("key").count() for chunk in chunks)


def _chunks(series):  # type: ignore[no-untyped-def]
    return [series.slice(at, 131_072) for at in range(0, len(series), 131_072)]


def main() -> None:
    """Prints the tables."""
    measure.need("w3lib")
    number, repeats = measure.sized((40_000, 1), (500_000, 3), (500_000, 5))
    for normal, budget in ((True, 15), (False, 3)):
        runs = {
            "nutbeam": functools.partial(measure.fresh, "urls", "ours", number, normal),
            # A tenth is enough: it does the same for each.
            "w3lib": functools.partial(measure.fresh, "urls", "w3lib", number // 10, normal),
        }
        found = measure.interleaved(runs, repeats)
        ours_cpu = measure.median(found["nutbeam"], "cpu") / number
        rows = [
            (name, each[0].result, 1 / (cpu / asked), cpu / asked * 1e6, cpu / asked / ours_cpu)
            for (name, each), asked in zip(found.items(), (number, number // 10), strict=True)
            for cpu in [measure.median(each, "cpu")]
        ]
        kind = "already normal" if normal else "that change"
        heads = ("CPU", "taken", "URLs/s", "µs a URL", "this / nutbeam")
        measure.table(f"{number:,} URLs {kind}, median of {repeats}; budget: {budget}", heads, rows)
    rows = []
    for name in FILTERS:
        done = measure.fresh("urls", "filtered", number, name)
        rows.append((name, done.result, number / done.cpu, done.peak / 1e6))
    heads = ("filter alone", "taken", "URLs/s of CPU", "peak MB")
    measure.table(f"{number:,} URLs that are normal", heads, rows)
    for normal in (True, False):
        runs = {
            name: functools.partial(measure.fresh, "urls", "plugged", number, name, normal)
            for name in PLUGGED
        }
        found = measure.interleaved(runs, repeats)
        each = {name: measure.median(done, "cpu") / number * 1e6 for name, done in found.items()}
        rows = [
            (name, found[name][0].result, 1e6 / cpu, cpu, cpu - each["no plug-in"])
            for name, cpu in each.items()
        ]
        kind = "already normal" if normal else "that change"
        heads = ("chain with", "taken", "URLs/s", "µs a URL", "µs more")
        measure.table(
            f"{number:,} URLs {kind}, median of {repeats}; budget: 1 µs more", heads, rows
        )


if __name__ == "__main__":
    main()
