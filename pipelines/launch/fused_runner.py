"""Runs a pipeline in this process, in the thread that calls it: nutbeam's own runner for one machine.

Beam's in-process runner translates a pipeline as for a cluster, and starts each of its steps as a worker
does: that takes longer than the work of a small job. Here an element goes from step to step as soon as
there is one, and a step that gets no element is never started.

Steps form stages, which run one after the other. Within a stage nothing is kept. Between two stages
elements are kept as their coders encode them: a coder of chunks puts large ones into a file
(``in_process.py``), and an element that no cluster could pass on fails here, too.

Knows what nutbeam's pipelines consist of: ``Impulse``, ``ParDo`` with side inputs, ``GroupByKey`` and
``Flatten``, in the global window. It refuses all else.
"""

import contextlib
import copy
import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.metrics.execution import MetricResult, MetricsContainer
from apache_beam.metrics.metric import MetricResults
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor
from apache_beam.runners.common import DoFnRunner, Receiver
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState
from apache_beam.runners.worker import statesampler
from apache_beam.transforms.core import Windowing
from apache_beam.transforms.sideinputs import SideInputMap
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from ...transforms.wiring.in_process import spilling

Values = beam.PCollection[Any]
_in_window = GlobalWindows.windowed_value
_WINDOWING = Windowing(GlobalWindows())


class FusedRunner(PipelineRunner):
    """Runs pipelines in this process. A pipeline is planned once, however often it runs."""

    _plan: "Plan | None" = None

    def run_pipeline(self, pipeline: beam.Pipeline, options: Any) -> PipelineResult:
        """Runs a pipeline to its end.

        Raises:
            NotImplementedError: It has a step that this runner does not know.
        """
        if self._plan is None:
            planner = _Planner()
            pipeline.visit(planner)
            self._plan = planner.plan
        run = _Run(self._plan)
        run.execute()
        return _Done(run.counts)

    def is_fnapi_compatible(self) -> bool:
        return True  # else Beam would translate the pipeline to the form of a cluster, and back


@dataclasses.dataclass
class Stage:
    """Steps that run together.

    Attributes:
        root: The collection that its elements belong to.
        source: A collection whose elements are kept, or that was grouped by key; None: the elements are
            one empty string.
        steps: Its steps; those that give stand before those that take.
        takers: For a collection the steps that take its elements.
    """

    root: Values
    source: Values | None
    steps: list[AppliedPTransform] = dataclasses.field(default_factory=list)
    takers: dict[Values, list[AppliedPTransform]] = dataclasses.field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def is_reader(self) -> bool:
        """Whether the stage takes elements that another one has kept."""
        return self.source is self.root


@dataclasses.dataclass
class Plan:
    """What a pipeline consists of.

    Attributes:
        stages: In the order in which they run.
        kept: Collections whose elements later stages take.
        grouped: Collections that a later stage takes by key.
        flattened: For a collection those into which it is flattened.
    """

    stages: list[Stage] = dataclasses.field(default_factory=list)
    kept: set[Values] = dataclasses.field(default_factory=set)
    grouped: set[Values] = dataclasses.field(default_factory=set)
    flattened: dict[Values, list[Values]] = dataclasses.field(
        default_factory=lambda: defaultdict(list)
    )


class _Planner(PipelineVisitor):
    """Divides a pipeline into stages. Beam visits a step after those whose elements it takes."""

    def __init__(self) -> None:
        self.plan = Plan()
        # The stage with whose end a collection is complete.
        self._complete: dict[Values, int] = {}
        # Collections whose elements come from more than one stage.
        self._scattered: set[Values] = set()
        # The stages that take a collection that is kept.
        self._readers: dict[Values, list[int]] = defaultdict(list)

    def visit_transform(self, transform_node: AppliedPTransform) -> None:
        node, kind = transform_node, transform_node.transform
        if isinstance(kind, beam.ParDo) and not isinstance(kind, beam.WindowInto):
            self._add_step(node)
        elif isinstance(kind, beam.Flatten):
            self._add_flatten(node)
        elif isinstance(kind, beam.GroupByKey):
            self.plan.grouped.add(node.inputs[0])
            self._begin_stage(node.outputs[None], node.inputs[0])
        elif isinstance(kind, beam.Impulse):
            self._begin_stage(node.outputs[None], None)
        else:
            raise NotImplementedError(f"{node.full_label} is {type(kind).__name__}")

    def _begin_stage(self, root: Values, source: Values | None) -> int:
        self.plan.stages.append(Stage(root, source))
        number = len(self.plan.stages) - 1
        self._complete.setdefault(root, number)
        return number

    def _add_flatten(self, node: AppliedPTransform) -> None:
        united = node.outputs[None]
        stages = {self._complete[value] for value in node.inputs}
        self._complete[united] = max(stages, default=0)
        if len(stages) > 1 or not self._scattered.isdisjoint(node.inputs):
            self._scattered.add(united)
        for value in node.inputs:
            self.plan.flattened[value].append(united)

    def _add_step(self, node: AppliedPTransform) -> None:
        sides = {side.pvalue for side in node.side_inputs}
        self.plan.kept |= sides
        ready = max((self._complete[value] for value in sides), default=-1)
        number = self._stage_for(node.inputs[0], ready)
        self.plan.stages[number].steps.append(node)
        self.plan.stages[number].takers[node.inputs[0]].append(node)
        for value in node.outputs.values():
            self._complete[value] = number

    def _stage_for(self, taken: Values, ready: int) -> int:
        """Returns the stage for a step that takes a collection, after the stage ``ready`` has ended."""
        made_in = self._complete[taken]
        if ready < made_in and taken not in self._scattered:
            return made_in
        for reader in self._readers[taken]:
            if ready < reader:
                return reader
        self.plan.kept.add(taken)
        self._readers[taken].append(self._begin_stage(taken, taken))
        return self._readers[taken][-1]


class _Run:
    """One run of a pipeline."""

    def __init__(self, plan: Plan) -> None:
        self.counts = MetricsContainer("")
        self._plan = plan
        self._kept = {values: _Kept(values) for values in plan.kept}
        self._grouped = {values: _Grouped(values) for values in plan.grouped}
        self._begun: list[DoFnRunner] = []

    def execute(self) -> None:
        """Runs the stages one after the other."""
        with spilling(), _counting(self.counts):
            try:
                for stage in self._plan.stages:
                    self._execute_stage(stage)
            finally:
                for runner in self._begun:
                    runner.teardown()

    def _execute_stage(self, stage: Stage) -> None:
        steps: dict[AppliedPTransform, _Step] = {}
        for node in reversed(stage.steps):
            receivers = _Receivers()
            for tag, values in node.outputs.items():
                receivers[tag] = self._receiver(values, stage, steps)
            steps[node] = _Step(functools.partial(self._start, node, receivers))
        receiver = self._receiver(stage.root, stage, steps)
        for element in self._elements(stage):
            receiver.receive(_in_window(element))
        for node in stage.steps:
            steps[node].finish()

    def _elements(self, stage: Stage) -> Iterator[Any]:
        if stage.source is None:
            yield b""
        elif stage.is_reader:
            yield from self._kept[stage.source]
        else:
            yield from self._grouped.pop(stage.source)

    def _receiver(
        self, values: Values, stage: Stage, steps: dict[AppliedPTransform, "_Step"]
    ) -> Receiver:
        """Returns what takes the elements of a collection during a stage."""
        receivers: list[Receiver] = [steps[node] for node in stage.takers.get(values, ())]
        if not (stage.is_reader and stage.root is values):
            stores = (store[values] for store in (self._kept, self._grouped) if values in store)
            united = self._plan.flattened.get(values, ())
            receivers += [*stores, *(self._receiver(one, stage, steps) for one in united)]
        return receivers[0] if len(receivers) == 1 else _Several(receivers)

    def _start(self, node: AppliedPTransform, receivers: "_Receivers") -> DoFnRunner:
        """Starts a step with a copy of its function: what that notes is of this run."""
        step = node.transform
        sides = [
            SideInputMap(type(side), side._view_options(), self._kept[side.pvalue].in_window())
            for side in node.side_inputs
        ]
        runner = DoFnRunner(
            copy.copy(step.fn), step.args, step.kwargs, sides, _WINDOWING, receivers,
            step_name=node.full_label,
        )  # fmt: skip
        runner.setup()
        self._begun.append(runner)
        runner.start()
        return runner


class _Receivers(dict[str | None, Receiver]):
    """What takes the outputs of a step, by tag. An output that nobody takes is dropped."""

    def __missing__(self, tag: str | None) -> Receiver:
        self[tag] = _Several([])
        return self[tag]


class _Several(Receiver):
    """Gives each element to several receivers."""

    def __init__(self, receivers: Sequence[Receiver]) -> None:
        self._receivers = receivers

    def receive(self, windowed_value: WindowedValue) -> None:
        for receiver in self._receivers:
            receiver.receive(windowed_value)


class _Step(Receiver):
    """A step during a stage; its first element starts it."""

    def __init__(self, start: Callable[[], DoFnRunner]) -> None:
        self._start = start
        self._runner: DoFnRunner | None = None

    def receive(self, windowed_value: WindowedValue) -> None:
        if self._runner is None:
            self._runner = self._start()
        self._runner.process(windowed_value)

    def finish(self) -> None:
        """Ends the bundle, if one has begun."""
        if self._runner is not None:
            self._runner.finish()


class _Kept(Receiver):
    """Keeps the elements of a collection, encoded."""

    def __init__(self, values: Values) -> None:
        self._coder = coders.registry.get_coder(values.element_type)
        self._encoded: list[bytes] = []

    def receive(self, windowed_value: WindowedValue) -> None:
        self._encoded.append(self._coder.encode(windowed_value.value))

    def __iter__(self) -> Iterator[Any]:
        return map(self._coder.decode, self._encoded)

    def in_window(self) -> "_InWindow":
        """Returns the elements as a side input takes them."""
        return _InWindow(self)


@dataclasses.dataclass
class _InWindow:
    elements: _Kept

    def __iter__(self) -> Iterator[WindowedValue]:
        return map(_in_window, self.elements)


class _Grouped(Receiver):
    """Groups the encoded elements of a collection by their encoded keys."""

    def __init__(self, values: Values) -> None:
        coder = coders.registry.get_coder(values.element_type)
        if not coder.is_kv_coder():  # nothing is said of the elements
            coder = coders.TupleCoder((coders.registry.get_coder(Any),) * 2)
        self._key_coder = coder.key_coder().as_deterministic_coder(str(values))
        self._value_coder = coder.value_coder()
        self._groups: dict[bytes, list[bytes]] = {}

    def receive(self, windowed_value: WindowedValue) -> None:
        key, value = windowed_value.value
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
    """What Beam's metrics and logs ask for the step that runs."""

    metrics_container: MetricsContainer

    def current_state(self) -> "_Tracker":
        """Returns itself: steps are not told apart."""
        return self

    def update_metric(self, metric_name: Any, value: Any) -> None:
        """Adds a value to a metric."""
        self.metrics_container.get_metric_cell(metric_name).update(value)


class _Done(PipelineResult):
    """The result of a pipeline that has run to its end."""

    def __init__(self, counts: MetricsContainer) -> None:
        super().__init__(PipelineState.DONE)
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
