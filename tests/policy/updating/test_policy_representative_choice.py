"""The choice between the two ends of a redirect against Nutch's words."""

import itertools
from urllib.parse import urlsplit

import pytest

from nutbeam.policy.updating.redirects import choose_representative

# Hosts and their registered domains.
HOSTS = {
    "a.com": "a.com",
    "www.a.com": "a.com",
    "x.y.a.com": "a.com",
    "www.b.co.uk": "b.co.uk",
    "c.co.uk": "c.co.uk",
}
FILES = ("/", "/?q=1", "/x", "/y", "/x/", "/long/", "/x/y", "/x/?q", "/x?q=/a/b", "/x//y")
URLS = [f"http://{host}{file}" for host in HOSTS for file in FILES]


def reference(source, target, temporary):
    """The URL that stands for both, by the first rule that says something."""
    ends = [urlsplit(url) for url in (source, target)]
    files = [end.path + (f"?{end.query}" if end.query else "") for end in ends]
    roots = [file in ("", "/") for file in files]
    if HOSTS[ends[0].netloc] != HOSTS[ends[1].netloc]:
        return target
    if not temporary:
        return source if roots[0] else target
    if roots == [True, False]:
        return source
    if roots == [False, True]:
        return target
    if ends[0].netloc == ends[1].netloc and roots == [False, False]:
        parts = [java_parts(file) for file in files]
        if parts[0] != parts[1]:
            return source if parts[0] < parts[1] else target
        return source if len(files[0]) <= len(files[1]) else target
    labels = [len(end.netloc.split(".")) for end in ends]
    return source if labels[0] <= labels[1] else target


def java_parts(file):
    """How many parts Java's ``split("/")`` gives: without empty ones at the end."""
    parts = file.split("/")
    while parts and not parts[-1]:
        parts.pop()
    return len(parts)


@pytest.mark.parametrize("temporary", [True, False])
def test_each_pair_is_judged_as_the_specification_says(temporary):
    wrong = [
        (source, target)
        for source, target in itertools.product(URLS, URLS)
        if choose_representative(source, target, temporary=temporary)
        != reference(source, target, temporary)
    ]
    assert wrong == []
