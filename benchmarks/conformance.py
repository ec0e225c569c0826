"""Crawlers on a hostile web, counted at the server.

``python benchmarks/conformance.py [CRAWLER ...] [--only SCENARIO ...] [--speed] [--table] [--write]``.
Each crawler (``rivals.py``) is installed below build/rivals and runs each scenario
(``conformance_sites.py``) in a network of its own (``conformance_network.py``), with the settings that
its documentation gives for politeness. What a server saw is counted (``conformance_counts.py``), not
what a crawler says. Results are kept in build/conformance, with what each printed; a run replaces those
of its crawlers and scenarios. Three run at a time: the counts depend on delays, not on speed.

``--speed`` crawls the documentation site instead, one crawler at a time; its figures depend on what
else the machine does. ``--table`` runs nothing, and prints the tables of the kept results. ``--write``
puts the tables into docs/comparison.md, too. Needs Linux with unshare and ip.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import conformance_counts as counts
import conformance_network as network
import conformance_sites as sites
import measure
from conformance_runs import Used, run_commands
from conformance_tables import PAGE, tables, write_page
from conformance_web import Canary, ServedWeb
from rivals import RIVALS, ROOT, Rival, environment, write_job

KEPT = ROOT / "build" / "conformance"
AT_A_TIME = 3
Result = dict[str, Any]


def run(rival: Rival, name: str, folder: pathlib.Path) -> Result:
    """Runs a scenario in the network of this process; returns what was counted."""
    job, answer = sites.scenarios()[name]
    private = sites.CANARY_ADDRESSES if name == "private" else ()
    network.set_up(sites.host_names(), private, sites.PRIVATE_NAMES)
    write_job(folder, job, 1)
    with contextlib.ExitStack() as stack:
        web = stack.enter_context(ServedWeb(answer, network.WEB_ADDRESS, 80))
        canary = stack.enter_context(Canary(private, 80))
        crawled = _killed if name == "kills" else _crawled
        used = crawled(rival, job, folder, web)
        (folder / "seen.json").write_text("\n".join(map(json.dumps, web.seen)))
        return _counted(rival, name, folder, web, canary) | {"used": used._asdict()}


def _crawled(rival: Rival, job: sites.Job, folder: pathlib.Path, web: ServedWeb) -> Used:
    # These end by what was requested: how long a crawler needs to start does not count.
    stops = {"trap": counts.trap_is_over, "busy": counts.busy_is_over}
    over = stops.get(job.name, lambda _: False)
    commands, home = rival.commands(folder, job), environment(folder)
    return run_commands(commands, folder, home, job.seconds, lambda: over(web.seen))


def _killed(rival: Rival, job: sites.Job, folder: pathlib.Path, web: ServedWeb) -> Used:
    """Kills the crawler again and again, each time after some more requests, then lets it end."""
    commands, home = rival.commands(folder, job), environment(folder)
    for _ in range(sites.KILLS):
        enough = len(counts.page_requests(web.seen)) + sites.KILL_EVERY
        stop = functools.partial(_has_seen, web, enough)
        run_commands(commands, folder, home, job.seconds, stop)
    return run_commands(commands, folder, home, job.seconds)


def _has_seen(web: ServedWeb, requests: int) -> bool:
    return len(counts.page_requests(web.seen)) >= requests


def _counted(
    rival: Rival, name: str, folder: pathlib.Path, web: ServedWeb, canary: Canary
) -> Result:
    seen = web.seen
    if name == "delays":
        return {
            "gaps": counts.short_gaps(seen, sites.DELAY_HOST, sites.DELAY),
            "crawl_delay": counts.short_gaps(seen, sites.CRAWL_DELAY_HOST, sites.CRAWL_DELAY),
            "shortest": min(counts.gaps(seen, sites.DELAY_HOST), default=0.0),
        }
    if name == "robots":
        return _robots_counted(web)
    if name == "busy":
        after = [
            counts.requests_while_busy(seen, host, sites.FIRST_BUSY, seconds)
            for host, seconds in sites.BUSY_HOSTS.items()
        ]
        pages = [counts.pages_requested(seen, host) for host in sites.BUSY_HOSTS]
        return {"after": after, "pages": pages}
    if name == "private":
        kinds = {"link": len(sites.SPELLINGS), "redirect": len(sites.REDIRECTED)}
        reached = {
            kind: counts.Tally(counts.reached(canary.targets, kind), most)
            for kind, most in kinds.items()
        }
        ways = [(sites.LINKS_HOST, f"/to/{number}") for number in range(len(sites.REDIRECTED))]
        return reached | {
            "connections": canary.connections,
            "redirects_requested": counts.requested(seen, ways),
        }
    if name == "trap":
        return {"urls": counts.pages_requested(seen, sites.TRAP_HOST)}
    if name == "kills":
        pages = [f"http://{sites.KEPT_HOST}{sites.kept_path(n)}" for n in range(sites.KEPT_PAGES)]
        return {
            "lost": counts.lost_pages(pages, rival.pages(folder)),
            "repeated": counts.repeated_requests(seen, sites.KEPT_HOST),
        }
    honest = [(sites.HONEST_HOST, sites.honest_path(n)) for n in range(sites.HONEST_PAGES)]
    return {"honest": counts.requested(seen, honest)}


def _robots_counted(web: ServedWeb) -> Result:
    rules = dict(sites.RULES) | {sites.RESET_HOST.removesuffix(".example.com"): sites.RESET_RULES}
    result: Result = {"rules": {}}
    for name, each in rules.items():
        result["rules"][name] = [
            counts.requested(web.seen, sites.urls_of({name: each}, kind))
            for kind in ("forbidden", "allowed")
        ]
    return result


def crawl_documentation(rival: Rival, folder: pathlib.Path) -> Result:
    """Crawls the documentation site as fast as it can; returns pages and what that took."""
    helper = measure.docs_site_helper()
    with helper.DocsSite() as site:
        seed = f"http://127.0.0.1:{site.port}/"
        job = sites.Job("speed", [seed], 0, 900, local_port=site.port)
        write_job(folder, job, 16)
        used = run_commands(rival.commands(folder, job), folder, environment(folder), job.seconds)
    paths = {urlsplit(url).path for url in rival.pages(folder)}
    pages = sum(path.endswith(("/", ".html", ".htm")) for path in paths)
    return {"pages": pages, "used": used._asdict(), "load": os.getloadavg()[1]}


def run_apart(rival: Rival, name: str) -> None:
    """Runs a scenario in a process and a network of its own, and keeps the result."""
    folder = KEPT / f"{rival.folder.name}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = [sys.executable, __file__, "--within", rival.name, name, str(folder)]
    # nginx cannot start where root is the only user.
    done = _run(words) if name == "speed" else network.run_within(words)
    ok = (folder / "result.json").exists()
    print(f"{rival.name}: {name}{'' if ok else ' failed:'}", file=sys.stderr, flush=True)
    if not ok:
        print(done.stderr, file=sys.stderr, flush=True)


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True)


def run_within(rival: Rival, name: str, folder: pathlib.Path) -> None:
    """Is what ``run_apart`` starts."""
    result = crawl_documentation(rival, folder) if name == "speed" else run(rival, name, folder)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    dated_result = {"version": rival.version, "day": day} | result
    (folder / "result.json").write_text(json.dumps(dated_result))


def kept_results() -> dict[str, dict[str, Result]]:
    """Returns the kept results: by crawler, by scenario."""
    results: dict[str, dict[str, Result]] = {}
    for name, rival in RIVALS.items():
        for scenario in (*sites.scenarios(), "speed"):
            file = KEPT / f"{rival.folder.name}-{scenario}" / "result.json"
            if file.exists():
                results.setdefault(name, {})[scenario] = json.loads(file.read_text())
    return results


def run_all(rivals: Sequence[Rival], names: Sequence[str]) -> None:
    """Installs crawlers and runs scenarios, some at a time; says what cannot be installed."""
    ready = []
    for rival in rivals:
        problem = rival.ensure()
        if problem:
            print(f"not run: {rival.name}: {problem}", file=sys.stderr)
        else:
            ready.append(rival)
    pairs = [(rival, name) for name in names for rival in ready]
    workers = 1 if "speed" in names else AT_A_TIME
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda pair: run_apart(*pair), pairs))


def read_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Returns what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("crawlers", nargs="*", metavar="CRAWLER", help=", ".join(RIVALS))
    parser.add_argument("--only", nargs="+", default=[], choices=tuple(sites.scenarios()))
    for flag in ("speed", "table", "write"):
        parser.add_argument(f"--{flag}", action="store_true")
    arguments = parser.parse_args(words)
    unknown = set(arguments.crawlers) - set(RIVALS)
    if unknown:
        parser.error(f"no crawler {min(unknown)!r}; there are {', '.join(RIVALS)}")
    return arguments


def main(words: Sequence[str]) -> None:
    """Does what the command line says."""
    if words[:1] == ["--within"]:
        run_within(RIVALS[words[1]], words[2], pathlib.Path(words[3]))
        return
    arguments = read_arguments(words)
    if not arguments.table:
        if network.missing():
            raise SystemExit(network.missing())
        rivals = [RIVALS[name] for name in arguments.crawlers or RIVALS]
        run_all(rivals, ["speed"] if arguments.speed else arguments.only or [*sites.scenarios()])
    text = tables(kept_results())
    print(text)
    if arguments.write:
        write_page(PAGE, text)


if __name__ == "__main__":
    main(sys.argv[1:])
