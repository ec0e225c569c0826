"""Contains the changes to Beam at run time, and most uses of Beam's private names.

Another module uses private names, too, but changes nothing: ``transforms/elements/row_types.py``
reads Beam's types of rows. One change is elsewhere, the last of the table: ``package/__init__.py`` makes
it, because it must come before Beam is imported, and because pipelines that only use the transforms
do not import this module.

A crawl was run with each version of Beam in ``TRIED``, from the oldest that can be installed
together with the other packages; all tests run with the newest. With any other version, this module
makes no change and logs one warning: jobs give the same results, more slowly and with more output.
That version may have renamed what is changed here; so nothing of it is needed to import this module.

================== ====================================== =====================================
change             reason                                 without it
================== ====================================== =====================================
InProcessRunner    translates a pipeline once; the round  each round of a crawl is translated;
                   of a crawl runs many times.            chunks between steps stay in memory;
                   Opens the spill file (in_process.py).  worker processes print start-up logs.
                   Drops start-up logs.
quick_stages:      a crawl runs the same short pipeline   about twice the time of a round that
                   many times.                            finds little to do:
- get_dofn_specs   Beam looks for user state in every     each start of a stage reads the
                   DoFn at each start of a stage.         signatures of its DoFns.
- get_function_    Beam asks for the arguments of each    each start of a stage reads the
  args_defaults    DoFn's functions, too.                 signatures of its functions.
- pickler          it unpacks each DoFn, and packs it     twice the time of a start of a stage.
                   again with its windows.
- concurrent       it reads the steps of a stage in a     each start of a stage starts a thread,
                   thread, so that it can give up.        and waits for it.
- monitoring_infos it reports times and numbers of        each end of a stage makes a report that
                   elements of each step, which nobody    is several times as long.
                   reads. Counters stay.
- StateSampler     it starts a thread that measures       each start of a stage starts a thread.
  start, stop      times which nobody reads.
- _get_cache_token Beam caches side inputs, and walks     side inputs that are read once are
                   through all modules to find their      measured and kept.
                   size.
- _check_fn_use_   Beam reads the source of each DoFn,    a twentieth of the time to build a
  yield_and_return to warn of a yield beside a return.    pipeline.
- DisplayData      it collects the options of each step   a quarter of the time to translate a
                   for a page of a cluster.               pipeline.
- bz2              Beam packs each DoFn at each start     each start packs and unpacks the same
                   of a stage.                            few thousand bytes.
OwnPipeline:       for the steps of nutbeam's pipelines:
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
================== ====================================== =====================================

All versions in ``TRIED`` need the same changes, with the one difference that the table names.
"""

import bz2
import contextlib
import copy
import functools
import inspect
import logging
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineRunner

from ...transforms.wiring.in_process import spilling
from ...web.base.imports import SAFE
from ...web.base.terminal import Relay

try:
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
except ImportError:  # a version that was not tried, on which InProcessRunner is not used
    FnApiRunner = PipelineRunner  # type: ignore[misc, assignment]

TRIED = ("2.72", "2.73", "2.74", "2.75", "2.76", "2.77")
_LOG = logging.getLogger(__name__)
_MOST = 1024  # DoFns whose packed forms are remembered
_known_specs: dict[Any, Any] = {}
_known_arguments: dict[Any, tuple[Any, list[str], list[Any]]] = {}
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


def _may_change() -> bool:
    return is_tried(beam.version.__version__)


def in_process_runner() -> PipelineRunner | str:
    """Returns the in-process runner: nutbeam's, or for a version not in ``TRIED`` Beam's, by name."""
    if _may_change():
        from .fused_runner import FusedRunner

        return FusedRunner()
    runner_names = getattr(StandardOptions, "KNOWN_RUNNER_NAMES", ())
    return "FnApiRunner" if "FnApiRunner" in runner_names else "DirectRunner"


def beam_options(flags: Sequence[str]) -> PipelineOptions:
    """Returns Beam's options for a pipeline."""
    return (CachedOptions if _may_change() else PipelineOptions)(list(flags))


class OwnPipeline(beam.Pipeline):
    """A pipeline of nutbeam, whose steps Beam does not name by cells of a notebook."""


def new_pipeline(
    options: PipelineOptions, runner: PipelineRunner | str | None = None
) -> OwnPipeline:
    """Returns an empty pipeline."""
    if _may_change():
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


class InProcessRunner(FnApiRunner):
    """Beam's in-process runner with quiet worker processes, which translates a pipeline once."""

    _translated: Any = None

    def run_pipeline(self, pipeline: beam.Pipeline, options: PipelineOptions) -> Any:
        if self._translated is None:
            with quick_stages():
                return super().run_pipeline(pipeline, options)
        return self.run_via_runner_api(self._translated, options)

    def run_via_runner_api(self, pipeline_proto: Any, options: PipelineOptions) -> Any:
        from apache_beam.portability import python_urns

        environments = pipeline_proto.components.environments.values()
        elsewhere = [env for env in environments if env.urn == python_urns.SUBPROCESS_SDK]
        alone = spilling() if not elsewhere else contextlib.nullcontext()
        with quick_stages(), alone, _worker_errors(bool(elsewhere)) as errors:
            for environment in elsewhere:
                command = environment.payload.removeprefix(b"exec ").partition(b" 2>")[0]
                environment.payload = b"exec " + command + errors
            self._translated = copy.deepcopy(pipeline_proto)  # running changes it
            return super().run_via_runner_api(pipeline_proto, options)


@contextlib.contextmanager
def _worker_errors(elsewhere: bool) -> Iterator[bytes]:
    """Yields the end of a shell command that redirects the standard error of a worker.

    A worker writes its start-up log there, whatever the log level.

    Args:
        elsewhere: Whether workers run in separate processes.
    """
    if not (elsewhere and _verbose()):
        yield b" 2>/dev/null"
        return
    relay = Relay()
    try:
        # By name, because workers do not inherit the file descriptors of this process.
        name = f" 2>/proc/{os.getpid()}/fd/{relay.stderr}"
        yield name.encode() if relay.stderr is not None and Path("/proc").is_dir() else b""
    finally:
        relay.close()


@contextlib.contextmanager
def quick_stages() -> Iterator[None]:
    """Makes the starts of stages quick; see the table above.

    It caches which kinds of DoFns have user state and what their packed forms are, measures no times,
    and caches no side inputs.

    Pipelines may be built and run in several threads; the last thread reverts the change.
    """
    global _users
    with _changing:
        if not _users and _may_change():
            _changes.enter_context(_changed_stages())
        _users += 1
    try:
        yield
    finally:
        with _changing:
            _users -= 1
            if not _users:
                _changes.close()


@contextlib.contextmanager
def _changed_stages() -> Iterator[None]:
    from apache_beam.internal import cloudpickle_pickler
    from apache_beam.runners.worker import bundle_processor
    from apache_beam.runners.worker.sdk_worker import GlobalCachingStateHandler
    from apache_beam.runners.worker.statesampler import StateSampler
    from apache_beam.transforms import core, display, userstate

    look, read = userstate.get_dofn_specs, core.get_function_args_defaults
    changed = (
        (userstate, "get_dofn_specs", functools.partial(_state_specs, look)),
        (core, "get_function_args_defaults", functools.partial(_arguments, read)),
        (bundle_processor, "pickler", _STAGE_PICKLER),
        (bundle_processor, "concurrent", _IN_THIS_THREAD),
        (bundle_processor.BundleProcessor, "monitoring_infos", _counters),
        (StateSampler, "start", _start_without_thread),
        (StateSampler, "stop", _stop_without_thread),
        (GlobalCachingStateHandler, "_get_cache_token", lambda *_: None),
        (cloudpickle_pickler, "bz2", _QuickBz2),
        (core, "_check_fn_use_yield_and_return", lambda _: False),
        (display.DisplayData, "create_from", staticmethod(_nothing_to_display)),
    )
    originals = [(owner, name, vars(owner)[name]) for owner, name, _ in changed]
    for owner, name, value in changed:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in originals:
            setattr(owner, name, value)


def _nothing_to_display(component: Any, extra_items: Any = None) -> Any:
    from apache_beam.transforms.display import DisplayData

    return DisplayData(f"{type(component).__module__}.{type(component).__name__}", {})


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
    # Functions of one code can have different defaults.
    key, defaults = (code, inspect.ismethod(function)), function.__defaults__
    arguments = _known_arguments.get(key)
    if arguments is None or arguments[0] is not defaults:
        arguments = _known_arguments[key] = (defaults, *read(function))
    return list(arguments[1]), list(arguments[2])


_read_before: dict[bytes, tuple[Any, ...]] = {}


class _StagePickler(threading.local):
    """Beam's pickler for the DoFns of a stage.

    Beam reads the data of a DoFn, adds the windows of its input, and packs it again; it does not run
    this DoFn. So what was read is remembered, and, where the windows are the default, which jobs
    never change, what was packed.
    """

    _read: tuple[bytes, Any] = b"", None

    def loads(self, packed: bytes) -> Any:
        from apache_beam.internal import pickler

        if packed not in _read_before:
            unpickled = pickler.loads(packed)
            if not isinstance(unpickled, tuple):  # not of a DoFn
                return unpickled
            if len(_read_before) >= _MOST:
                _read_before.clear()
            _read_before[packed] = unpickled
        self._read = packed, _read_before[packed]
        return self._read[1]

    def dumps(self, data: Any) -> bytes:
        from apache_beam.internal import pickler
        from apache_beam.transforms.core import Windowing

        packed, read = self._read
        self._read = b"", None
        if read is not None and isinstance(data, tuple) and len(read) == len(data):
            same = all(map(operator.is_, read[:-1], data[:-1]))
            if same and isinstance(data[-1], Windowing) and data[-1].is_default():
                return _with_default_windows(packed)
        return pickler.dumps(data)


@functools.lru_cache(_MOST)
def _with_default_windows(packed: bytes) -> bytes:
    from apache_beam.internal import pickler
    from apache_beam.transforms.core import Windowing
    from apache_beam.transforms.window import GlobalWindows

    data = (*pickler.loads(packed)[:-1], Windowing(GlobalWindows()))
    return pickler.dumps(data)


_STAGE_PICKLER = _StagePickler()


class _Here(Executor):
    """An executor that calls a function at once, in the thread that submits it."""

    def __init__(self, **_: Any) -> None:
        super().__init__()

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*args, **named))
        except BaseException as error:  # noqa: BLE001 (as executors do)
            done.set_exception(error)
        return done


_FUTURES = SimpleNamespace(ThreadPoolExecutor=_Here, TimeoutError=TimeoutError)
_IN_THIS_THREAD = SimpleNamespace(futures=_FUTURES)


def _counters(processor: Any) -> list[Any]:
    """Returns what a stage reports at its end: the counters of its DoFns."""
    counters: dict[Any, Any] = {}
    for name, step in processor.ops.items():
        counters.update(step.user_monitoring_infos(name))
    return list(counters.values())


class _QuickBz2:
    """The module ``bz2`` for pickled DoFns, which are small and the same in each round."""

    decompress = staticmethod(functools.lru_cache(_MOST)(bz2.decompress))

    @staticmethod
    @functools.lru_cache(_MOST)
    def compress(data: bytes, compresslevel: int) -> bytes:
        return bz2.compress(data, min(compresslevel, 1))


def _start_without_thread(sampler: Any) -> None:
    from apache_beam.runners.worker import statesampler

    sampler.tracked_thread = threading.current_thread()
    statesampler.set_current_tracker(sampler)
    sampler.started = True


def _stop_without_thread(sampler: Any) -> None:
    from apache_beam.runners.worker import statesampler

    statesampler.set_current_tracker(None)
    sampler.finished = True


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
    if _verbose() or not _may_change():
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
    # The second message comes from a job server that ended before its first reply.
    closed = "Cannot monitor channel state: Channel closed" in str(failure.exc_value)
    if not (closed or issubclass(failure.exc_type, grpc.RpcError)):
        _thread_failed(failure)


def _verbose() -> bool:
    return logging.getLogger().isEnabledFor(logging.INFO)


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
