"""Divides a pipeline into stages, for ``fused_runner.py``.

Within a stage an element goes from step to step as soon as there is one. A new stage begins where a step
needs all elements of a collection: those of a key, or those of a side input.
"""

import dataclasses
from collections import defaultdict

import apache_beam as beam
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor

Collection = beam.pvalue.PValue


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

    root: Collection
    source: Collection | None
    steps: list[AppliedPTransform] = dataclasses.field(default_factory=list)
    takers: dict[Collection, list[AppliedPTransform]] = dataclasses.field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def is_reader(self) -> bool:
        """Whether the stage takes elements that another one has kept."""
        return self.source is self.root


@dataclasses.dataclass
class FusedPlan:
    """What a pipeline consists of.

    Attributes:
        stages: In the order in which they run.
        kept: Collections whose elements later stages take.
        grouped: Collections that a later stage takes by key.
        flattened: For a collection those into which it is flattened.
    """

    stages: list[Stage] = dataclasses.field(default_factory=list)
    kept: set[Collection] = dataclasses.field(default_factory=set)
    grouped: set[Collection] = dataclasses.field(default_factory=set)
    flattened: dict[Collection, list[Collection]] = dataclasses.field(
        default_factory=lambda: defaultdict(list)
    )


class _Planner(PipelineVisitor):
    """Divides a pipeline into stages. Beam visits a step after those whose elements it takes."""

    def __init__(self) -> None:
        self.plan = FusedPlan()
        # The stage with whose end a collection is complete.
        self._complete: dict[Collection, int] = {}
        # Collections whose elements come from more than one stage.
        self._scattered: set[Collection] = set()
        # The stages that take a collection that is kept.
        self._readers: dict[Collection, list[int]] = defaultdict(list)

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

    def _begin_stage(self, root: Collection, source: Collection | None) -> int:
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

    def _stage_for(self, taken: Collection, ready: int) -> int:
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


def plan_pipeline(pipeline: beam.Pipeline) -> FusedPlan:
    """Returns the stages of a pipeline.

    Raises:
        NotImplementedError: A step is none of ``Impulse``, ``ParDo``, ``GroupByKey`` and ``Flatten``, or
            has windows.
    """
    planner = _Planner()
    pipeline.visit(planner)
    return planner.plan
