"""Installed packages as wheels, so that workers elsewhere get what runs here.

A wheel is put together from the files of an installation, without network and
without pip. Where a package is installed in development mode ("editable"), its
files are taken from where it is imported from.
"""

import ast
import atexit
import base64
import dataclasses
import functools
import hashlib
import re
import shutil
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from email.parser import Parser
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path, PurePosixPath

from ...web.base.errors import UsageError

SDIST_ENDINGS = (".tar.gz", ".zip")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel
_NOT_COPIED = ("RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "WHEEL",
               "direct_url.json")  # fmt: skip
_BINARY = (".so", ".pyd", ".dylib")
# Beside packages in the folder of a project, yet no part of it.
_NO_PACKAGES = ("build", "dist", "docs", "examples", "setup", "test", "tests", "conftest")


@dataclasses.dataclass(frozen=True)
class Package:
    """What a wheel or source distribution says of itself.

    Attributes:
        name: Of the distribution.
        version: Of the distribution.
        entry_points: By which it is found as a plug-in; those of a wheel only.
    """

    name: str
    version: str
    entry_points: tuple[EntryPoint, ...] = ()


def is_file(package: str) -> bool:
    """Returns whether a package is named by its file: a wheel or source distribution.

    >>> is_file("my-filters"), is_file("dist/my_filters-1.0-py3-none-any.whl")
    (False, True)
    """
    return "/" in package or package.endswith((".whl", *SDIST_ENDINGS))


def package_file(path: str) -> Package:
    """Returns what the file of a package says of itself.

    Raises:
        UsageError: There is no such file, or it is neither wheel nor source distribution.
    """
    wheel = path.endswith(".whl")
    try:
        if wheel:
            texts = _wheel_texts(path)
        elif path.endswith(SDIST_ENDINGS):
            texts = {"METADATA": _sdist_metadata(path)}
        else:
            raise ValueError("its name ends in neither .whl nor .tar.gz nor .zip")
        metadata = Parser().parsestr(texts["METADATA"])
        points = _entry_points(texts.get("entry_points.txt", ""))
        return Package(str(metadata["Name"]), str(metadata["Version"]), points)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read the package {path!r}: {reason}") from error
    except (ValueError, KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        reason = "it has no metadata" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"{path!r} is no wheel and no source distribution: {reason}") from error


def _wheel_texts(path: str) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {
            PurePosixPath(name).name: archive.read(name).decode()
            for name in archive.namelist()
            if PurePosixPath(name).parent.name.endswith(".dist-info")
            and PurePosixPath(name).name in ("METADATA", "entry_points.txt")
        }


def _sdist_metadata(path: str) -> str:
    if path.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            (name,) = [n for n in archive.namelist() if re.fullmatch("[^/]+/PKG-INFO", n)] or [""]
            return archive.read(name).decode()
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and re.fullmatch("[^/]+/PKG-INFO", member.name):
                return file.read().decode()
    raise KeyError("PKG-INFO")


def _entry_points(text: str) -> tuple[EntryPoint, ...]:
    group, found = "", []
    for line in (line.partition("#")[0].strip() for line in text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif "=" in line:
            name, _, value = line.partition("=")
            found.append(EntryPoint(name.strip(), value.strip(), group))
    return tuple(found)


def installed(package: str) -> Distribution:
    """Returns an installed distribution.

    Raises:
        UsageError: There is none of that name.
    """
    found = list(distributions(name=package)) if re.fullmatch(r"[\w.-]+", package) else []
    if not found:
        raise UsageError(
            f"package {package!r} is not installed here: install it, or give the file of its wheel"
        )
    # A source folder on the path has metadata, too, but no list of files.
    return min(found, key=lambda distribution: distribution.read_text("RECORD") is None)


def wheel_of(package: str, folder: Path) -> Path:
    """Writes the wheel of an installed distribution.

    Args:
        package: Name of the distribution, as ``pip list`` shows it.
        folder: Where the wheel goes.

    Returns:
        The wheel's path, named as wheels are.

    Raises:
        UsageError: The package is not installed, or its files are not to be found.
    """
    distribution = installed(package)
    name = re.sub(r"[-_.]+", "_", distribution.name).lower()
    stem = f"{name}-{distribution.version.replace('-', '_')}"
    contents = dict(_contents(distribution, stem))
    tags = _tags(distribution, contents)
    info = f"{stem}.dist-info"
    contents |= {f"{info}/{n}": text.encode() for n, text in _metadata(distribution).items()}
    contents[f"{info}/WHEEL"] = "".join(
        f"{line}\n"
        for line in (
            "Wheel-Version: 1.0",
            "Generator: nutbeam",
            f"Root-Is-Purelib: {str(tags[0].endswith('-none-any')).lower()}",
            *(f"Tag: {tag}" for tag in tags),
        )
    ).encode()
    path = folder / f"{stem}-{_joined(tags)}.whl"
    _write(path, contents, f"{info}/RECORD")
    return path


@functools.cache
def delivered(packages: tuple[str, ...]) -> tuple[Path, ...]:
    """Returns the files of packages, made once in this process and removed at its end.

    Args:
        packages: Names of installed distributions, or paths of files.
    """
    folder = Path(tempfile.mkdtemp(prefix="nutbeam-wheels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return tuple(Path(name) if is_file(name) else wheel_of(name, folder) for name in packages)


def _metadata(distribution: Distribution) -> dict[str, str]:
    """Returns the small files of a distribution that say what it is."""
    texts = {"METADATA": distribution.read_text("METADATA") or distribution.read_text("PKG-INFO")}
    texts |= {n: distribution.read_text(n) for n in ("entry_points.txt", "top_level.txt")}
    return {name: text for name, text in texts.items() if text}


def _contents(distribution: Distribution, stem: str) -> Iterator[tuple[str, bytes]]:
    """Yields (place in the wheel, content) of what a distribution consists of."""
    recorded = distribution.read_text("RECORD") is not None
    files = list(distribution.files or ()) if recorded else []
    sources = _editable_sources(distribution, [Path(str(f.locate())) for f in files])
    if sources is not None:
        for place, source in sources.items():
            yield from _tree(place, source)
        return
    scripts = {point.name for point in distribution.entry_points}
    for file in files:
        path = Path(str(file.locate()))
        where = _place(file, path, stem, scripts)
        if where is not None:
            try:
                yield where, path.read_bytes()
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise UsageError(
                    f"package {distribution.name!r} is not whole: {str(path)!r}: {reason}"
                ) from error


def _place(file: PurePosixPath, path: Path, stem: str, scripts: Iterable[str]) -> str | None:
    """Returns where a recorded file stands in the wheel; None for what pip makes itself."""
    if "__pycache__" in file.parts or file.suffix == ".pyc":
        return None
    if file.parts[0].endswith(".dist-info"):
        rest = "/".join(file.parts[1:])
        return None if rest in _NOT_COPIED else f"{stem}.dist-info/{rest}"
    if ".." not in file.parts and not file.is_absolute():
        return str(file)
    real = path.resolve()
    folder = Path(sysconfig.get_path("scripts")).resolve()
    if real.is_relative_to(folder):
        name = real.relative_to(folder).as_posix()
        return None if name.removesuffix(".exe") in scripts else f"{stem}.data/scripts/{name}"
    prefix = Path(sys.prefix).resolve()
    if real.is_relative_to(prefix):
        return f"{stem}.data/data/{real.relative_to(prefix).as_posix()}"
    return None


def _editable_sources(distribution: Distribution, files: Iterable[Path]) -> dict[str, Path] | None:
    """Returns where the packages of an editable installation are; None if it is a regular one.

    A package is named by its place in the wheel: ``nutbeam/io``, or ``module.py``.
    """
    found: dict[str, Path] = {}
    editable = False
    for path in files:
        if re.fullmatch(r"__editable__.*_finder\.py", path.name):
            editable = True
            found |= _mapped(path)
        elif path.suffix == ".pth":
            folders = [Path(line) for line in path.read_text().splitlines() if line[:1] == "/"]
            editable = editable or bool(folders)
            for folder in folders:
                found |= _packages_in(folder, distribution)
    if not editable and distribution.read_text("RECORD") is None:  # setup.py develop
        editable = True
        found = _packages_in(Path(str(distribution.locate_file(""))), distribution)
    if editable and not found:
        raise UsageError(
            f"cannot tell where the packages of {distribution.name!r} are: "
            "give the file of its wheel instead"
        )
    return found if editable else None


def _mapped(finder: Path) -> dict[str, Path]:
    """Reads the import hook that setuptools writes: package names to folders."""
    for node in ast.parse(finder.read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        named = [target.id for target in targets if isinstance(target, ast.Name)]
        value = getattr(node, "value", None)
        if named == ["MAPPING"] and value is not None:
            mapping: Mapping[str, str] = ast.literal_eval(value)
            return {_place_of(name, Path(path)): Path(path) for name, path in mapping.items()}
    return {}


def _place_of(name: str, path: Path) -> str:
    return name.replace(".", "/") + ("" if path.is_dir() else "".join(path.suffixes))


def _packages_in(folder: Path, distribution: Distribution) -> dict[str, Path]:
    """Returns the packages and modules in a folder that are a distribution's."""
    entries = {
        entry.name.partition(".")[0]: entry
        for entry in sorted(folder.iterdir() if folder.is_dir() else ())
        if (entry.is_dir() and entry.name.isidentifier()) or entry.suffix in (".py", *_BINARY)
    }
    entries.pop("__pycache__", None)
    named = (distribution.read_text("top_level.txt") or "").split()
    guessed = re.sub(r"[-_.]+", "_", distribution.name)
    if not named and folder.name == "src":
        named = list(entries)
    elif not named:
        same = [name for name in entries if name.lower() == guessed.lower()]
        named = same or [name for name in entries if name not in _NO_PACKAGES]
    return {entries[name].name: entries[name] for name in named if name in entries}


def _tree(place: str, source: Path) -> Iterator[tuple[str, bytes]]:
    if source.is_file():
        yield place, source.read_bytes()
    for path in sorted(source.rglob("*") if source.is_dir() else ()):
        below = path.relative_to(source)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in below.parts)
        if path.is_file() and not hidden and path.suffix != ".pyc":
            yield f"{place}/{below.as_posix()}", path.read_bytes()


def _tags(distribution: Distribution, contents: Iterable[str]) -> list[str]:
    """Returns which Pythons and machines a wheel is for."""
    wheel = Parser().parsestr(distribution.read_text("WHEEL") or "")
    tags = [str(tag) for tag in wheel.get_all("Tag") or ()]
    binary = any(PurePosixPath(name).suffix in _BINARY for name in contents)
    if binary and all(tag.endswith("-any") for tag in tags):
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        return [f"{python}-{python}-{re.sub('[-.]', '_', sysconfig.get_platform())}"]
    return tags or ["py3-none-any"]


def _joined(tags: Iterable[str]) -> str:
    """Returns several tags as one, as a wheel's name has them.

    >>> _joined(["py2-none-any", "py3-none-any"])
    'py2.py3-none-any'
    """
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)


def _write(path: Path, contents: Mapping[str, bytes], record: str) -> None:
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            quoted = f'"{name}"' if "," in name else name
            lines.append(f"{quoted},sha256={digest.decode()},{len(content)}\n")
            _add(archive, name, content)
        _add(archive, record, "".join([*lines, f"{record},,\n"]).encode())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, content)
