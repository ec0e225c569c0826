"""A parse filter: a function of each parsed page."""

from nutbeam.policy.parsing.parse_filters import FilteredPage

WORDS_A_MINUTE = 200


def reading_time(page: FilteredPage) -> None:
    """Stores how long people need to read a page; drops pages without words."""
    words = len(page.text.split())
    if not words:
        page.drop("no_words")
        return
    page.metadata["reading_minutes"] = str(max(1, round(words / WORDS_A_MINUTE)))
