"""Runs a pipeline in this process, in the thread that calls it: nutbeam's own runner for one machine.

Beam's in-process runner translates a pipeline as for a cluster, and starts each of its steps as a worker
does. For a small job that takes longer than the work. Here a step costs a few calls, and a step that gets
no element costs nothing.

Stages (``fused_plan.py``) run one after the other. Between two stages elements are kept as their coders
encode them: the coder of chunks puts large ones into a file (``in_process.py``), and an element that no
cluster could pass on fails here, too. All elements are in the global window.
"""

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.internal.util import insert_values_in_args
from apache_beam.metrics.execution import MetricResult, MetricsContainer
from apache_beam.metrics.metric import MetricResults
from apache_beam.pipeline import AppliedPTransform
from apache_beam.pvalue import AsSideInput, TaggedOutput
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState
from apache_beam.runners.worker import statesampler
from apache_beam.transforms.window import GlobalWindow, TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import PANE_INFO_UNKNOWN, WindowedValue

from ...transforms.wiring.in_process import spilling
from .fused_plan import Collection, FusedPlan, Stage, plan_pipeline

Receive = Callable[[Any], None]
# What Beam says of an element besides its value: of all the same, as they come from no stream.
_OF_ELEMENTS = {
    beam.DoFn.WindowParam: GlobalWindow(),
    beam.DoFn.TimestampParam: MIN_TIMESTAMP,
    beam.DoFn.PaneInfoParam: PANE_INFO_UNKNOWN,
}


class FusedRunner(PipelineRunner):
    """Runs pipelines in this process. A pipeline is planned once, however often it runs.

    Attributes:
        runs_here: Whether all steps run in the thread that runs the pipeline.
    """

    runs_here = True
    _plan: FusedPlan | None = None

    def run_pipeline(self, pipeline: beam.Pipeline, options: Any) -> PipelineResult:
        """Runs a pipeline to its end.

        Raises:
            NotImplementedError: It has a step that this runner does not know.
        """
        if self._plan is None:
            self._plan = plan_pipeline(pipeline)
        return _Done(_Run(self._plan).execute())


class _Run:
    """One run of a pipeline."""

    def __init__(self, plan: FusedPlan) -> None:
        self._plan = plan
        self._kept = {values: _Kept(values) for values in plan.kept}
        self._grouped = {values: _Grouped(values) for values in plan.grouped}
        self._begun: list[beam.DoFn] = []

    def execute(self) -> MetricsContainer:
        """Runs the stages one after the other; returns what they have counted."""
        counts = MetricsContainer("")
        with spilling(), _counting(counts):
            try:
                for stage in self._plan.stages:
                    self._execute_stage(stage)
            finally:
                for function in self._begun:
                    function.teardown()
        return counts

    def _execute_stage(self, stage: Stage) -> None:
        steps: dict[AppliedPTransform, _Step] = {}
        for node in reversed(stage.steps):
            outputs = node.outputs.items()
            takers = {tag: self._receivers(values, stage, steps) for tag, values in outputs}
            steps[node] = _Step(node, takers, self._start)
        receivers = self._receivers(stage.root, stage, steps)
        for element in self._elements(stage):
            for receive in receivers:
                receive(element)
        for node in stage.steps:
            steps[node].finish()

    def _elements(self, stage: Stage) -> Iterable[Any]:
        if stage.source is None:
            return (b"",)
        if stage.is_reader:
            return self._kept[stage.source]
        return self._grouped.pop(stage.source)

    def _receivers(
        self, values: Collection, stage: Stage, steps: dict[AppliedPTransform, "_Step"]
    ) -> list[Receive]:
        """Returns what takes the elements of a collection during a stage."""
        receivers: list[Receive] = [steps[node].receive for node in stage.takers.get(values, ())]
        if stage.is_reader and stage.root is values:
            return receivers
        if values in self._kept:
            receivers.append(self._kept[values].receive)
        if values in self._grouped:
            receivers.append(self._grouped[values].receive)
        for united in self._plan.flattened.get(values, ()):
            receivers += self._receivers(united, stage, steps)
        return receivers

    def _start(self, node: AppliedPTransform) -> tuple[beam.DoFn, list[Any], dict[str, Any]]:
        """Starts a step; returns its function, and the arguments besides the element."""
        step: Any = node.transform
        function = copy.copy(step.fn)  # what it notes is of this run
        sides = [self._side_input(side) for side in node.side_inputs]
        args, named = insert_values_in_args(step.args, step.kwargs, sides)
        self._begun.append(function)
        function.setup()
        function.start_bundle()
        return function, args, {**_asked_for(function), **named}

    def _side_input(self, side: AsSideInput) -> Any:
        return side._from_runtime_iterable(self._kept[side.pvalue], side._view_options())


def _asked_for(function: beam.DoFn) -> dict[str, Any]:
    """Returns what a function gets because it names one of Beam's parameters as a default.

    Raises:
        NotImplementedError: It is none of ``_OF_ELEMENTS``.
    """
    process = function._process_argspec_fn()
    process = getattr(process, "__func__", process)
    defaults = getattr(process, "__defaults__", None) or ()
    if not any(isinstance(default, type(beam.DoFn.WindowParam)) for default in defaults):
        return {}
    names = process.__code__.co_varnames[: process.__code__.co_argcount][-len(defaults) :]
    asked = {}
    for name, default in zip(names, defaults, strict=True):
        if isinstance(default, type(beam.DoFn.WindowParam)):
            if default not in _OF_ELEMENTS:
                raise NotImplementedError(f"{process.__qualname__} asks for {default}")
            asked[name] = _OF_ELEMENTS[default]
    return asked


class _Step:
    """A step during a stage; its first element starts it."""

    def __init__(
        self,
        node: AppliedPTransform,
        receivers: dict[str | int | None, list[Receive]],
        start: Callable[[AppliedPTransform], tuple[beam.DoFn, list[Any], dict[str, Any]]],
    ) -> None:
        self._node, self._receivers, self._start = node, receivers, start
        self._function: beam.DoFn | None = None
        self._args: Sequence[Any] = ()
        self._named: dict[str, Any] = {}

    def receive(self, element: Any) -> None:
        """Processes an element, and gives what comes of it to those that take it."""
        try:
            if self._function is None:
                self._function, self._args, self._named = self._start(self._node)
            self._give(self._function.process(element, *self._args, **self._named))
        except BaseException as error:
            _name_step(error, self._node)
            raise

    def finish(self) -> None:
        """Ends the bundle, if one has begun."""
        if self._function is None:
            return
        try:
            self._give(self._function.finish_bundle())
        except BaseException as error:
            _name_step(error, self._node)
            raise

    def _give(self, results: Iterable[Any] | None) -> None:
        for result in results or ():
            tag = None
            if isinstance(result, TaggedOutput):
                tag, result = result.tag, result.value
            if isinstance(result, WindowedValue | TimestampedValue):
                result = result.value
            for receive in self._receivers.get(tag, ()):
                receive(result)


def _name_step(error: BaseException, node: AppliedPTransform) -> None:
    """Notes the step in which an exception was raised, in Beam's words."""
    if not getattr(error, "__notes__", None):
        error.add_note(f"[while running '{node.full_label}']")


class _Kept:
    """Keeps the elements of a collection, encoded."""

    def __init__(self, values: Collection) -> None:
        self._coder = coders.registry.get_coder(values.element_type)
        self._encoded: list[bytes] = []

    def receive(self, element: Any) -> None:
        """Adds an element."""
        self._encoded.append(self._coder.encode(element))

    def __iter__(self) -> Iterator[Any]:
        return map(self._coder.decode, self._encoded)


class _Grouped:
    """Groups the elements of a collection by key, both encoded."""

    def __init__(self, values: Collection) -> None:
        coder = coders.registry.get_coder(values.element_type)
        if not coder.is_kv_coder():  # nothing is said of the elements
            coder = coders.registry.get_coder(beam.typehints.KV[Any, Any])
        self._key_coder = coder.key_coder().as_deterministic_coder(str(values))
        self._value_coder = coder.value_coder()
        self._groups: dict[bytes, list[bytes]] = {}

    def receive(self, element: tuple[Any, Any]) -> None:
        """Adds an element to its group."""
        key, value = element
        group = self._groups.setdefault(self._key_coder.encode(key), [])
        group.append(self._value_coder.encode(value))

    def __iter__(self) -> Iterator[tuple[Any, "_Group"]]:
        for key in list(self._groups):
            group = self._groups.pop(key)
            yield self._key_coder.decode(key), _Group(self._value_coder, group)


@dataclasses.dataclass
class _Group:
    """The values of a key; can be read more than once."""

    coder: coders.Coder
    encoded: list[bytes]

    def __iter__(self) -> Iterator[Any]:
        return map(self.coder.decode, self.encoded)


@contextlib.contextmanager
def _counting(counts: MetricsContainer) -> Iterator[None]:
    """Adds what steps count in this thread to a container."""
    outer = statesampler.get_current_tracker()
    statesampler.set_current_tracker(_Tracker(counts))
    try:
        yield
    finally:
        statesampler.set_current_tracker(outer)


@dataclasses.dataclass
class _Tracker:
    """What Beam's metrics and its logs on workers ask for the step that runs.

    Attributes:
        metrics_container: Takes what steps count.
        stage_name: Empty, as steps are not told apart.
        name_context: None, likewise.
    """

    metrics_container: MetricsContainer
    stage_name: str = ""
    name_context: None = None

    def current_state(self) -> "_Tracker":
        """Returns itself."""
        return self

    def update_metric(self, metric_name: Any, value: Any) -> None:
        """Adds a value to a metric."""
        self.metrics_container.get_metric_cell(metric_name).update(value)


class _Done(PipelineResult):
    """The result of a pipeline that has run to its end."""

    def __init__(self, counts: MetricsContainer) -> None:
        super().__init__(PipelineState.DONE)  # type: ignore[no-untyped-call]
        self._counts = counts

    def wait_until_finish(self, duration: int | None = None) -> str:
        return PipelineState.DONE

    def metrics(self) -> MetricResults:
        return _Counters(self._counts)


class _Counters(MetricResults):
    """The counters of a pipeline; nutbeam has no other metrics."""

    def __init__(self, counts: MetricsContainer) -> None:
        self._counters = counts.get_cumulative().counters

    def query(self, filter: Any = None) -> dict[str, list[MetricResult]]:
        chosen = (item for item in self._counters.items() if self.matches(filter, item[0]))
        return {self.COUNTERS: [MetricResult(key, number, number) for key, number in chosen]}
