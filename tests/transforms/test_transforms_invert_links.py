"""InvertLinks agrees with plain Python, over chunks and rows."""

import random
from typing import NamedTuple

import apache_beam as beam
import polars as pl
import pytest
from running import STEP_FAILED, apply, run

from nutbeam.transforms.invert_links import InvertLinks, invert_links


class Link(NamedTuple):
    url: str
    anchor: str | None
    rel: str | None


class Page(NamedTuple):
    url: str
    links: list[Link]


def random_pages(seed, number=40):
    some = random.Random(seed)
    urls = [f"http://h{n % 5}.com/{n}" for n in range(number)]
    return {
        url: [
            (some.choice(urls), some.choice(["", "one", "two"]), some.choice(["", "nofollow", "x"]))
            for _ in range(some.randrange(6))
        ]
        for url in urls
    }


def inverted(pages, most):
    """The same in Python: a row per target and source."""
    found = {}
    for source, links in pages.items():
        for target, anchor, rel in links:
            if target != source:
                found.setdefault(target, {}).setdefault(source, []).append((anchor, rel))
    rows = []
    for target, sources in found.items():
        external = {s: s.split("/")[2] != target.split("/")[2] for s in sources}
        best = sorted(sources, key=lambda s: (external[s], s))[-most:]
        for source in best:
            links = sources[source]
            followed = [link for link in links if link[1] != "nofollow"]
            anchor = "\n".join(dict.fromkeys(a for a, _ in followed or links if a)) or None
            rel = "nofollow" if all(rel == "nofollow" for _, rel in links) else None
            rows.append((target, source, anchor, rel, 0.0, external[source]))
    return sorted(rows, key=str)


def frame_of_pages(pages):
    links = [[dict(zip(("url", "anchor", "rel"), link, strict=True)) for link in links]
             for links in pages.values()]  # fmt: skip
    kind = pl.List(pl.Struct(dict.fromkeys(("url", "anchor", "rel"), pl.String)))
    return pl.DataFrame({"url": list(pages), "links": pl.Series(links, dtype=kind)})


@pytest.mark.few(2)
@pytest.mark.parametrize("most", [1, 3, 100])
def test_chunks_give_the_same_links_as_plain_python(most):
    pages = random_pages(most)
    frame = frame_of_pages(pages)
    assert sorted(invert_links(frame, most).rows(), key=str) == inverted(pages, most)
    chunks = [part.to_arrow() for part in frame.iter_slices(7)]
    made = apply(chunks, InvertLinks(max_inlinks=most, partitions=3))
    rows = [row for chunk in made for row in pl.from_arrow(chunk).rows()]
    assert sorted(rows, key=str) == inverted(pages, most)


def test_rows_give_the_same():
    pages = random_pages(9, 10)
    rows = [Page(url, [Link(*link) for link in links]) for url, links in pages.items()]

    def build(pipeline):
        return pipeline | beam.Create(rows).with_output_types(Page) | InvertLinks()

    assert sorted((tuple(row) for row in run(build)), key=str) == inverted(pages, 100)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="max_inlinks must be at least 1, got 0"):
        InvertLinks(max_inlinks=0)
    with pytest.raises(
        ValueError, match=r"^ignore_internal_links=True and .* together leave no link"
    ):
        InvertLinks(ignore_internal_links=True, ignore_external_links=True)
    with pytest.raises(STEP_FAILED, match="InvertLinks needs the column 'links'"):
        apply([pl.DataFrame({"url": ["a"]}).to_arrow()], InvertLinks())
