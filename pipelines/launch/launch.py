"""Launching on a runner: where the workers are, what is checked first, what they get."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    SparkRunnerOptions,
    StandardOptions,
)

from ...io.parsing.plugins import PARSE_FILTERS, check_filters, installed_filters, load_filters
from ...io.storage.reach import is_shared
from ...io.table.opening import open_table
from ...policy.documents import DocumentOptions
from ...web.base.errors import UsageError
from ...web.base.options import option
from .delivery import delivered, installed, is_file, package_file
from .requirements import check_runner

REMOTE = ("dataflowrunner", "flinkrunner", "portablerunner", "sparkrunner")


@dataclasses.dataclass(frozen=True)
class LaunchOptions:
    """How a pipeline is brought to its workers."""

    shared_path: bool = option(
        False,
        "The table's folder is the same on this machine and on all workers, as on a network drive.",
        group="launch",
    )
    plugin_package: tuple[str, ...] = option(
        (),
        "Packages of plug-ins that workers need: names of installed ones, or wheel files.",
        group="launch",
    )
    deliver: bool = option(
        True,
        "Bring nutbeam and the packages of plug-ins to workers elsewhere; "
        "false where their image has them.",
        group="launch",
    )
    log_format: str = option(
        "text",
        "How logs are written, here and on workers; json is an object a line, "
        "and shows no progress unless --progress asks for it.",
        choices=("text", "json"),
        group="launch",
    )


def runner_of(beam_args: Sequence[str]) -> str:
    """Returns the runner that Beam's options name, in lower case; in-process without one.

    >>> runner_of(["--runner=Flink"]), runner_of([])
    ('flinkrunner', 'directrunner')
    """
    named = _options(beam_args).view_as(StandardOptions).runner if beam_args else None
    name = str(named or "DirectRunner").lower().rpartition(".")[2]
    return name if name.endswith("runner") else f"{name}runner"


def workers_elsewhere(beam_args: Sequence[str]) -> bool:
    """Returns whether workers may be on other machines, as far as Beam's options say.

    >>> workers_elsewhere(["--runner=PortableRunner", "--job_endpoint=flink:8099"])
    True
    >>> workers_elsewhere(["--runner=FlinkRunner", "--flink_master=[local]"])
    False
    """
    runner = runner_of(beam_args)
    if runner not in REMOTE:
        return False
    options = _options(beam_args)
    portable = options.view_as(PortableOptions)
    local = {
        "flinkrunner": options.view_as(FlinkRunnerOptions).flink_master == "[local]",
        "sparkrunner": str(options.view_as(SparkRunnerOptions).spark_master_url)
        .lower()
        .startswith("local"),
        "portablerunner": portable.job_endpoint == "embed",
    }
    loopback = (portable.environment_type or "").upper() == "LOOPBACK"
    return not (loopback or local.get(runner, False))


def preflight(table: str, options: LaunchOptions, beam_args: Sequence[str]) -> None:
    """Refuses what cannot work, before anything is written.

    Raises:
        UsageError: Workers cannot reach the table; a package, a plug-in, or
            what the runner needs is missing.
        Unavailable: The runner does not answer, or has no room.
    """
    elsewhere = workers_elsewhere(beam_args)
    if elsewhere:
        _check_reach(table, options, beam_args)
    _check_plugins(options, elsewhere)
    if beam_args:
        check_runner(runner_of(beam_args), _options(beam_args))


def launch_args(options: LaunchOptions, beam_args: Sequence[str]) -> list[str]:
    """Returns what Beam is told besides ``beam_args``, so that workers get what they need."""
    args = (
        ["--beam_plugin=nutbeam.pipelines.launch.json_worker"]
        if options.log_format == "json"
        else []
    )
    if options.deliver and workers_elsewhere(beam_args):
        # nutbeam first: plug-ins need it, and what is there is not asked for from an index.
        packages = delivered(("nutbeam", *options.plugin_package))
        args += [f"--extra_package={path}" for path in packages]
    return args


def worker_address(table: str) -> str:
    """Returns a table's address as workers need it: they do not work in our folder."""
    # Of one in Bigtable with the emulator's address, where there is one.
    return str(open_table(table)) if "://" in table else str(Path(table).absolute())


def _check_reach(table: str, options: LaunchOptions, beam_args: Sequence[str]) -> None:
    if options.shared_path or is_shared(open_table(table).files):
        return
    what = f"the files of {table!r} are in" if "://" in table else f"the table {table!r} is"
    raise UsageError(
        f"{what} a folder of this machine, which workers of "
        f"{_options(beam_args).view_as(StandardOptions).runner} may not find: "
        "give --shared_path if they share it, or an address that all can reach"
    )


def _check_plugins(options: LaunchOptions, elsewhere: bool) -> None:
    packages = [package_file(name) for name in options.plugin_package if is_file(name)]
    # The file is enough for workers elsewhere, here the package must be installed.
    names = [name for name in options.plugin_package if not is_file(name)]
    for name in names if elsewhere else [*names, *(package.name for package in packages)]:
        installed(name)
    chosen = options.parse_filters if isinstance(options, DocumentOptions) else ()
    if not elsewhere:
        load_filters(chosen)
    elif chosen and options.deliver:  # else their image has them: workers will see
        points = [point for package in packages for point in package.entry_points]
        brought = {point.name for point in points if point.group == PARSE_FILTERS}
        check_filters(chosen, {*installed_filters(), *brought})


def _options(beam_args: Sequence[str]) -> PipelineOptions:
    return PipelineOptions(list(beam_args))
