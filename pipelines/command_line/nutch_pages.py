"""The page that says what each command of Nutch is in nutbeam, as Markdown and as text."""


def nutch_text() -> str:
    """Returns the text of ``nutbeam help nutch``."""
    return ""
