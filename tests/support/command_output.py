"""What commands print that run in this process."""

from crawling import nutbeam


def printed(capsys, *words, code=0):
    """Runs a command; returns what it prints on standard output."""
    capsys.readouterr()
    assert nutbeam(*words) == code
    return capsys.readouterr().out
