"""Contains the changes to Beam at run time, and most uses of Beam's private names.

Other modules use private names, too, but change nothing: ``fused_plan.py``, ``fused_runner.py`` and
``placement.py`` read the graph of a pipeline, ``transforms/elements/row_types.py`` Beam's types of rows, and
``launch/job_server_options.py`` asks a job server.
``quiet_workers.py`` makes the first change of the table. ``package/__init__.py`` makes the last one, because
it must come before Beam is imported, and because pipelines that only use the transforms do not import this
module.

A crawl was run with each version of Beam in ``TRIED``, from the oldest that can be installed
together with the other packages; all tests run with the newest. With any other version, this module
makes no change and logs one warning: jobs give the same results, more slowly and with more output.
That version may have renamed what is changed here; so nothing of it is needed to import this module.

================== ====================================== =====================================
change             reason                                 without it
================== ====================================== =====================================
QuietWorkers       worker processes print start-up logs.  these lines on standard error.
quick_building:    a pipeline has some hundred DoFns:     twice the time to build a pipeline:
- get_dofn_specs   Beam looks for user state in each.     the signature of each method is read.
- get_function_    Beam asks for the arguments of each    the signature of each function is read.
  args_defaults    function.
- _check_fn_use_   Beam reads the source of each DoFn,    its source is read and parsed.
  yield_and_return to warn of a yield beside a return.
OwnPipeline:       for the steps of nutbeam's pipelines:
- run              a round runs many short pipelines.     all options of Beam are parsed, and a
                                                          temporary folder is made, for each.
- is_in_ipython    Beam imports IPython to see whether it  a tenth of a second at each start, where
                   runs there, if it is installed.        IPython is installed.
- alter_label_if_  there, Beam names steps by their       in a notebook each job needs pandas and
  ipython          cells.                                 more of Beam's extra interactive.
CachedOptions      Beam asks for views of its options     some 10 ms at each start of a pipeline.
                   at each step of a pipeline.
silence_runners:   portable runners raise errors and      each error is printed several times:
                   print them, too.
- print            a worker in this process prints each   a traceback for each bundle that fails.
                   traceback.
- excepthook       threads fail when their connection is  tracebacks after the end of a job.
                   closed at the end of a job.
- MESSAGE_LOG_     a runner's messages are logged as      lines that are no errors, in the form
  LEVELS           errors.                                of errors.
- PrismJobServer   Prism's log ignores the log level.     Prism's own log on standard error.
_is_shown, in      Beam warns when it is imported that    two warnings (with 2.72 one) when a
package/__init__   Google's clients are missing. Only     program imports the transforms without
                   tables in gs:// need them, and say so. Google's clients.
                   It filters the log by its text; with
                   another text it does nothing.
deferred_          Beam imports its connectors (MongoDB,  a quarter of the time that Beam takes to be
connectors, in     BigQuery, Pub/Sub, Avro). Commands     imported.
beam_import.py     import Beam without them; a program
                   that asks for one gets it.
================== ====================================== =====================================

All versions in ``TRIED`` need the same changes, with the one difference that the table names.
"""

import contextlib
import functools
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineResult, PipelineRunner

from ...web.base.imports import SAFE
from .beam_import import TRIED

_LOG = logging.getLogger(__name__)
_known_specs: dict[Any, Any] = {}
_changing = threading.Lock()
_changes = contextlib.ExitStack()
_users = 0
_thread_failed = threading.excepthook
_View = TypeVar("_View", bound=PipelineOptions)


@functools.cache
def is_tried(version: str) -> bool:
    """Returns whether the changes were tested with a version of Beam; warns once if not.

    >>> is_tried("2.77.0")
    True
    """
    was_tried = ".".join(version.split(".")[:2]) in TRIED
    if not was_tried:
        _LOG.warning(
            "Beam %s was not tried, only %s to %s: short jobs take longer, and runners print more",
            version, TRIED[0], TRIED[-1],
        )  # fmt: skip
    return was_tried


def may_change() -> bool:
    """Returns whether this version of Beam was tried, so that it may be changed."""
    return is_tried(beam.version.__version__)


def beam_options(flags: Sequence[str]) -> PipelineOptions:
    """Returns Beam's options for a pipeline."""
    return (CachedOptions if may_change() else PipelineOptions)(list(flags))


class OwnPipeline(beam.Pipeline):
    """A pipeline of nutbeam, whose steps Beam does not name by cells of a notebook.

    In this process it runs at once: its options were read when it was made.
    """

    def __init__(self, runner: PipelineRunner | str | None, options: PipelineOptions) -> None:
        super().__init__(runner, options)
        if runs_here(self):
            Path(self.local_tempdir).rmdir()  # nothing is put there

    def run(self, test_runner_api: bool | str = "AUTO") -> PipelineResult:
        if runs_here(self):
            return self.runner.run_pipeline(self, self.options)
        return super().run(test_runner_api)


def runs_here(pipeline: beam.Pipeline) -> bool:
    """Returns whether nutbeam's own runner runs a pipeline, in the thread that asks for it."""
    return getattr(pipeline.runner, "runs_here", False)


def new_pipeline(
    options: PipelineOptions, runner: PipelineRunner | str | None = None
) -> OwnPipeline:
    """Returns an empty pipeline."""
    if may_change():
        _leave_own_pipelines_alone()
    return OwnPipeline(runner=runner, options=options)


@functools.cache
def _leave_own_pipelines_alone() -> None:
    """Changes for good what Beam does in IPython; for pipelines of users it does the same as before."""
    from apache_beam import pipeline
    from apache_beam.utils import interactive_utils

    is_in_ipython: Callable[[], bool] = interactive_utils.is_in_ipython
    name_by_cell: Callable[[Any, Any], None] = interactive_utils.alter_label_if_ipython

    def runs_in_ipython() -> bool:
        return "IPython" in sys.modules and is_in_ipython()

    def name_of_others(transform: Any, inputs: Any) -> None:
        values = inputs.values() if isinstance(inputs, dict) else inputs
        values = values if isinstance(inputs, dict | tuple) else (inputs,)
        if not any(isinstance(getattr(one, "pipeline", one), OwnPipeline) for one in values):
            name_by_cell(transform, inputs)

    for module in (pipeline, interactive_utils):
        vars(module).update(is_in_ipython=runs_in_ipython, alter_label_if_ipython=name_of_others)


@contextlib.contextmanager
def quick_building() -> Iterator[None]:
    """Makes the building of pipelines quick; see the table above.

    Pipelines may be built in several threads; the last thread reverts the change.
    """
    global _users
    with _changing:
        if not _users and may_change():
            _changes.enter_context(_changed_building())
        _users += 1
    try:
        yield
    finally:
        with _changing:
            _users -= 1
            if not _users:
                _changes.close()


@contextlib.contextmanager
def _changed_building() -> Iterator[None]:
    from apache_beam.transforms import core, userstate

    look, read = userstate.get_dofn_specs, core.get_function_args_defaults
    changed = (
        (userstate, "get_dofn_specs", functools.partial(_state_specs, look)),
        (core, "get_function_args_defaults", functools.partial(_arguments, read)),
        (core, "_check_fn_use_yield_and_return", lambda _: False),
    )
    originals = [(owner, name, vars(owner)[name]) for owner, name, _ in changed]
    for owner, name, value in changed:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in originals:
            setattr(owner, name, value)


def _state_specs(look: Callable[[beam.DoFn], Any], dofn: beam.DoFn) -> Any:
    # The parameters of a DoFn made from a function are those of the function.
    kind = type(dofn), getattr(getattr(dofn, "_fn", None), "__code__", None)
    if kind not in _known_specs:
        _known_specs[kind] = look(dofn)
    return _known_specs[kind]


def _arguments(read: Callable[[Any], Any], function: Any) -> tuple[list[str], list[Any]]:
    """Returns the names of a function's arguments, and their defaults."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return read(function)
    names = code.co_varnames[inspect.ismethod(function) : code.co_argcount]
    return list(names), list(function.__defaults__ or ())


class CachedOptions(PipelineOptions):
    """Pipeline options that cache their views."""

    def __init__(self, flags: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__init__(flags, **kwargs)
        self.__dict__["_views"] = {}

    def view_as(self, cls: type[_View]) -> _View:
        views: dict[type, Any] = self.__dict__["_views"]
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def pack_code(value: Any) -> bytes:
    """Returns what ``unpack_code`` reads on a worker, also of functions that have no name."""
    from apache_beam.internal import pickler

    return bytes(pickler.dumps(value))


def unpack_code(packed: bytes) -> Any:
    """Returns the value that ``pack_code`` has packed."""
    from apache_beam.internal import pickler

    return pickler.loads(packed)


def silence_runners() -> None:
    """Stops runners from printing errors that they also raise, unless Beam's log is wanted.

    An in-process worker prints each traceback. At the end of a job its threads fail, because
    their connection is closed. The root logger logs the messages of a job as errors. Prism's
    log has a level of its own, which nutbeam's log level does not affect.
    """
    if is_verbose() or not may_change():
        return
    from apache_beam.runners.portability import portable_runner
    from apache_beam.runners.worker import sdk_worker

    vars(sdk_worker)["print"] = lambda *_, **__: None
    threading.excepthook = _unless_disconnected
    for importance in portable_runner.MESSAGE_LOG_LEVELS:
        portable_runner.MESSAGE_LOG_LEVELS[importance] = logging.DEBUG
    prism = logging.getLogger("PrismJobServer")
    prism.propagate = False
    if not prism.handlers:
        prism.addHandler(logging.NullHandler())  # without a handler, Python still prints errors


def _unless_disconnected(failure: threading.ExceptHookArgs) -> None:
    import grpc

    # The second message comes from a job server that ended before its first reply.
    closed = "Cannot monitor channel state: Channel closed" in str(failure.exc_value)
    if not (closed or issubclass(failure.exc_type, grpc.RpcError)):
        _thread_failed(failure)


def is_verbose() -> bool:
    """Returns whether Beam's own log is wanted."""
    return logging.getLogger().isEnabledFor(logging.INFO)


def worker_program(options: PipelineOptions) -> str:
    """Returns the program that starts workers as processes (``PROCESS``); empty if none does."""
    from apache_beam.options.pipeline_options import PortableOptions

    portable = options.view_as(PortableOptions)
    return str(portable.lookup_environment_option("process_command") or "")


def keep_paths_safe(options: PipelineOptions) -> None:
    """Adds variables for workers that a runner starts as processes (``PROCESS``).

    Without them Beam's ``python -m`` would import modules from the folder that the runner was
    started in.
    """
    from apache_beam.options.pipeline_options import PortableOptions

    portable = options.view_as(PortableOptions)
    if portable.environment_type == "PROCESS":
        own_variables = portable.lookup_environment_option("process_variables")
        added = [f"{name}={value}" for name, value in SAFE.items()]
        variables = ",".join([own_variables, *added] if own_variables else added)
        others = portable.environment_options or []
        portable.environment_options = [f"process_variables={variables}", *others]
