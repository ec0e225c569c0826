"""What commands print that run in this process."""

import json

from crawling import json_lines, nutbeam


def printed(capsys, *words, code=0):
    """Runs a command; returns what it prints on standard output."""
    capsys.readouterr()
    assert nutbeam(*words) == code
    return capsys.readouterr().out


def printed_pages(table, capsys):
    """Returns the pages of a table as texts, in order."""
    return sorted(json.dumps(page) for page in json_lines(printed(capsys, "pages", table)))
