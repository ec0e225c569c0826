"""The template of a package of plug-ins in docs/: built, installed into a folder, and tried on a site."""

import contextlib
import shutil
import socketserver
import subprocess
import sys
import threading

from here import ROOT

TEMPLATE = ROOT / "docs" / "plugin_template"
SETUP = "from setuptools import setup; setup()"
PAGES = {
    "": "iFront\tx\tx\t1\r\n0News\t/news?print=1\t{place}\r\n1Menu\t/menu?utm_source=front\t{place}\r\n"
    "0Empty\t/empty\t{place}\r\n.\r\n",
    "/menu": "iSecond menu\tx\tx\t1\r\n0Text\t/text\t{place}\r\n.\r\n",
    "/text": "one two three",
    "/empty": " ",
}


def install_template(folder):
    """Builds the template with setuptools, and installs it, without network; returns where it is.

    The environment of the tests may lack the package wheel, so the metadata that an installation from a
    wheel has are made of those that setuptools writes.
    """
    source, site = folder / "source", folder / "site"
    shutil.copytree(TEMPLATE, source, ignore=shutil.ignore_patterns("__pycache__"))
    words = [
        *(
            sys.executable,
            "-W",
            "ignore",
            "-c",
            SETUP,
            "-q",
            "build",
            "--build-base",
            folder / "build",
        ),
        *("install", "--single-version-externally-managed", "--root", "/"),
        *("--install-lib", site, "--record", folder / "record"),
    ]
    subprocess.run(words, cwd=source, check=True, capture_output=True, timeout=120)
    (egg,) = site.glob("*.egg-info")
    info = site / "nutbeam_example-1.0.dist-info"
    info.mkdir()
    (egg / "PKG-INFO").rename(info / "METADATA")
    (egg / "entry_points.txt").rename(info / "entry_points.txt")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    shutil.rmtree(egg)
    files = [path.relative_to(site) for path in site.rglob("*") if path.is_file()]
    record = info.relative_to(site) / "RECORD"
    (site / record).write_text("".join(f"{path},,\n" for path in [*files, record]))
    return site


class _Gopher(socketserver.StreamRequestHandler):
    def handle(self):
        selector = self.rfile.readline().decode().rstrip("\r\n")
        page = PAGES.get(selector, "3not here\tx\tx\t1\r\n.\r\n")
        place = f"localhost\t{self.server.server_address[1]}"
        self.wfile.write(page.replace("{place}", place).encode())


@contextlib.contextmanager
def gopher_site():
    """Serves a small site of Gopher on this machine; yields its port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Gopher) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def template_options(port):
    """Returns the options that use all plug-ins of the template that a round has."""
    return (
        *("--schemes", "http,https,gopher", "--protocols", "gopher:=gopher"),
        *("--parsers", "application/gopher-menu=gopher_menu"),
        *("--url_filters", "regex,no_print_versions"),
        *("--url_normalizers", "basic,regex,without_tracking"),
        *("--parse_filters", "reading_time", "--schedule", "daily_front_pages"),
        *("--scoring", "opic,shallow", "--allow_addresses", "127.0.0.0/8,::1/128"),
        *("--allowed_ports", str(port), "--server_delay", "0"),
    )
