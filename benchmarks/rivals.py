"""The crawlers of ``conformance.py``: versions, how each is installed and run, and with which settings.

Each has an environment of its own below build/rivals, and reads its task from ``job.json`` in the
folder in which it runs. The programs are in rival_programs/. A version is pinned here and nowhere else
(those of colly and its dependencies in rival_programs/colly/go.mod).
"""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

from conformance_sites import AGENT, Job

ROOT = pathlib.Path(__file__).parent.parent
PROGRAMS = pathlib.Path(__file__).parent / "rival_programs"
BUILD = ROOT / "build" / "rivals"
USER_AGENT = f"{AGENT}/1.0 (+http://www.example.com/bot.html)"
Words = list[str]


@dataclasses.dataclass(frozen=True)
class Rival:
    """A crawler.

    Attributes:
        name: In the table.
        version: Its version.
        needs: Programs without which it cannot be installed.
        install: Commands that install it, in ``folder``.
        commands: The commands that do a job, one after another; given the job's folder and the job.
        pages: Returns the URLs of the pages that it has kept; given the job's folder.
        settings: What is set for politeness, for the docs.
        unbuilt: Why it may have no results.
        prepare: A command that brings its program there, before each run.
    """

    name: str
    version: str
    needs: tuple[str, ...]
    install: tuple[Words, ...]
    commands: Callable[[pathlib.Path, Job], list[Words]]
    pages: Callable[[pathlib.Path], set[str]]
    settings: str
    unbuilt: str = "it has no results yet"
    prepare: Words = dataclasses.field(default_factory=list)

    @property
    def folder(self) -> pathlib.Path:
        return BUILD / self.name.replace(" ", "-").lower()

    def why_not(self) -> str:
        """Says what is missing to install it; empty if nothing is."""
        lacking = [program for program in self.needs if shutil.which(program) is None]
        return f"{', '.join(lacking)} is not installed here" if lacking else ""

    def ensure(self) -> str:
        """Installs it if this version is not there; returns why that failed, or nothing."""
        stamp = self.folder / "installed"
        if stamp.exists() and stamp.read_text() == self.version:
            return self._run(self.prepare) if self.prepare else ""
        if self.why_not():
            return self.why_not()
        print(f"installing {self.name} {self.version} ...", file=sys.stderr, flush=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        for words in (*self.install, self.prepare):
            problem = self._run(words) if words else ""
            if problem:
                return problem
        stamp.write_text(self.version)
        return ""

    def _run(self, words: Words) -> str:
        done = subprocess.run(words, cwd=self.folder, check=False, capture_output=True, text=True)
        lines = (done.stderr or done.stdout or "it says nothing").strip().splitlines()
        return f"{' '.join(words[:3])} failed: {lines[-1]}" if done.returncode else ""


def write_job(folder: pathlib.Path, job: Job, concurrency: int) -> None:
    """Writes job.json, which the programs read."""
    task = {
        "seeds": job.seeds, "delay": job.delay, "anywhere": job.anywhere, "agent": USER_AGENT,
        "concurrency": concurrency,
    }  # fmt: skip
    (folder / "job.json").write_text(json.dumps(task))


def _listed_pages(folder: pathlib.Path) -> set[str]:
    file = folder / "pages.txt"
    return set(file.read_text().splitlines()) if file.exists() else set()


def _python_rival(name: str, package: str, version: str, program: str, settings: str) -> Rival:
    """Returns a crawler in Python, with a virtual environment of its own."""
    python = str(BUILD / name.replace(" ", "-").lower() / "env" / "bin" / "python")
    install = (
        [sys.executable, "-m", "venv", "env"],
        [python, "-m", "pip", "install", "--quiet", f"{package}=={version}"],
    )
    command = [python, str(PROGRAMS / program)]
    return Rival(name, version, (), install, lambda *_: [command], _listed_pages, settings)


def _of_spider(folder: pathlib.Path, job: Job) -> list[Words]:
    """Returns a command per seed: the program takes one."""
    spider = str(SPIDER.folder / "bin" / "spider")
    scope = ["--external-domains", "*"] if job.anywhere else []
    delay = ["--delay", str(round(job.delay * 1000))] if job.delay else []
    return [
        [spider, "--url", seed, "--respect-robots-txt", *delay, "--agent", USER_AGENT, *scope,
         "--verbose", "crawl", "--output-links"]
        for seed in job.seeds
    ]  # fmt: skip


def _pages_of_spider(folder: pathlib.Path) -> set[str]:
    words = (folder / "output.txt").read_text(errors="replace").replace('"', " ").split()
    return {word.rstrip(",") for word in words if word.startswith("http")}


def _of_nutbeam(folder: pathlib.Path, job: Job) -> list[Words]:
    port = job.local_port
    local = ["--allow_addresses=127.0.0.1/32", f"--allowed_ports={port}"] if port else []
    # A file for each page: only where pages must outlive kills.
    flush = ["--flush_seconds=0"] if job.name == "kills" else []
    threads = json.loads((folder / "job.json").read_text())["concurrency"]
    return [
        [sys.executable, "-m", "nutbeam", "crawl", "table", *job.seeds, "--rounds=-1",
         f"--scope={'any' if job.anywhere else 'host'}", f"--server_delay={job.delay:g}",
         f"--threads_per_host={threads}", f"--agent_name={AGENT}",
         "--agent_url=http://www.example.com/bot.html", *flush, "--progress=false",
         *local]
    ]  # fmt: skip


def _pages_of_nutbeam(folder: pathlib.Path) -> set[str]:
    command = [sys.executable, "-m", "nutbeam", "pages", "table", "-o", "pages.jsonl"]
    subprocess.run(command, cwd=folder, check=False, capture_output=True)
    lines = (folder / "pages.jsonl").read_text().splitlines()
    return {json.loads(line)["url"] for line in lines}


SCRAPY = _python_rival(
    "Scrapy", "scrapy", "2.19.0", "scrapy_crawl.py",
    "as `scrapy startproject` writes them: `ROBOTSTXT_OBEY`, one request at a time to a domain, "
    "`DOWNLOAD_DELAY`, here without its random part; `JOBDIR`, to continue",
)  # fmt: skip
CRAWLEE = _python_rival(
    "Crawlee for Python", "crawlee[beautifulsoup,httpx]", "1.11.0", "crawlee_crawl.py",
    "`respect_robots_txt_file`, `ThrottlingRequestManager` for the hosts of the seeds, "
    "`max_tasks_per_minute`, `max_concurrency=1`; `purge_on_start=False`, to continue",
)  # fmt: skip
CRAWLEE_JS = Rival(
    "Crawlee", "3.18.1", ("node", "npm"),
    (["npm", "install", "--silent", "--no-save", "crawlee@3.18.1"],),
    lambda *_: [["node", str(CRAWLEE_JS.folder / "crawlee_crawl.mjs")]],
    _listed_pages,
    "`respectRobotsTxtFile`, `sameDomainDelaySecs`, `maxConcurrency: 1`; `purgeOnStart: false`, "
    "to continue",
    prepare=["cp", str(PROGRAMS / "crawlee_crawl.mjs"), "."],
)  # fmt: skip
CRAWL4AI = _python_rival(
    "crawl4ai", "crawl4ai", "0.9.5", "crawl4ai_crawl.py",
    "without a browser (`AsyncHTTPCrawlerStrategy`): `check_robots_txt`, `mean_delay` with "
    "`max_range=0`, `semaphore_count=1`; `resume_state` and `on_state_change`, to continue",
)  # fmt: skip
COLLY = Rival(
    "colly", "2.3.0", ("go",),
    (),
    lambda *_: [[str(COLLY.folder / "crawl")]],
    _listed_pages,
    "`IgnoreRobotsTxt = false`, a `LimitRule` for each host with `Delay` and `Parallelism: 1`; it "
    "keeps what it visited in memory, so a killed one begins again",
    prepare=["go", "build", "-C", str(PROGRAMS / "colly"), "-o", str(BUILD / "colly" / "crawl"), "."],
)  # fmt: skip
SPIDER = Rival(
    "spider_cli", "2.53.9", ("cargo",),
    (
        ["cargo", "install", "--quiet", "spider_cli", "--version", "2.53.9", "--root", ".",
         "--no-default-features", "--features", "status_code"],
    ),
    _of_spider,
    _pages_of_spider,
    "`--respect-robots-txt --delay`, a process per seed; it has no way to continue",
    "it is built from 486 packages, which took too long beside other work when these figures were taken",
)  # fmt: skip
NUTBEAM = Rival(
    "nutbeam", "", (), (), _of_nutbeam, _pages_of_nutbeam,
    "its defaults, with `--server_delay`; the same command again, with `--flush_seconds 0`, to continue after kills",
)  # fmt: skip
RIVALS = {r.name: r for r in (NUTBEAM, SCRAPY, CRAWLEE, CRAWLEE_JS, CRAWL4AI, COLLY, SPIDER)}
NOT_RUN = {
    "Nutch 1.22": "Maven Central has its core, but none of its plug-ins, which fetch (`protocol-http`), "
    "parse and filter; a build of its source needs what no package registry has"
}


def environment(folder: pathlib.Path) -> dict[str, str]:
    """Returns the environment of a crawler: what it keeps at home is kept in the job's folder."""
    home = str(folder)
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return inherited | {"HOME": home, "CRAWL4_AI_BASE_DIRECTORY": home, "PYTHONUNBUFFERED": "1"}
