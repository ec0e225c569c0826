"""What a crawl uses of this machine: cores, fetch engines, processes that parse, threads of polars."""

import dataclasses
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import polars as pl

from ...io.parsing.parser_limits import parser_limits, share_of_worker
from ...policy.fetch_engines import EngineOptions, engines_that_fit, partitions_for
from ...web.base.json_logs import with_fields
from ...web.base.machine import usable_cores, usable_memory
from ...web.base.wording import format_count
from ..running.beam_internals import beam_options
from ..running.runner import IN_PROCESS
from .launch import runner_name, runner_of, workers_elsewhere

_LOG = logging.getLogger("nutbeam.phases")


class UseOptions(Protocol):
    """Options that decide what a crawl uses."""

    @property
    def fetch_engines(self) -> int:
        """See ``EngineOptions``."""

    @property
    def num_fetchers(self) -> int:
        """See ``GenerateOptions``."""

    @property
    def top_n(self) -> int:
        """See ``GenerateOptions``."""

    @property
    def queue_mode(self) -> str:
        """See ``QueueOptions``."""

    @property
    def parse_processes(self) -> int:
        """See ``PoolOptions``."""

    @property
    def all_parsers_memory(self) -> int:
        """See ``PoolOptions``."""


def with_engines(options: Any, beam_args: Sequence[str]) -> Any:
    """Returns options with the number of fetch engines that run at once here; 0 stands for one.

    Other runners, and worker processes of Beam, have as many engines as workers.
    """
    if not isinstance(options, EngineOptions):
        return options
    engines = engines_here(options) if is_one_process(beam_args) else 1
    return dataclasses.replace(options, fetch_engines=engines if engines > 1 else 0)


def engines_here(options: EngineOptions | UseOptions) -> int:
    """Returns how many fetch engines run at once if the pipeline runs in this process."""
    return options.fetch_engines or engines_that_fit(usable_cores(), usable_memory())


def is_one_process(beam_args: Sequence[str]) -> bool:
    """Returns whether a pipeline runs in this process.

    >>> is_one_process([]), is_one_process(["--runner=PrismRunner"])
    (True, False)
    >>> is_one_process(["--direct_running_mode=multi_processing", "--direct_num_workers=2"])
    False
    """
    if not beam_args:
        return True
    own = runner_of(beam_args) in IN_PROCESS
    return own and beam_options(beam_args).get_all_options().get("direct_num_workers") == 1


def show_use(options: UseOptions, beam_args: Sequence[str], progress: bool | None) -> None:
    """Says in one line what a crawl uses, on standard error or as a log in JSON.

    Args:
        options: Options of the crawl.
        beam_args: Arguments for Beam.
        progress: Whether progress is shown; None: as plain lines or a live view.
    """
    uses = uses_of(options, beam_args)
    text = use_line(uses)
    _LOG.info("%s", text, extra=with_fields(event="uses", **uses))
    if progress is not False:
        print(text, file=sys.stderr, flush=True)


def uses_of(options: UseOptions, beam_args: Sequence[str]) -> dict[str, int | str]:
    """Returns what a crawl uses, by name: all of it in this process, else what this machine knows."""
    runner, partitions = runner_name(beam_args), options.num_fetchers or 1
    if workers_elsewhere(beam_args):
        return {"runner": runner, "partitions": partitions}
    cores, threads = usable_cores(), pl.thread_pool_size()
    if is_one_process(beam_args):
        limits = parser_limits(options.parse_processes, options.all_parsers_memory)
        shown: dict[str, int | str] = {"cores": cores, "engines": _engines_used(options)}
    else:
        workers = int(beam_options(beam_args).get_all_options().get("direct_num_workers") or 1)
        limits = share_of_worker(cores, usable_memory(), workers)
        shown = {"cores": cores, "runner": runner, "workers": workers, "partitions": partitions}
    memory = {} if limits.memory is None else {"parser_memory_mib": limits.memory >> 20}
    parsers = options.parse_processes or limits.processes
    return {**shown, "parsers": parsers, **memory, "polars_threads": threads}


def _engines_used(options: UseOptions) -> int:
    """Returns how many engines the largest batch uses: one for each of its partitions."""
    engines = engines_here(options)
    if partitions := options.num_fetchers or int(options.queue_mode == "ip"):
        return min(engines, partitions)
    return partitions_for(options.top_n, engines)


def use_line(uses: Mapping[str, int | str]) -> str:
    """Returns the line that says what a crawl uses.

    >>> here = {"cores": 8, "engines": 2, "parsers": 8, "parser_memory_mib": 8192, "polars_threads": 8}
    >>> use_line(here)
    'uses 8 cores: up to 2 fetch engines, 8 parsers (8,192 MiB together), 8 polars threads'
    >>> use_line({"cores": 2, "runner": "PrismRunner", "workers": 1, "partitions": 1, "parsers": 2})
    'uses 2 cores: 1 worker of PrismRunner, 1 partition; each worker: 2 parsers'
    >>> use_line({"runner": "PortableRunner", "partitions": 2})
    'uses the workers of PortableRunner: 2 partitions; each worker parses with as many processes as fit it'
    """
    if "cores" not in uses:
        shown = _count(uses, "partitions")
        return (
            f"uses the workers of {uses['runner']}: {shown}; "
            "each worker parses with as many processes as fit it"
        )
    memory = uses.get("parser_memory_mib")
    together = "" if memory is None else f" ({int(memory):,} MiB together)"
    each = [_count(uses, "parsers") + together]
    if "polars_threads" in uses:
        each.append(_count(uses, "polars_threads"))
    if "engines" in uses:
        most = "up to " if int(uses["engines"]) > 1 else ""  # a small batch has fewer partitions
        return f"uses {_count(uses, 'cores')}: {', '.join([most + _count(uses, 'engines'), *each])}"
    workers = f"{_count(uses, 'workers')} of {uses['runner']}, {_count(uses, 'partitions')}"
    return f"uses {_count(uses, 'cores')}: {workers}; each worker: {', '.join(each)}"


_UNITS = {"engines": "fetch engines", "polars_threads": "polars threads"}


def _count(uses: Mapping[str, int | str], name: str) -> str:
    return format_count(int(uses[name]), _UNITS.get(name, name))
