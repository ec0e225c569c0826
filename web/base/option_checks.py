"""Checks of options before a command starts anything: rules, files and clients are set up once."""

from typing import Any, NamedTuple


class Launch(NamedTuple):
    """What the checks of options must know of the command that starts.

    Attributes:
        address: Address of the table; empty if there is none.
        local: Whether all seeds are local files, so that no server must know who crawls it. The
            clients refuse servers of others all the same.
    """

    address: str = ""
    local: bool = False


def check_setup(options: Any, launch: Launch | None = None) -> None:
    """Calls the method ``check_setup`` of each class of options that has one.

    There a class sets up from its options what workers set up, such as rules and clients, so that a
    wrong configuration fails first. As in ``validate``, the checks of all bases count. A class with
    ``CHECKED_LAST = True`` comes after the others.

    Args:
        options: The options.
        launch: The command that starts.

    Raises:
        ValueError: One line that quotes what cannot be used.
        UsageError: The same, from a part that other callers use, too.
    """
    checked = [base for base in type(options).__mro__ if "check_setup" in vars(base)]
    for base in sorted(checked, key=lambda base: vars(base).get("CHECKED_LAST", False)):
        vars(base)["check_setup"](options, launch or Launch())
