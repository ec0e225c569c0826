"""Processes several elements of a step at the same time, if the runner does not use all cores.

Beam's in-process runner processes one element at a time. Other runners have a worker for each
core; with them this module has no effect.
"""

import collections
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from . import spill

MOST = 4  # elements; each needs memory
_WINDOW = GlobalWindow()


def elements_at_once(spare: int = 0) -> int:
    """Returns the number of elements of a step that this process works on at once.

    Args:
        spare: How many more than there are cores. With one core it is always one element, with
            many cores at most ``MOST``.
    """
    if not spill.is_open():
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(MOST, cores + spare) if cores > 1 else 1


class FlatMapInThreads(beam.DoFn):
    """``beam.FlatMap`` of a function that mostly runs C code, in the global window.

    The output has the order of the input.

    Args:
        function: ``function(element, *args)`` yields elements. It runs in a thread. Its results
            are held until all results of earlier elements are output.
        spare: See ``elements_at_once``; for a function that often waits for the interpreter.
    """

    def __init__(self, function: Callable[..., Iterable[Any]], spare: int = 0) -> None:
        self._function = function
        self._spare = spare
        self._running: collections.deque[Future[list[Any]]] = collections.deque()
        # A bundle often has one element, for which no thread is started.
        self._only: tuple[Any, tuple[Any, ...]] | None = None
        self._pool: ThreadPoolExecutor | None = None

    def default_label(self) -> str:
        return self._function.__name__

    def start_bundle(self) -> None:
        self._most = elements_at_once(self._spare)
        self._only = None

    def process(self, element: Any, *args: Any) -> Iterator[Any]:
        if self._most == 1:
            yield from self._function(element, *args)
        elif self._only is None and not self._running:
            self._only = element, args
        else:
            yield from self._in_threads(element, args)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._only is not None:
            yield from map(_in_window, self._run(*self._only))
        while self._running:
            yield from map(_in_window, self._next_result())

    def _in_threads(self, element: Any, args: tuple[Any, ...]) -> Iterator[Any]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._most, "nutbeam-step")
        if self._only is not None:
            self._running.append(self._pool.submit(self._run, *self._only))
            self._only = None
        self._running.append(self._pool.submit(self._run, element, args))
        # One more element waits, so that no thread is idle.
        while len(self._running) > self._most:
            yield from self._next_result()

    def teardown(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _run(self, element: Any, args: tuple[Any, ...]) -> list[Any]:
        return list(self._function(element, *args))

    def _next_result(self) -> list[Any]:
        try:
            return self._running.popleft().result()
        except BaseException:
            # A failed job must not write anything.
            for running in self._running:
                running.cancel()
            wait(self._running)
            self._running.clear()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return FlatMapInThreads, (self._function, self._spare)


def flat_map(
    function: Callable[..., Iterable[Any]],
    args: tuple[Any, ...],
    element: Any,
    outputs: tuple[str, ...] = (),
    *,
    at_once: bool = False,
) -> Any:
    """Returns the step that calls ``function(element, *args)`` for each element.

    Args:
        function: It yields elements.
        args: Further arguments, which may be side inputs.
        element: Type of the elements without a tag.
        outputs: Tags; the other elements are in ``main`` then.
        at_once: Whether to work on several elements at once.
    """
    works = beam.ParDo(FlatMapInThreads(function), *args)
    step = works if at_once else beam.FlatMap(function, *args)
    step = step.with_output_types(element)
    return step.with_outputs(*outputs, main="main") if outputs else step


def _in_window(value: Any) -> Any:
    if isinstance(value, beam.pvalue.TaggedOutput):
        return beam.pvalue.TaggedOutput(value.tag, _in_window(value.value))
    return WindowedValue(value, _WINDOW.max_timestamp(), (_WINDOW,))
