"""Checks the plug-ins of a launch, and the packages that bring them to workers."""

from collections.abc import Sequence

from ...transforms.wiring.plugin_groups import chosen_plugins, warn_of_hidden
from ...web.plugins.plugin_files import is_plugin_file
from ...web.plugins.plugins import check_plugins, installed_plugins, load_plugins
from .delivery import installed_distribution, is_file, package_file


def check_launched_plugins(
    options: object, plugin_package: Sequence[str], elsewhere: bool, deliver: bool
) -> None:
    """Checks the plug-ins that options choose.

    Args:
        options: The options.
        plugin_package: Packages of plug-ins: names of installed ones, or wheel files.
        elsewhere: Whether workers may be on other machines.
        deliver: Whether packages are sent to these.

    Raises:
        UsageError: A plug-in or a package is missing or incomplete.
    """
    packages = [package_file(name) for name in plugin_package if is_file(name)]
    # Remote workers only need the file of a plug-in; for local workers it must be installed.
    names = [name for name in plugin_package if not is_file(name)]
    for name in names if elsewhere else [*names, *(package.name for package in packages)]:
        installed_distribution(name)
    warn_of_hidden(options)
    points = [point for package in packages for point in package.entry_points]
    for group, chosen in chosen_plugins(options):
        load_plugins(group, tuple(filter(is_plugin_file, chosen)))
        if not elsewhere:
            load_plugins(group, chosen)
        elif deliver:  # else the workers' image has the plug-ins; workers check that
            sent = {point.name for point in points if point.group == group.name}
            check_plugins(group, chosen, {*installed_plugins(group), *sent})
