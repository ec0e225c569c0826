"""Writes numbers of things in messages."""


def counted(number: int, things: str) -> str:
    """Returns a number and its things, in the singular if it is one.

    Args:
        number: How many.
        things: Their name in the plural, such as ``pages``.

    >>> counted(1, "pages"), counted(2_000, "pages"), counted(1, "entries"), counted(0, "URLs")
    ('1 page', '2,000 pages', '1 entry', '0 URLs')
    """
    return f"{number:,} {things if number != 1 else singular(things)}"


def singular(things: str) -> str:
    """Returns the singular of a plural.

    >>> singular("bodies"), singular("URLs")
    ('body', 'URL')
    """
    return f"{things[:-3]}y" if things.endswith("ies") else things.removesuffix("s")
