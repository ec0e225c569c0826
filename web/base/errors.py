"""Errors that are shown to users as one line."""


class UserError(Exception):
    """A command cannot do its work, for a reason that the user can correct.

    The message is one lower-case line without a period: what was expected,
    and the value with ``!r``. It may be raised in a worker.
    """

    exit_code = 3


class UsageError(UserError):
    """The user typed or configured something wrong; nothing was started."""

    exit_code = 2


class NothingToDo(UserError):
    """Nothing waits for a job: no batch, no graph, no ranks; the message says what makes it."""

    exit_code = 1


class Unavailable(UserError):
    """A service that a job needs does not answer or is full; a later try may work."""


class JobFailed(UserError):
    """A pipeline failed; the table is unchanged."""


def one_line(message: object, longest: int | None = None) -> str:
    """Returns a message, such as an exception's, as one line of at most ``longest`` characters.

    >>> one_line(ValueError("a defect\\nin two lines"), 8)
    'a defect'
    """
    return " ".join(str(message).split())[:longest]
