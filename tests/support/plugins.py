"""Packages with plug-ins, installed into a folder by hand: it needs neither pip nor network."""

import tomllib

from here import TESTS

EXAMPLE = TESTS / "plugin"


def install(folder, name, files, plugins, version="1.0", group="nutbeam.parse_filters"):
    """Installs a package as pip would.

    Args:
        folder: A folder of Python's path; made if need be.
        name: Of the distribution.
        files: Content of each file, by path.
        plugins: Object of each plug-in, by name.
        version: Of the distribution.
        group: Kind of the plug-ins.
    """
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    points = "".join(f"{plugin} = {target}\n" for plugin, target in plugins.items())
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[{group}]\n{points}",
    }
    contents[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


def install_example(folder):
    """Installs the package in tests/plugin as its pyproject.toml says."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    (file,) = EXAMPLE.glob("*.py")
    filters = project["entry-points"]["nutbeam.parse_filters"]
    install(folder, project["name"], {file.name: file.read_text()}, filters, project["version"])
