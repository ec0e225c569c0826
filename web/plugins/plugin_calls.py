"""Says which plug-in works on a page, so that its faults have its name if it ends the process."""

from collections.abc import Callable

_listeners: list[Callable[[str], None]] = []


def report_calls(listener: Callable[[str], None]) -> None:
    """Calls a function at each begin and end of the work of a plug-in, in this process.

    Args:
        listener: Gets the reason that is counted if the plug-in fails, such as ``parser_NAME``;
            empty when it has ended. If it raises, it is not called at the end.
    """
    _listeners[:] = [listener]


def report_call(reason: str) -> None:
    """Says that a plug-in begins its work; or, without a reason, that it has ended.

    >>> reasons = []
    >>> report_calls(reasons.append)
    >>> report_call("parser_tea")
    >>> report_call("")
    >>> reasons
    ['parser_tea', '']
    >>> _listeners.clear()
    """
    for listener in _listeners:
        listener(reason)
