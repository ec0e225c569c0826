"""Prepares a launch on a runner: finds where the workers are, checks the runner, sends packages.

The needs of a runner, such as servers, slots and credentials, are checked before anything is written.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...io.table.opening import open_table
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.plugins.plugin_options import plugin_names

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

REMOTE = ("dataflowrunner", "flinkrunner", "portablerunner", "sparkrunner")


@dataclass(frozen=True)
class LaunchOptions:
    """Options of launching a pipeline on its workers."""

    shared_path: bool = option(
        False,
        "The table's folder is the same on this machine and on all workers, as on a network drive.",
    )
    plugin_package: tuple[str, ...] = option(
        (),
        "Packages of plug-ins that workers need: names of installed ones, or wheel files.",
        takes="path",
    )
    deliver: bool = option(
        True,
        "Send nutbeam and the packages of plug-ins to workers on other machines; "
        "false if their image has them.",
    )
    log_format: str = option(
        "text",
        "Format of logs, here and on workers; json is one object per line, also for the start and "
        "the end of each phase, and shows no progress without --progress.",
        choices=("text", "json"),
    )
    metrics_port: str = option(
        "",
        "Serve metrics for Prometheus while the command runs, at http://ADDRESS:PORT/metrics: a port "
        "of this machine alone, 0 for a free one, or ADDRESS:PORT for others, such as 0.0.0.0:9464.",
        pattern=r"((\d{1,3}\.){3}\d{1,3}:|\[[0-9a-fA-F:.]+\]:)?\d{1,5}|",
        form="PORT or ADDRESS:PORT",
        group="metrics",
    )
    metrics_file: str = option(
        "",
        "File for metrics that ends with .prom, or a folder for files by table, which node_exporter's "
        "textfile collector reads. It stays when the command ends.",
        group="metrics",
    )
    trace_to: str = option(
        "",
        "Address of a receiver of OpenTelemetry to which spans of the command, its rounds and its jobs "
        "are sent by OTLP over HTTP, such as http://127.0.0.1:4318; env: that of the variables OTEL_*.",
        pattern=r"env|https?://\S+|",
        form="http://, https:// or env",
        group="metrics",
    )


def runner_of(beam_args: Sequence[str]) -> str:
    """Returns the runner in Beam's options, in lower case; by default the in-process runner.

    >>> runner_of(["--runner=Flink"]), runner_of([])
    ('flinkrunner', 'directrunner')
    """
    named = _options(beam_args).get_all_options()["runner"] if beam_args else None
    name = str(named or "DirectRunner").lower().rpartition(".")[2]
    return name if name.endswith("runner") else f"{name}runner"


def runner_name(beam_args: Sequence[str]) -> str:
    """Returns the runner as Beam spells its name.

    >>> runner_name(["--runner=portable"]), runner_name([])
    ('PortableRunner', 'DirectRunner')
    """
    from apache_beam.options.pipeline_options import StandardOptions

    runner = runner_of(beam_args)
    names = getattr(StandardOptions, "KNOWN_RUNNER_NAMES", ())
    return next((name for name in names if name.lower() == runner), runner)


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
    beam_values = _options(beam_args).get_all_options()
    local = {
        "flinkrunner": beam_values.get("flink_master") == "[local]",
        "sparkrunner": str(beam_values.get("spark_master_url")).lower().startswith("local"),
        "portablerunner": beam_values.get("job_endpoint") == "embed",
    }
    loopback = str(beam_values.get("environment_type")).upper() == "LOOPBACK"
    return not (loopback or local.get(runner, False))


def preflight(address: str, options: LaunchOptions, beam_args: Sequence[str]) -> None:
    """Checks a launch before anything is written.

    Raises:
        UsageError: Workers cannot reach the table, or the runner, a package or a plug-in is
            incomplete.
        Unavailable: The runner does not answer, or has no free slot.
    """
    elsewhere = workers_elsewhere(beam_args)
    if elsewhere:
        _check_reach(address, options, beam_args)
    if options.plugin_package or plugin_names(options):
        from .plugin_checks import check_launched_plugins  # late: it loads all kinds of plug-ins

        check_launched_plugins(options, options.plugin_package, elsewhere, options.deliver)
    if beam_args:
        from .runner_checks import check_runner  # late: it needs Beam, as all options of Beam do

        check_runner(runner_of(beam_args), beam_args)


def launch_args(options: LaunchOptions, beam_args: Sequence[str]) -> list[str]:
    """Returns additional arguments for Beam: packages to send, and the format of logs."""
    plugin = "--beam_plugin=nutbeam.pipelines.launch.json_worker"
    args = [plugin] if options.log_format == "json" else []
    if options.deliver and workers_elsewhere(beam_args):
        # nutbeam first: plug-ins need it, and pip then does not look for it in a package index.
        from .delivery import make_wheels

        packages = make_wheels(("nutbeam", *options.plugin_package))
        args += [f"--extra_package={path}" for path in packages]
    return args


def _check_reach(address: str, options: LaunchOptions, beam_args: Sequence[str]) -> None:
    if not options.shared_path and (reason := open_table(address).why_unshared()):
        raise UsageError(
            f"{reason}, which workers of "
            f"{_options(beam_args).get_all_options()['runner']} may not find: "
            "give --shared_path if they share it, or an address that all can reach"
        )


def _options(beam_args: Sequence[str]) -> "PipelineOptions":
    from apache_beam.options.pipeline_options import PipelineOptions

    return PipelineOptions(list(beam_args))
