"""Of the captures of a URL the newest counts; revisits find the bodies that they refer to."""

import polars as pl

from nutbeam.policy.archives.imported_captures import (
    IDENTICAL,
    IMPORTED,
    PAGE,
    REVISITING,
    UNCHANGED,
    capture_name,
    choose_captures,
    find_sources,
    merge_sources,
    searched_pages,
    searched_revisits,
)


def imported(*rows):
    """Returns captures of (key, time, kind, file, offset, digest, refers)."""
    records = [
        (key, time, kind, file, "a.warc", offset, 0, digest, refers)
        for key, time, kind, file, offset, digest, refers in rows
    ]
    return pl.DataFrame(records, schema=pl.Schema(IMPORTED), orient="row")


def test_older_captures_are_left_out_of_the_files_that_they_are_in():
    chosen = choose_captures(
        imported(
            ("k", 1, PAGE, "f1", 1, "d1", None), ("k", 3, PAGE, "f2", 2, "d2", None),
            ("k", 2, PAGE, None, 3, "d3", None), ("l", 1, PAGE, "f1", 4, "d1", None),
        )
    )  # fmt: skip
    assert chosen.dropped.rows() == [("f1", "k")]
    assert chosen.counts == {"dropped/older_capture": 2}
    assert chosen.revisiting.is_empty()


def test_a_capture_of_the_same_time_is_once():
    chosen = choose_captures(
        imported(("k", 1, PAGE, "f1", 1, "d", None), ("k", 1, PAGE, "f2", 2, "d", None))
    )
    assert (len(chosen.dropped), chosen.counts.total()) == (1, 1)


def test_a_revisit_of_its_own_url_has_the_older_body_with_its_digest():
    chosen = choose_captures(
        imported(
            ("k", 1, PAGE, None, 1, "one", None), ("k", 2, PAGE, "f", 2, "two", None),
            ("k", 5, IDENTICAL, None, 3, "one", None), ("k", 4, IDENTICAL, None, 4, "two", None),
        )
    )  # fmt: skip
    (row,) = chosen.revisiting.iter_rows(named=True)
    assert (row["offset"], row["source_offset"], row["kept_file"]) == (3, 1, "f")
    assert chosen.dropped.is_empty()
    assert chosen.counts == {"dropped/older_capture": 2}


def test_a_revisit_that_is_older_than_the_newest_page_is_left_out():
    chosen = choose_captures(
        imported(("k", 9, PAGE, "f", 1, "d", None), ("k", 5, IDENTICAL, None, 2, "d", None))
    )
    assert chosen.revisiting.is_empty()
    assert chosen.counts == {"dropped/older_capture": 1}


def test_an_answer_304_confirms_the_newest_page_before_it():
    chosen = choose_captures(
        imported(
            ("k", 1, PAGE, None, 1, "d", None), ("k", 2, PAGE, "f", 2, None, None),
            ("k", 5, UNCHANGED, None, 3, None, None),
        )
    )  # fmt: skip
    assert chosen.revisiting["source_offset"].to_list() == [2]


def test_bodies_of_other_urls_are_found_by_digest_or_by_url_and_second():
    captures = imported(
        ("a", 1500, PAGE, "f", 1, "d", None), ("a", 7000, PAGE, None, 2, "d", None),
        ("b", 2500, PAGE, "f", 3, None, None), ("c", 5000, IDENTICAL, None, 4, "d", None),
        ("e", 5000, IDENTICAL, None, 5, None, capture_name("b", 2000)),
        ("g", 5000, IDENTICAL, None, 6, "other", capture_name("z", 2000)),
    )  # fmt: skip
    revisiting = choose_captures(captures).revisiting
    assert revisiting["source_offset"].to_list() == [None, None, None]
    searched = pl.concat([searched_pages(captures), searched_revisits(revisiting)])
    merged = merge_sources(pl.concat([revisiting, find_sources(searched)]))
    assert merged.columns == REVISITING.names
    # The body of the capture at 7 s is the same, but it is later than the revisit.
    assert merged.select("key", "source_offset").rows() == [("c", 1), ("e", 3), ("g", None)]
