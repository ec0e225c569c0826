"""Makes the object of a plug-in that is a class, or a function that makes one."""

from collections.abc import Callable
from typing import Any, TypeVar

from ...web.base.errors import UserError, one_line
from ...web.plugins.plugin_files import fault_text, place_of_code

_Made = TypeVar("_Made")


def made_by_plugin(what: str, make: Callable[[Any], Any], options: Any, base: type[_Made]) -> _Made:
    """Returns the object that a plug-in makes of options.

    Args:
        what: Kind and name of the plug-in, for messages.
        make: The plug-in.
        options: Its options.
        base: The class that the object must be derived from.

    Raises:
        ValueError: It cannot be made, or has another class; the message names the plug-in and its
            module or file.
    """
    what = f"{what} of {place_of_code(make)}"
    try:
        plugin = make(options)
    except (UserError, ValueError) as error:
        raise ValueError(one_line(f"{what}: {error}")) from error
    except Exception as error:
        raise ValueError(f"{what}: {fault_text(error, make)}") from error
    if isinstance(plugin, base):
        return plugin
    raise ValueError(f"{what} must be a class derived from {base.__name__}, got {make!r}")
