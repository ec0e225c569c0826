"""What Beam's in-process runner lacks: a place for large chunks, and several elements at a time.

It holds all encoded elements between two steps in memory, and copies them about six times. With
``spilling`` it holds only the positions of large chunks in a temporary file. And it processes one
element of a step at a time: ``FlatMapInThreads`` processes several, if there are more cores. Other
runners have a worker for each core; with them this module has no effect.
"""

import collections
import contextlib
import io
import os
import secrets
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from ...io.parsing.shared_pools import rest_pools
from ...web.base.machine import usable_cores
from .work_processes import WorkProcesses

LEAST = 64 << 10  # bytes; smaller chunks stay in memory
_TOKEN = struct.Struct("<4s8sQQ")
_MARK = b"\0lie"  # no Arrow stream begins with this
_opening = threading.Lock()
_open: "Spill | None" = None
_users = 0


class _Whole:
    """A file whose ``write`` writes everything; ``close`` leaves it open."""

    closed = False

    def __init__(self, file: io.FileIO) -> None:
        self._file = file

    def write(self, data: pa.Buffer) -> int:
        view = memoryview(data)
        size = view.nbytes
        while view:
            view = view[self._file.write(view) :]
        return size

    def flush(self) -> None:
        """Does nothing: nothing is buffered."""

    def close(self) -> None:
        """Does nothing: the file is for the next chunk, too."""


class Spill:
    """A temporary file without a name. The system removes it when the process ends.

    Raises:
        OSError: There is no folder for temporary files.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="nutbeam-", buffering=0)  # noqa: SIM115
        self._lock = threading.Lock()
        self._end = 0
        self._id = secrets.token_bytes(8)
        self._process = os.getpid()

    def put(self, write: Callable[[pa.NativeFile], object]) -> bytes | None:
        """Writes what a function writes, and returns its token; None if the disk is full.

        Args:
            write: Writes to the stream that it is given; called once.
        """
        if os.getpid() != self._process:  # a fork: the file belongs to its parent
            return None
        with self._lock:
            at = self._end
            try:
                self._file.seek(at)
                # Arrow passes its own buffers, so nothing is copied in memory.
                with pa.PythonFile(_Whole(self._file), mode="w") as stream:
                    write(stream)
                self._end = self._file.tell()
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(at)
                return None
            return _TOKEN.pack(_MARK, self._id, at, self._end - at)

    def get(self, token: bytes) -> pa.Buffer:
        """Returns the bytes of a token.

        Raises:
            RuntimeError: The token belongs to another pipeline.
        """
        _, spill, at, size = _TOKEN.unpack(token)
        if spill != self._id:
            raise RuntimeError("a spilled chunk is of a pipeline that has ended")
        data = pa.allocate_buffer(size)
        view = memoryview(data)
        with self._lock:  # all threads share the position in the file
            self._file.seek(at)
            while view:
                read = self._file.readinto(view)
                if not read:
                    raise RuntimeError("a spilled chunk is truncated")
                view = view[read:]
        return data

    def close(self) -> None:
        """Closes the file, which frees its disk space."""
        self._file.close()


@contextlib.contextmanager
def spilling() -> Iterator[None]:
    """Spills large chunks while a pipeline runs; all its steps must be in this process.

    Pipelines that run at the same time share the file, because Beam creates the coders and passes
    no arguments to them. If no file can be created, chunks stay in memory.
    """
    global _open, _users
    with _opening:
        if _open is None:
            with contextlib.suppress(OSError):
                _open = Spill()
        _users += 1
    try:
        yield
    finally:
        with _opening:
            _users -= 1
            if not _users and _open is not None:
                _open.close()
                _open = None


def is_open() -> bool:
    """Returns whether a pipeline runs here, with all of its steps in this process."""
    return _users > 0


def spill(write: Callable[[pa.NativeFile], object]) -> bytes | None:
    """Writes large data to the file and returns its token; None if there is no file.

    Args:
        write: Writes the data to a stream.
    """
    return _open.put(write) if _open is not None else None


def restore(encoded: bytes) -> pa.Buffer:
    """Returns the original bytes for the result of ``spill``.

    Raises:
        RuntimeError: The bytes belong to a pipeline that has ended.
    """
    if not encoded.startswith(_MARK):
        return pa.py_buffer(encoded)
    if _open is None:
        raise RuntimeError("a spilled chunk is of a pipeline that has ended")
    return _open.get(encoded)


MOST = 4  # elements; each needs memory
_WINDOW = GlobalWindow()


def elements_at_once(spare: int = 0) -> int:
    """Returns the number of elements of a step that this process works on at once.

    Args:
        spare: How many more than there are cores. With one core it is always one element, with
            many cores at most ``MOST``.
    """
    if not is_open():
        return 1
    cores = usable_cores()
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
            yield from map(in_window, self._run(*self._only))
        while self._running:
            yield from map(in_window, self._next_result())

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

    def _stop(self) -> None:
        """Ends the elements at work early, where that is possible."""

    def _next_result(self) -> list[Any]:
        try:
            return self._running[0].result()
        except BaseException:
            # A failed job must not write anything.
            self._stop()
            for running in self._running:
                running.cancel()
            wait(self._running)
            self._running.clear()
            raise
        finally:
            if self._running:
                self._running.popleft()

    def __reduce__(self) -> tuple[Any, ...]:
        return FlatMapInThreads, (self._function, self._spare)


class FlatMapInProcesses(FlatMapInThreads):
    """``FlatMapInThreads`` whose threads wait for child processes, which work on the elements.

    A single element needs no child process. With one process, elements are worked on one by one, here.

    Args:
        function: ``function(element, *args)`` yields elements.
        processes: Number of child processes; they live until the end of the bundle.
    """

    def __init__(self, function: Callable[..., Iterable[Any]], processes: int) -> None:
        super().__init__(function)
        self._size = processes
        self._processes: WorkProcesses | None = None

    def start_bundle(self) -> None:
        self._most = self._size if is_open() else 1
        self._only = None

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._only is not None:  # as it is alone
            element, args = self._only
            yield from map(in_window, self._function(element, *args))
        try:
            while self._running:
                yield from map(in_window, self._next_result())
        finally:
            self._end()

    def teardown(self) -> None:
        self._end()
        super().teardown()

    def _in_threads(self, element: Any, args: tuple[Any, ...]) -> Iterator[Any]:
        if self._processes is None:
            rest_pools()  # their memory is for the processes that parse for these
            self._processes = WorkProcesses(self._size)
        return super()._in_threads(element, args)

    def _run(self, element: Any, args: tuple[Any, ...]) -> list[Any]:
        assert self._processes is not None
        return self._processes.run(self._function, element, *args)

    def _next_result(self) -> list[Any]:
        try:
            return super()._next_result()
        except BaseException:
            self._end()
            raise

    def _stop(self) -> None:
        assert self._processes is not None
        self._processes.stop()

    def _end(self) -> None:
        if self._processes is not None:
            self._processes.__exit__()
            self._processes = None

    def __reduce__(self) -> tuple[Any, ...]:
        return FlatMapInProcesses, (self._function, self._size)


def flat_map(
    function: Callable[..., Iterable[Any]],
    args: tuple[Any, ...],
    element: Any,
    outputs: tuple[str, ...] = (),
    *,
    at_once: bool = False,
    processes: int = 1,
) -> Any:
    """Returns the step that calls ``function(element, *args)`` for each element.

    Args:
        function: It yields elements.
        args: Further arguments, which may be side inputs.
        element: Type of the elements without a tag.
        outputs: Tags; the other elements are in ``main`` then.
        at_once: Whether to work on several elements at once.
        processes: With more than one, as many child processes work on elements at once.
    """
    if processes > 1:
        step = beam.ParDo(FlatMapInProcesses(function, processes), *args)
    elif at_once:
        step = beam.ParDo(FlatMapInThreads(function), *args)
    else:
        step = beam.FlatMap(function, *args)
    step = step.with_output_types(element)
    return step.with_outputs(*outputs, main="main") if outputs else step


def in_window(value: Any) -> Any:
    """Returns an element, or an output with a tag, as the end of a bundle must yield it."""
    if isinstance(value, beam.pvalue.TaggedOutput):
        return beam.pvalue.TaggedOutput(value.tag, in_window(value.value))
    return WindowedValue(value, _WINDOW.max_timestamp(), (_WINDOW,))
