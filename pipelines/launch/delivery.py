"""Brings a job to remote workers: makes wheels of packages.

With wheels of the installed packages, workers run the same versions.
A wheel is made from the files of an installation, without network and without
pip. If a package is installed in development mode ("editable"), its files are
taken from the folder that it is imported from.
"""

import atexit
import base64
import csv
import functools
import hashlib
import io
import re
import runpy
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from email.parser import Parser
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

from ...web.base.errors import UsageError

_NOT_COPIED = ("RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "WHEEL",
               "direct_url.json")  # fmt: skip
_BINARY = (".so", ".pyd", ".dylib")


def is_file(package: str) -> bool:
    """Returns whether a package is given as the path of a wheel.

    >>> is_file("my-filters"), is_file("dist/my_filters-1.0-py3-none-any.whl")
    (False, True)
    """
    return "/" in package or package.endswith(".whl")


def package_file(path: str) -> Distribution:
    """Returns the name, version and entry points of a wheel.

    Raises:
        UsageError: There is no such file, or it is not a wheel.
    """
    try:
        with zipfile.ZipFile(path):
            in_wheel = list(distributions(path=[path])) if path.endswith(".whl") else []
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read the package {path!r}: {reason}") from error
    except zipfile.BadZipFile as error:
        raise UsageError(f"{path!r} is no wheel: {error}") from error
    if not in_wheel:
        raise UsageError(
            f"{path!r} is no wheel: its name does not end in .whl, or its metadata is missing"
        )
    return in_wheel[0]


def installed_distribution(package: str) -> Distribution:
    """Returns an installed distribution.

    Raises:
        UsageError: No distribution of that name is installed.
    """
    installed = list(distributions(name=package)) if re.fullmatch(r"[\w.-]+", package) else []
    if not installed:
        raise UsageError(
            f"package {package!r} is not installed here: install it, or give the file of its wheel"
        )
    # A source folder on sys.path has metadata, too, but no list of files.
    return min(installed, key=lambda distribution: distribution.read_text("RECORD") is None)


def wheel_of(package: str, folder: Path) -> Path:
    """Writes the wheel of an installed distribution.

    Args:
        package: Name of the distribution, as ``pip list`` shows it.
        folder: Folder for the wheel.

    Returns:
        The wheel's path, with a standard name for wheels.

    Raises:
        UsageError: The package is not installed, or some of its files are not found.
    """
    distribution = installed_distribution(package)
    name = re.sub(r"[-_.]+", "_", distribution.name).lower()
    stem = f"{name}-{distribution.version.replace('-', '_')}"
    info = f"{stem}.dist-info"
    contents = dict(_contents(distribution, info))
    tags = _tags(distribution, contents)
    pure = str(tags[0].endswith("-none-any")).lower()
    head = ["Wheel-Version: 1.0", "Generator: nutbeam", f"Root-Is-Purelib: {pure}"]
    lines = [*head, *(f"Tag: {tag}" for tag in tags), ""]
    contents[f"{info}/WHEEL"] = "\n".join(lines).encode()
    path = folder / f"{stem}-{_join_tags(tags)}.whl"
    _write(path, contents, f"{info}/RECORD")
    return path


@functools.cache
def make_wheels(packages: tuple[str, ...]) -> tuple[Path, ...]:
    """Returns the wheels of packages; makes them once per process and removes them at its end.

    Args:
        packages: Names of installed distributions, or paths of files.
    """
    folder = Path(tempfile.mkdtemp(prefix="nutbeam-wheels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return tuple(Path(name) if is_file(name) else wheel_of(name, folder) for name in packages)


def _contents(distribution: Distribution, info: str) -> Iterator[tuple[str, bytes]]:
    """Yields (place in the wheel, content) of each file of a distribution."""
    recorded = distribution.read_text("RECORD") is not None
    files = {
        PurePosixPath(file): Path(str(file.locate()))
        for file in (distribution.files or () if recorded else ())
        if "__pycache__" not in file.parts
    }
    sources = _editable_sources(distribution, files.values()) if recorded else {}
    if sources == {}:
        raise UsageError(
            f"cannot tell where the packages of {distribution.name!r} are: "
            "give the file of its wheel instead"
        )
    for place, source in (sources or {}).items():
        yield from _tree(place, source)
    for file, path in files.items():
        place = _place(file, info)
        if place and (sources is None or place.startswith(info)):
            yield place, _read(path, distribution)


def _read(path: Path, distribution: Distribution) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(
            f"package {distribution.name!r} is not whole: {str(path)!r}: {reason}"
        ) from error


def _place(file: PurePosixPath, info: str) -> str:
    """Returns the place of a recorded file in the wheel; empty if workers do not need it."""
    if file.parts[0].endswith(".dist-info"):
        rest = "/".join(file.parts[1:])
        return "" if rest in _NOT_COPIED else f"{info}/{rest}"
    # Scripts and shared data are outside of the folder of packages.
    return "" if ".." in file.parts or file.is_absolute() else str(file)


def _editable_sources(distribution: Distribution, files: Iterable[Path]) -> dict[str, Path] | None:
    """Returns the folders of the packages of an editable installation; None for a regular one.

    The keys are places in the wheel: ``nutbeam/io``, or ``module.py``.
    """
    sources: dict[str, Path] = {}
    editable = False
    for path in files:
        if re.fullmatch(r"__editable__.*_finder\.py", path.name):  # the import hook of setuptools
            editable = True
            for name, source in runpy.run_path(str(path))["MAPPING"].items():
                suffix = "" if Path(source).is_dir() else "".join(Path(source).suffixes)
                sources[name.replace(".", "/") + suffix] = Path(source)
        elif path.suffix == ".pth":
            for line in path.read_text().splitlines():
                if line.startswith("/"):
                    editable = True
                    sources |= _packages_in(Path(line), distribution)
    return sources if editable else None


def _packages_in(folder: Path, distribution: Distribution) -> dict[str, Path]:
    """Returns the packages and modules in a folder that belong to a distribution."""
    entries = {
        entry.name.partition(".")[0]: entry
        for entry in sorted(folder.iterdir() if folder.is_dir() else ())
        if (entry.is_dir() and entry.name.isidentifier()) or entry.suffix in (".py", *_BINARY)
    }
    entries.pop("__pycache__", None)
    named = (distribution.read_text("top_level.txt") or "").split()
    if not named and folder.name == "src":
        named = list(entries)
    elif not named:
        named = [re.sub(r"[-_.]+", "_", distribution.name)]
    return {entries[name].name: entries[name] for name in named if name in entries}


def _tree(place: str, source: Path) -> Iterator[tuple[str, bytes]]:
    if source.is_file():
        yield place, source.read_bytes()
    for path in sorted(source.rglob("*")):
        below = path.relative_to(source)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in below.parts)
        if path.is_file() and not hidden and path.suffix != ".pyc":
            yield f"{place}/{below.as_posix()}", path.read_bytes()


def _tags(distribution: Distribution, contents: Iterable[str]) -> list[str]:
    """Returns the Python versions and platforms that a wheel is for."""
    wheel = Parser().parsestr(distribution.read_text("WHEEL") or "")
    tags = [str(tag) for tag in wheel.get_all("Tag") or ()]
    binary = any(PurePosixPath(name).suffix in _BINARY for name in contents)
    if binary and all(tag.endswith("-any") for tag in tags):
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        return [f"{python}-{python}-{re.sub('[-.]', '_', sysconfig.get_platform())}"]
    return tags or ["py3-none-any"]


def _join_tags(tags: Iterable[str]) -> str:
    """Joins tags into one, as in a wheel's name.

    >>> _join_tags(["py2-none-any", "py3-none-any"])
    'py2.py3-none-any'
    """
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)


def _write(path: Path, contents: Mapping[str, bytes], record: str) -> None:
    listed = io.StringIO()
    rows = csv.writer(listed, lineterminator="\n")
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        rows.writerow((name, f"sha256={digest.decode()}", len(content)))
    rows.writerow((record, "", ""))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**contents, record: listed.getvalue().encode()}.items():
            # A ZipInfo has a fixed time, so the same files make the same wheel.
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
