"""Packages with plug-ins, installed into a folder by hand: it needs neither pip nor network."""

import tomllib

from here import TESTS

EXAMPLE = TESTS / "plugin"


def install(folder, name, files, filters, version="1.0", schedules=None):
    """Installs a package as pip would.

    Args:
        folder: A folder of Python's path; made if need be.
        name: Of the distribution.
        files: Content of each file, by path.
        filters: Object of each parse filter, by name.
        version: Of the distribution.
        schedules: Object of each schedule, by name.
    """
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    groups = {"nutbeam.parse_filters": filters, "nutbeam.schedules": schedules or {}}
    points = "".join(
        f"[{group}]\n" + "".join(f"{point} = {target}\n" for point, target in objects.items())
        for group, objects in groups.items()
    )
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": points,
    }
    contents[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


def install_example(folder):
    """Installs the package in tests/plugin as its pyproject.toml says."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    (file,) = EXAMPLE.glob("*.py")
    points = project["entry-points"]
    install(
        folder, project["name"], {file.name: file.read_text()}, points["nutbeam.parse_filters"],
        project["version"], points.get("nutbeam.schedules"),
    )  # fmt: skip
