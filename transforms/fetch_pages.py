"""Fetch URLs politely, in any Beam pipeline."""

import contextlib
import dataclasses
import math
import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Optional

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.batches.page_writer import PAGE_ROW_BYTES
from ..io.snapshots.operations import Operation
from ..io.tablets.written import Written
from ..policy.components.schema import TEXT, to_frame
from ..web.engine.pace import FetchOptions
from ..web.engine.tasks import Result
from ..web.urls.domains import registered_domain
from .elements.arguments import check_partitions
from .elements.chunk_flow import Spool, join_outputs, tagged_chunks
from .elements.chunks import MAX_BYTES, Chunk, rechunk, to_chunks
from .elements.outputs import FetchPagesOutputs, Outputs, SeveralOutputs
from .elements.records import DeadLetter, FetchedPage
from .elements.rows import check_chunk, through_chunks
from .fetching import (
    DEAD,
    DEAD_LETTERS_OUTPUT,
    FETCHED,
    PAGES_OUTPUT,
    WANTED,
    Fetching,
    FetchPagesOptions,
    RowsFetching,
    admit,
    fetch_pages,
)
from .for_each import ForEach
from .partition import GroupByHost
from .wiring.display import Displayed, display_fields, options_from, with_keywords
from .wiring.metrics import Throttling, count

_NEEDED = {"url": ["url"]}
_FLUSH_SECONDS = 5.0
# The step of a batch: Commit gets the numbers of partitions and of those done.
PARTITIONS = "Partitions"


@with_keywords(FetchPagesOptions)
class FetchPages(SeveralOutputs):
    """Fetches URLs, each once, and politely.

    Input:  rows or chunks with a text column ``url``, and optionally ``score`` (the best are
        fetched first), ``key`` (any name; it is in the output, too), ``etag``, ``last_modified``
        and ``modified_time`` (UTC ms) of an older copy, for a conditional request, and ``delay``
        (s, a day at most): the longest delay of a host's rows replaces ``server_delay``;
        robots.txt may ask for more.
    Output: two collections of rows or chunks, as the input is. ``pages`` has a
        ``FetchedPage`` for each URL that a server has answered: with a page, a
        redirect or an error. ``dead_letters`` has a ``DeadLetter`` for each other
        URL, with the reason: ``malformed``, ``bad_delay``, ``dns``, ``timeout``,
        ``address_denied``, ``robots_denied``, ``too_many_exceptions``, and so on.

    Of several rows for one URL the one with the best score counts, then the one with the
    smallest key. Redirects are reported, not followed.

    Politeness: a host is in one partition, and one engine fetches a partition, with a queue
    per host: robots.txt, delay, back-off. Two FetchPages that run at the same time do not
    coordinate, nor do two windows that are fetched at the same time. Private addresses are refused.

    Retries: a bundle that is retried outputs each URL once. Without ``spool`` it fetches all
    of its pages again, after the hosts' delay if it is retried in the same process. With
    ``spool`` it reads the pages that earlier attempts have kept, and fetches only the rest.

    Cost: one shuffle of the URLs; bodies cross none. A worker holds the URLs of
    a partition, at most 16 MB of results, and a chunk of at most 16 MB.

    Raises:
        ValueError: An option or the input's type is not right.
        TypeError: There is no such option.

    Args:
        options: The options as one object; else each is a keyword.
        partitions: How many workers can share the work: the number of workers. A worker fetches its
            partitions one after the other, so more of them are slower, not faster: hosts of
            one partition are fetched at the same time, and ``threads`` is the number of its threads.
        spool: Folder for pages, for retries; all workers must reach it. Use a new
            one for each run. Empty for none.
        error_handling: ``{"output": name}`` names the output of dead letters.
    """

    def __init__(
        self,
        options: Optional[FetchOptions] = None,  # noqa: UP045 - Beam reads it
        *,
        partitions: int = 1,
        spool: str = "",
        error_handling: Optional[Mapping[str, str]] = None,  # noqa: UP045
        **keywords: Any,
    ) -> None:
        super().__init__()
        check_partitions(partitions)
        self.options: Any = options_from(FetchPagesOptions, options, keywords)
        if self.options.queue_mode == "ip" and partitions > 1:
            # Partitions by address need another shuffle: each host is looked up in one place.
            raise ValueError(f"queue_mode 'ip' needs partitions=1, got {partitions}")
        self.partitions, self.spool = partitions, spool
        self.dead_letters = error_output(error_handling, PAGES_OUTPUT)
        # Identifies this transform among others in one process; the same in all retries.
        self._id = uuid.uuid4().hex

    def expand(self, elements: beam.PCollection[Any]) -> FetchPagesOutputs:
        outputs = {PAGES_OUTPUT: FetchedPage, self.dead_letters: DeadLetter}
        return FetchPagesOutputs(
            through_chunks(elements, self._fetch, "FetchPages", _NEEDED, outputs)
        )

    def _fetch(self, chunks: beam.PCollection[Chunk]) -> dict[str, beam.PCollection[Chunk]]:
        admit = beam.FlatMap(_admit, self.options.schemes).with_output_types(Chunk)
        wanted = chunks | "Admit" >> admit.with_outputs(DEAD_LETTERS_OUTPUT, main="wanted")
        fetch = beam.ParDo(_Fetch(self.options, self.partitions, self.spool, self._id))
        fetched = _by_queue(
            wanted.wanted, self.options.queue_mode, self.partitions
        ) | "Fetch" >> fetch.with_output_types(Chunk).with_outputs(
            DEAD_LETTERS_OUTPUT, main=PAGES_OUTPUT
        )
        dead = join_outputs(wanted[DEAD_LETTERS_OUTPUT], fetched[DEAD_LETTERS_OUTPUT], "Dead")
        return {PAGES_OUTPUT: fetched[PAGES_OUTPUT], self.dead_letters: dead}

    def display_data(self) -> dict[str, Any]:
        return {**display_fields(self.options), "partitions": self.partitions}


@dataclasses.dataclass
class FetchBatch(Displayed):
    """Fetches the pages of a batch, with the politeness of ``FetchPages``.

    Input:  operations; an idle one has no partitions.
    Output: ``Written``: the files of pages.

    Cost: a shuffle of the partitions, which are descriptions of work. One engine fetches a partition.

    Attributes:
        divide: Yields the partitions of an operation's batch.
        fetching: ``fetching(partition, options)`` is a context, such as that of a lease: what to
            fetch, or None if this is done. It yields ``Written``.
        options: How to fetch.
        engines: How many engines run at once if all steps are in one process: in child processes.
    """

    divide: Callable[[Operation], Iterable[Any]]
    fetching: Callable[[Any, Any], contextlib.AbstractContextManager[Fetching | None]]
    options: FetchOptions
    engines: int = 1

    def expand(self, operations: beam.PCollection[Operation]) -> beam.PCollection[Written]:
        return operations | ForEach(
            self.divide, _fetch_partition, (self.fetching, self.options), Written, step=PARTITIONS,
            processes=self.engines,
        )  # fmt: skip


def _fetch_partition(partition: Any, fetching: Any, options: Any) -> Iterator[Written]:
    with fetching(partition, options) as wanted:
        if wanted is not None:
            yield from fetch_pages(wanted)


def _by_queue(wanted: beam.PCollection[Chunk], mode: str, partitions: int) -> Any:
    """Groups URLs so that those of one queue are in one partition."""
    if mode != "domain":
        return wanted | GroupByHost(partitions)
    domains = wanted | "Domains" >> beam.Map(_with_domains).with_output_types(Chunk)
    return domains | GroupByHost(partitions, host="domain", drop=("domain",))


def _with_domains(chunk: Chunk) -> Chunk:
    domains = [registered_domain(host) for host in chunk.column("host").to_pylist()]
    return chunk.append_column("domain", pa.array(domains, TEXT))


def error_output(error_handling: Any, main: str) -> str:
    """Returns the name of the output of dead letters.

    Raises:
        ValueError: ``error_handling`` is not ``{"output": name}``, or the name would not be an attribute.

    >>> error_output(None, "pages"), error_output({"output": "errors"}, "pages")
    ('dead_letters', 'errors')
    """
    if error_handling is None:
        return DEAD_LETTERS_OUTPUT
    if hasattr(error_handling, "_asdict"):  # so it comes from an expansion service
        error_handling = error_handling._asdict()
    settings = dict(error_handling)
    name = settings.pop("output", None)
    if settings or not isinstance(name, str) or name in ("", main) or hasattr(Outputs, name):
        raise ValueError(
            f"error_handling must be {{'output': name}}, another name than {main!r} and those of a "
            f"dict's methods, got {error_handling!r}"
        )
    return name


def _admit(chunk: Chunk, schemes: tuple[str, ...]) -> Iterator[Any]:
    check_chunk(chunk, _NEEDED, "FetchPages")
    wanted, dead = admit(chunk, schemes)
    yield from to_chunks(wanted, WANTED)
    yield from tagged_chunks(DEAD_LETTERS_OUTPUT, dead, DEAD)


class _Fetch(beam.DoFn):
    """Fetches a partition; ends an earlier attempt of this process first."""

    def __init__(
        self, options: FetchPagesOptions, partitions: int, spool: str, transform: str
    ) -> None:
        self._options, self._partitions = options, partitions
        self._spool, self._transform = spool, transform

    def process(
        self, grouped: tuple[int, Iterable[Chunk]], window: Any = beam.DoFn.WindowParam
    ) -> Iterator[Any]:
        number, chunks = grouped
        wanted = pl.concat(to_frame(chunk) for chunk in chunks)
        spool = Spool(self._spool, number, self._partitions) if self._spool else None
        for saved in spool.saved_rows(wanted.get_column("url")) if spool else ():
            wanted = wanted.join(to_frame(saved.select(["url"])), on="url", how="anti")
            yield saved
        with _Attempt.begin((self._transform, number, str(window))) as attempt:
            attempt.elements = fetch_pages(
                _ChunksFetching(wanted, self._options, attempt.requested_until, spool)
            )
            yield from attempt.elements
            attempt.check()


class _ChunksFetching(RowsFetching):
    """The pages of rows, as chunks.

    Args:
        wanted: WANTED rows.
        options: How to send requests.
        requested_until: See ``Fetching``.
        spool: See ``_Collected``.
    """

    def __init__(
        self,
        wanted: pl.DataFrame,
        options: FetchPagesOptions,
        requested_until: float,
        spool: Spool | None,
    ) -> None:
        super().__init__(wanted, options, requested_until)
        self._collected, self._throttling = _Collected(spool), Throttling()

    def add(self, result: Result) -> Iterator[Any]:
        return self._take_collected(super().add(result))

    def end(self) -> Iterator[Any]:
        yield from self._take_collected(super().end())
        self._collected.flush()
        yield from self._collected.take()

    def _take_collected(self, rows: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[Any]:
        for tag, row in rows:
            self._collected.add(tag, row)
            yield from self._collected.take()

    def pulse(self, waited: float) -> None:
        self._throttling.total(waited)
        self._collected.flush_late()

    def seconds_to_pulse(self) -> float:
        return self._collected.due_in()


class _Attempt(contextlib.AbstractContextManager["_Attempt"]):
    """An attempt at a partition of a window; a process has one attempt at a time.

    A runner may fail in a later step and never close the iterator of this one. Its engine would
    go on with requests.

    Attributes:
        requested_until: Monotonic moment until which an earlier attempt, or the window before, may have
            sent requests.
        elements: The iterator that sends requests.
    """

    _known: ClassVar[OrderedDict[tuple[str, int, str], "_Attempt"]] = OrderedDict()
    _ends: ClassVar[dict[tuple[str, int], float]] = {}  # of a partition, in whatever window
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, partition: tuple[str, int], earlier: "_Attempt | None") -> None:
        self._partition = partition
        self.elements: Any = None
        self._ended: float | None = None
        self._replaced = False
        self.requested_until = self._ends.get(partition, -math.inf)
        if earlier is not None:
            self.requested_until, earlier._replaced = earlier._end(), True

    @classmethod
    def begin(cls, of: tuple[str, int, str]) -> "_Attempt":
        """Ends the attempt before, if there is one, and returns a new one."""
        with cls._lock:
            attempt = cls._known[of] = cls(of[:2], cls._known.pop(of, None))
            if len(cls._known) > 1000:
                cls._known.popitem(last=False)
        return attempt

    def __exit__(self, *_: object) -> None:
        self._end()

    def check(self) -> None:
        """Raises if another attempt has taken over: the output of this one is not complete."""
        if self._replaced:
            raise RuntimeError("another attempt at this partition has taken over")

    def _end(self) -> float:
        """Ends the attempt, if it has not ended; returns when it ended."""
        if self._ended is None:
            with contextlib.suppress(ValueError):  # it runs in another thread, which ends it
                if self.elements is not None:
                    self.elements.close()
            self._ended = self._ends[self._partition] = time.monotonic()
        return self._ended


class _Collected:
    """Collects rows into chunks, and counts them; a chunk waits a few seconds to fill.

    Args:
        spool: Keeps each chunk of pages as soon as it is ended.
    """

    def __init__(self, spool: Spool | None) -> None:
        self._spool = spool
        self._held: dict[str, list[dict[str, Any]]] = {PAGES_OUTPUT: [], DEAD_LETTERS_OUTPUT: []}
        self._counts: Counter[str] = Counter()
        self._size, self._since = 0, math.inf
        self._ready: list[Any] = []

    def add(self, tag: str, row: dict[str, Any]) -> None:
        """Adds a row."""
        row_bytes = len(row.get("body") or b"") + PAGE_ROW_BYTES
        if self._size + row_bytes > MAX_BYTES:
            self.flush()
        self._since = min(self._since, time.monotonic())
        self._held[tag].append(row)
        self._size += row_bytes
        word = "reason" if tag == DEAD_LETTERS_OUTPUT else "protocol_status"
        self._counts[f"{'protocol' if tag == PAGES_OUTPUT else tag}/{row[word]}"] += 1
        self.flush_late()

    def due_in(self) -> float:
        """Returns the seconds until ``flush_late`` ends a chunk."""
        return max(0.0, self._since + _FLUSH_SECONDS - time.monotonic())

    def flush_late(self) -> None:
        """Ends the chunks whose first row is some seconds old."""
        if time.monotonic() >= self._since + _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Ends the chunks."""
        count("fetch", self._counts)
        self._counts.clear()
        for tag, schema in ((PAGES_OUTPUT, FETCHED), (DEAD_LETTERS_OUTPUT, DEAD)):
            rows, self._held[tag] = self._held[tag], []
            if rows:
                self._end(tag, pa.Table.from_pylist(rows, schema=schema))
        self._size, self._since = 0, math.inf

    def take(self) -> list[Any]:
        """Returns the ended chunks, as outputs, and forgets them."""
        ready, self._ready = self._ready, []
        return ready

    def _end(self, tag: str, rows: Chunk) -> None:
        for chunk in [rows] if rows.nbytes <= MAX_BYTES else rechunk(rows):
            if tag == DEAD_LETTERS_OUTPUT:
                self._ready.append(beam.pvalue.TaggedOutput(DEAD_LETTERS_OUTPUT, chunk))
                continue
            if self._spool:
                self._spool.keep(chunk)
            self._ready.append(chunk)
