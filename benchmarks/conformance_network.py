"""A network of its own for each run: the hosts have public addresses there, and nobody else is there.

So a crawler needs no setting to reach them, and none that would open private addresses to it. It needs
Linux, ``unshare`` and ``ip``, but not root.
"""

import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence

# Public by its number; in the network of a run it is this machine.
WEB_ADDRESS = "93.184.215.14"


def missing() -> str:
    """Says what this machine lacks; empty if it has all."""
    lacking = [program for program in ("unshare", "ip", "mount") if shutil.which(program) is None]
    if lacking:
        return f"conformance.py needs {', '.join(lacking)}: apt install util-linux iproute2"
    done = subprocess.run([*_unshare(), "true"], check=False, capture_output=True, text=True)
    return f"no network of its own: {done.stderr.strip()}" if done.returncode else ""


def run_within(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command in a network and with processes of its own; all of them end with it."""
    return subprocess.run([*_unshare(), *words], check=False, capture_output=True, text=True)


def _unshare() -> list[str]:
    options = ["--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child"]
    return ["unshare", *options, "--mount-proc"]


def set_up(names: Iterable[str], private: Iterable[str], others: Mapping[str, str]) -> None:
    """Gives this process's network its addresses and names; call it within ``run_within``.

    Args:
        names: Hosts at ``WEB_ADDRESS``.
        private: Further addresses of this machine.
        others: Addresses of other names.
    """
    _run("ip", "link", "set", "lo", "up")
    for address in (WEB_ADDRESS, *private):
        if not address.startswith("127.") and address != "::1":
            _run("ip", "addr", "add", address, "dev", "lo")
    lines = [f"{address} {name}" for name, address in others.items()]
    lines += [f"{WEB_ADDRESS} {name}" for name in names]
    _replace("/etc/hosts", "\n".join([*lines, ""]))
    _replace("/etc/resolv.conf", "options timeout:1 attempts:1\n")


def _replace(path: str, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write(text)
    pathlib.Path(file.name).chmod(0o644)
    _run("mount", "--bind", file.name, str(pathlib.Path(path).resolve()))
    pathlib.Path(file.name).unlink()


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
