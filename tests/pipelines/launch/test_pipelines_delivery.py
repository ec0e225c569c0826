import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import sysconfig
import zipfile

import pytest
from plugins import install, install_example
from waiting import PATIENCE

from nutbeam.pipelines.launch.delivery import package_file, wheel_of
from nutbeam.web.base.errors import UsageError

LIBRARIES = sysconfig.get_path("purelib")


def assert_recorded(wheel):
    """Asserts that a wheel's RECORD lists just what is in it, with the right digests."""
    with zipfile.ZipFile(wheel) as archive:
        (record,) = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
        assert [row[0] for row in rows] == archive.namelist()
        for name, digest, size in rows[:-1]:
            content = archive.read(name)
            right = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert (digest, size) == (f"sha256={right}", str(len(content)))
        assert rows[-1] == [record, "", ""]


def test_nutbeams_wheel_in_a_clean_environment(tmp_path):
    """Whether it is installed in development mode or not."""
    wheel = wheel_of("nutbeam", tmp_path)
    assert_recorded(wheel)
    venv = tmp_path / "venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=PATIENCE
    )
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(LIBRARIES)  # hooks of editable packages do not work there
    python = str(venv / "bin" / "python")

    def run(*words):
        return subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
        ).stdout

    install = (
        "install",
        "--no-deps",
        "--no-index",
        "--ignore-installed",
        "--disable-pip-version-check",
        str(wheel),
    )
    run(python, "-m", "pip", *install)
    assert run(str(venv / "bin" / "nutbeam"), "--version").startswith("nutbeam ")
    assert "crawl" in run(python, "-m", "nutbeam", "--help")
    code = (
        "import json, importlib.metadata as m, nutbeam.web.rules.url_rules, nutbeam.web.simweb.server as s\n"
        "points = m.entry_points(group='console_scripts', name='nutbeam')\n"
        "rules = nutbeam.web.rules.url_rules.UrlRules(nutbeam.web.rules.url_rules.UrlOptions())\n"  # reads its data
        "print(json.dumps([s.__file__, [p.value for p in points][:1]]))"
    )
    file, points = json.loads(run(python, "-c", code))
    assert file.startswith(str(site))
    assert points == ["nutbeam.__main__:script"]
    names = {path.relative_to(site / "nutbeam").parts[0] for path in site.glob("nutbeam/**/*.py")}
    rooms = {"io", "pipelines", "policy", "transforms", "web"}
    assert names == {"__init__.py", "__main__.py", *rooms}
    code = "from nutbeam import TopNPerKey, __version__; print(__version__, TopNPerKey.__module__)"
    assert run(python, "-c", code).endswith(" nutbeam.transforms.top_n_per_key\n")


def test_the_same_files_make_the_same_wheel(tmp_path):
    (tmp_path / "again").mkdir()
    first, second = wheel_of("protego", tmp_path), wheel_of("protego", tmp_path / "again")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("package", ["beautifulsoup4", "rich", "selectolax"])
def test_a_regular_package_comes_as_it_was_installed(package, tmp_path):
    wheel = wheel_of(package, tmp_path)
    assert_recorded(wheel)
    binary = package == "selectolax"
    assert ("none-any" in wheel.name) != binary
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not re.search(r"dist-info/(RECORD|WHEEL)$", name):
                with open(f"{LIBRARIES}/{name}", "rb") as file:  # noqa: PTH123
                    assert archive.read(name) == file.read()
    read = package_file(str(wheel))
    assert read.name.lower() == package


def test_a_plug_in_is_known_by_its_wheel(tmp_path, monkeypatch):
    install_example(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    wheel = wheel_of("headings-filter", tmp_path)
    assert wheel.name == "headings_filter-1.0-py3-none-any.whl"
    (point,) = package_file(str(wheel)).entry_points
    assert (point.name, point.group) == ("headings", "nutbeam.parse_filters")
    assert point.value == "headings_filter:headings"


# What the tools that make editable installations leave behind.
EDITABLE = {
    "src folder": ({}, "src", {"src/two/__init__.py", "src/two/data.txt", "src/alone.py"}),
    "named modules": (
        {"top_level.txt": "two\nalone\n"}, ".",
        {"two/__init__.py", "two/data.txt", "alone.py", "tests/test_x.py", "setup.py"},
    ),
    "named as the package": (
        {}, ".", {"two_parts/__init__.py", "tests/test_x.py", "other/__init__.py"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EDITABLE)
def test_an_editable_package_comes_from_where_it_is_imported(case, tmp_path, monkeypatch):
    extra, folder, files = EDITABLE[case]
    project = tmp_path / "project"
    for name in files:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"'{name}'")
    (project / folder / "two_parts.egg-info").mkdir()
    site = tmp_path / "site"
    info = {f"two_parts-1.0.dist-info/{name}": text for name, text in extra.items()}
    install(site, "two-parts", {"_two.pth": f"{project / folder}\n", **info}, {})
    monkeypatch.syspath_prepend(str(site))
    with zipfile.ZipFile(wheel_of("two-parts", tmp_path)) as archive:
        found = {name for name in archive.namelist() if "dist-info" not in name}
    wanted = {name.removeprefix("src/") for name in files}
    if case == "named as the package":
        wanted = {"two_parts/__init__.py"}
    assert found == {name for name in wanted if name not in ("tests/test_x.py", "setup.py")}


def test_an_editable_package_by_an_import_hook(tmp_path, monkeypatch):
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "deep" / "data.xml").write_text("<a/>")
    (tmp_path / "alone.py").write_text("1")
    mapping = {"name.space": str(tmp_path / "lib"), "alone": str(tmp_path / "alone.py")}
    hook = {"__editable___hooked_1_0_finder.py": f"import sys\nMAPPING: dict = {mapping!r}\n"}
    install(tmp_path / "site", "hooked", hook, {})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with zipfile.ZipFile(wheel_of("hooked", tmp_path)) as archive:
        found = {name for name in archive.namelist() if "dist-info" not in name}
    assert found == {"name/space/deep/data.xml", "alone.py"}


def test_a_package_that_is_not_whole_is_refused(tmp_path, monkeypatch):
    install(tmp_path, "halved", {"halved.py": ""}, {})
    (tmp_path / "halved.py").unlink()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        UsageError, match=r"^package 'halved' is not whole: '.*/halved.py': no such"
    ):
        wheel_of("halved", tmp_path)


def test_an_editable_package_whose_folder_is_gone_is_refused(tmp_path, monkeypatch):
    install(tmp_path, "lost", {"lost.pth": f"{tmp_path}/gone\n"}, {})
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        UsageError, match=r"^cannot tell where the packages of 'lost' are: give the"
    ):
        wheel_of("lost", tmp_path)


def test_a_folder_of_sources_is_not_an_installation(tmp_path, monkeypatch):
    (tmp_path / "loose.egg-info").mkdir()
    (tmp_path / "loose.egg-info" / "PKG-INFO").write_text("Name: loose\nVersion: 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match=r"^cannot tell where the packages of 'loose' are: give"):
        wheel_of("loose", tmp_path)


@pytest.mark.parametrize("name", ["no-such-package", "../etc", "a b", ""])
def test_a_package_that_is_not_installed(name, tmp_path):
    with pytest.raises(UsageError, match="is not installed here: install it, or give the file of"):
        wheel_of(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.whl", None, "cannot read the package '.*gone.whl': no such file or directory"),
        ("a.whl", b"no zip", "'.*a.whl' is no wheel: File is not a zip file"),
        ("a.whl", b"PK\5\6" + bytes(18), "is no wheel: .* its metadata is missing"),
        ("a.zip", b"PK\5\6" + bytes(18), "is no wheel: its name does not end in .whl"),
        ("a.exe", b"", "is no wheel: File is not a zip file"),
    ],
)
def test_a_file_that_is_no_package(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        package_file(str(tmp_path / name))
