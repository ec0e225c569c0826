"""What a query gives, as records."""

from crawling import json_lines


def rows_of(ask, query):
    """Asks a query with the fixture ``ask``; returns the records of its result."""
    return json_lines(ask(query, "--format", "json"))
