"""How large an installation is, and which of its packages a crawl imports.

``python benchmarks/install.py [--small]``. It installs nutbeam into a new environment, with
bytecode, and crawls a simulated web there. ``--small`` weighs the environment that runs it.
"""

import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping

import measure

ROOT = measure.HERE.parent
SHOWN = 14  # packages with a line of their own
BYTECODE = ".pyc"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
CRAWL = """
import sys, tempfile
from nutbeam.pipelines.command_line.cli import main
from nutbeam.web.simweb.server import SimWeb

if __name__ == "__main__":
    with SimWeb(hosts=2, pages=5, seed=7, crawl_delay=0) as web, tempfile.TemporaryDirectory() as here:
        doors = [word for door in web.connect_to for word in ("--connect_to", door)]
        sys.exit(main(["crawl", f"{here}/table", *web.seeds, *doors, "--server_delay", "0"]))
"""


def normal(name: str) -> str:
    """Returns the normalized name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def module_of(path: str) -> str:
    """Returns the name of the module in a file of a distribution; empty if there is none.

    >>> module_of("google/auth/__init__.py"), module_of("numpy/random/mtrand.cpython-311.so")
    ('google.auth', 'numpy.random.mtrand')
    """
    if not path.endswith((".py", ".so")):
        return ""
    folder, _, file = path.rpartition("/")
    names = [*folder.split("/"), file.partition(".")[0]]
    return ".".join(name for name in names if name not in ("", "__init__"))


def weigh() -> dict[str, dict[str, object]]:
    """Returns size, bytecode, modules and needed distributions of each one that is installed here."""
    found = {}
    for dist in importlib.metadata.distributions():
        files = [str(file) for file in dist.files or []]
        places = {file: pathlib.Path(str(dist.locate_file(file))) for file in files}
        for place in [place for place in places.values() if place.suffix == ".py"]:
            made = place.parent / "__pycache__"  # not in the record, if uv compiled it
            compiled = made.glob(f"{place.stem}.cpython-*{BYTECODE}")
            places |= {str(file): file for file in compiled}
        sizes = {str(p): p.stat().st_size for p in places.values() if p.is_file()}
        found[normal(dist.metadata["Name"])] = {
            "bytes": sum(sizes.values()),
            "bytecode": sum(size for name, size in sizes.items() if name.endswith(BYTECODE)),
            "modules": sorted({module_of(file) for file in files} - {""}),
            "needs": sorted(
                {normal(_NAME.match(r)[0]) for r in dist.requires or [] if "extra ==" not in r}  # type: ignore[index]
            ),
        }
    return found


def imported(python: str) -> set[str]:
    """Returns the modules that a crawl imports, in all of its processes."""
    environ = os.environ | {"PYTHONPROFILEIMPORTTIME": "1"}
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "crawl.py"
        program.write_text(CRAWL)
        done = subprocess.run(
            [python, str(program)], env=environ, check=False, capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"the crawl failed: {done.stderr[-2000:]}")
    return set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))


def needed_by(name: str, found: Mapping[str, dict]) -> Iterable[str]:
    """Returns what needs a distribution; nutbeam alone, if it is one of those."""
    direct = sorted(other for other, dist in found.items() if name in dist["needs"])
    return ["nutbeam"] if "nutbeam" in direct else direct


def make_environment(folder: str, extra: str = "") -> str:
    """Installs nutbeam into a new environment, perhaps with an extra; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = f"{folder}/bin/python"
    what = f"{ROOT}[{extra}]" if extra else str(ROOT)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--editable", what], check=True)
    return python


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        small = "--small" in sys.argv[1:]
        python = sys.executable if small else make_environment(f"{folder}/venv")
        code = f"import sys, json; sys.path.insert(0, {str(measure.HERE)!r}); import install; "
        code += "print(json.dumps(install.weigh()))"
        told = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
        found = json.loads(told.stdout)
        used = imported(python)
    lines: dict[str, list[float]] = defaultdict(lambda: [0, 0])
    texts = {}
    largest = sorted(found, key=lambda name: -found[name]["bytes"])
    for place, name in enumerate(largest):
        dist = found[name]
        line = name if place < SHOWN else f"{len(found) - SHOWN} more"
        lines[line][0] += dist["bytes"] / 1e6
        lines[line][1] += dist["bytecode"] / 1e6
        yes = "yes" if used.intersection(dist["modules"]) else "no"
        texts[line] = (", ".join(needed_by(name, found)), yes) if line == name else ("", "")
    total = tuple(map(sum, zip(*lines.values(), strict=True)))
    unused = sum(dist["bytes"] for dist in found.values() if not used.intersection(dist["modules"]))
    rows = [(line, *lines[line], *texts[line]) for line in lines]
    rows += [("all", *total, "", ""), ("of it not imported by a crawl", unused / 1e6, "", "", "")]
    heads = ("package", "MB", "of it bytecode", "needed by", "a crawl imports it")
    measure.table(f"{len(found)} packages", heads, rows)


if __name__ == "__main__":
    main()
