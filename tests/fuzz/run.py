"""Fuzzes readers, one after the other, each for some seconds: ``make fuzz``.

``python tests/fuzz/run.py [--seconds N] [TARGET]...``. atheris sees which code runs: inputs that
reach new code are kept in build/fuzz/corpus, and the next run begins with them. Without atheris,
the inputs are random changes of the seeds. A failed check is shown, its input is kept in
build/fuzz/found, and the exit code is 1.
"""

import argparse
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build" / "fuzz"
MODULES = ("urls", "rule_files", "documents", "expressions", "hadoop")
# Longer than any check allows itself, in s: for what never returns.
STALL = 120
MEMORY_MB = 4096
_RUNS = re.compile(r"stat::number_of_executed_units: (\d+)")
_TRACE = re.compile(r"=== Uncaught Python exception: ===\n(.*?)(?:==\d+==|\Z)", re.DOTALL)


def targets():
    """Returns all targets by name; the modules of the readers are imported here."""
    return {
        target.name: target
        for module in MODULES
        for target in importlib.import_module(f"fuzz.{module}").TARGETS
    }


def with_coverage(name, seconds):
    """Fuzzes a target in a process of its own; returns how often, and what was found."""
    corpus, found = BUILD / "corpus" / name, BUILD / "found"
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(found.iterdir())
    arguments = [f"-max_total_time={seconds}", f"-timeout={STALL}", f"-rss_limit_mb={MEMORY_MB}",
                 f"-artifact_prefix={found}/{name}-", "-print_final_stats=1", str(corpus)]  # fmt: skip
    command = [sys.executable, __file__, "--libfuzzer", name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    runs = _RUNS.search(done.stderr)
    if done.returncode == 0 and runs:
        return int(runs[1]), ""
    said = _TRACE.search(done.stdout)
    kept = ", ".join(str(path) for path in set(found.iterdir()) - before)
    return int(runs[1]) if runs else 0, f"{said[1] if said else done.stderr[-3000:]}\ninput: {kept}"


def libfuzzer(name, arguments):
    """Is the process of ``with_coverage``; does not return."""
    import atheris

    with atheris.instrument_imports(include=["nutbeam", "fuzz"]):
        target = targets()[name]
    corpus = Path(arguments[-1])
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = corpus.parent / f"{name}.words"
    lines = ["".join(f"\\x{byte:02x}" for byte in word) for word in target.words]
    words.write_text("".join(f'"{line}"\n' for line in lines))
    options = [f"-max_len={target.max_bytes}", f"-dict={words}", *arguments]
    atheris.Setup([name, *options], target.check)
    atheris.Fuzz()


def by_chance(name, seconds):
    """Fuzzes a target in this process; returns how often, and what was found."""
    from fuzz.target import mutated

    end, done = time.monotonic() + seconds, 0
    target = targets()[name]
    for seed in itertools.count():
        for data in mutated(target, 1000, seed):
            if time.monotonic() > end:
                return done, ""
            done += 1
            try:
                target.check(data)
            except Exception:  # noqa: BLE001 - whatever it is, it is a finding
                path = BUILD / "found" / f"{name}-{seed}-{done}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                return done, f"{traceback.format_exc()}\ninput: {path}"
    raise AssertionError


def main(words):
    if words[:1] == ["--libfuzzer"]:
        return libfuzzer(words[1], words[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("names", nargs="*", metavar="TARGET")
    given = parser.parse_args(words)
    known = targets()
    unknown = set(given.names) - known.keys()
    if unknown:
        parser.error(f"a target must be one of {', '.join(known)}, got {', '.join(unknown)}")
    covered = importlib.util.find_spec("atheris") is not None
    if not covered:
        print("atheris is not here: random changes alone, blind to which code they reach")
    findings = 0
    for name in given.names or known:
        runs, finding = (with_coverage if covered else by_chance)(name, given.seconds)
        findings += bool(finding)
        print(
            f"{name}: {runs:,} executions, {'1 finding' if finding else 'no finding'}", flush=True
        )
        if finding:
            print(finding, flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    # Columns are short here: to wake other threads takes longer than the work.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
