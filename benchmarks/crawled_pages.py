"""Two simulated years with the jobs themselves: a round of ``nutbeam crawl`` a day, over HTTP.

The time of this process is given: all of a round happens at the beginning of its day. What is
measured is read from the table: the results of each batch, and the bodies that rows name.
"""

import dataclasses
import pathlib
import sys
import time
from collections.abc import Mapping

import longest_due
import numpy as np
import polars as pl
from changing_pages import Population
from changing_site import (
    ANSWERED,
    AWAY,
    FAILED,
    FORBIDDEN,
    START,
    ChangingSite,
    serving,
    url_of,
    version_in,
)

from nutbeam.io.snapshots.manifest import Manifest, newest_manifest
from nutbeam.io.snapshots.operations import new_id
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.io.tablets.tablets import tablets
from nutbeam.pipelines import compact, crawl
from nutbeam.pipelines.launch.job import prepare
from nutbeam.pipelines.running.runner import run_pipeline
from nutbeam.policy.components.schema import PAGES, STATE
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.transforms.tickets import Ticket
from nutbeam.web.base.clock import replaced_clock
from nutbeam.web.exchange import status as codes

COMPACT_EVERY = 10
_NUMBER = pl.col("key").str.slice(-6).cast(pl.Int64)


@dataclasses.dataclass(frozen=True)
class Crawled:
    """What a crawl did, in order of time, and what its table held.

    Attributes:
        page: Number of the page of each visit.
        day: When, days since the start.
        answer: What came: ANSWERED, AWAY, FAILED or FORBIDDEN.
        state: The table at the end, rows as stored.
        held_page: Number of each page whose stored body is another than the day before.
        held_day: Since when.
        held_version: The version of that body.
        requests: Number of requests to the servers, robots.txt included.
        seconds: How long the crawl took.
    """

    page: np.ndarray
    day: np.ndarray
    answer: np.ndarray
    state: pl.DataFrame
    held_page: np.ndarray
    held_day: np.ndarray
    held_version: np.ndarray
    requests: int
    seconds: float


class Years:
    """A crawl of a population, day by day.

    Args:
        pages: The population.
        options: Options of update, by name.
        fetches: How many a day.
        folder: An empty folder for the table.
    """

    def __init__(
        self, pages: Population, options: Mapping[str, object], fetches: int, folder: pathlib.Path
    ) -> None:
        self._pages, self._folder, self._now = pages, folder, START
        self._site = ChangingSite(pages, lambda: (self._now - START) / DAY_MS)
        self._settings = {**options, "top_n": fetches}
        self.address = str(folder / "table")
        self._named = pl.DataFrame(schema={"key": pl.String, "page": pl.String})
        self._versions: dict[int, int] = {}
        self._visits: list[pl.DataFrame] = []
        self._held: list[tuple[int, int, int]] = []

    def run(self, progress: str = "") -> Crawled:
        """Crawls all days; shows how far it is on standard error if ``progress`` names it."""
        began = time.perf_counter()
        with (
            serving(self._site) as door,
            longest_due.installed(),
            replaced_clock(lambda: self._now),
        ):
            options = self._options(door)
            for day in range(int(self._pages.days)):
                self._now = START + day * DAY_MS
                self._round(day, options)
                if progress and (day + 1) % 50 == 0:
                    spent = time.perf_counter() - began
                    print(f"{progress}: day {day + 1}, {spent:.0f} s", file=sys.stderr, flush=True)
        visits = pl.concat(self._visits)
        page, day, version = np.array(self._held).T
        return Crawled(
            visits["number"].to_numpy(), visits["day"].to_numpy(), visits["answer"].to_numpy(),
            self._state(), page, day, version, self._site.requests, time.perf_counter() - began,
        )  # fmt: skip

    def _options(self, door: str) -> crawl.Options:
        return crawl.Options(
            **self._settings,  # type: ignore[arg-type]
            scoring=(longest_due.NAME,),
            rounds=1,
            connect_to=(door,),
            server_delay=0.0,
            # A dead host costs each of its pages a failure, as in the model.
            max_exceptions_per_host=-1,
            exceptions_delay=0.0,
            robots_max_age=0.0,
        )

    def _round(self, day: int, options: crawl.Options) -> None:
        seeds = [] if day else [self._seeds()]
        for manifest in crawl.crawl(self.address, seeds, options):
            if manifest.job == "update":
                self._note_visits(manifest, day)
        if day % COMPACT_EVERY == COMPACT_EVERY - 1:
            # Two years pass in minutes, and files are as old as the clock of the disk says.
            upkeep = compact.Options(snapshot_retention=60)
            ticket = Ticket(self.address, new_id())
            run_pipeline(prepare(ticket, compact.build, upkeep, (), "compact"))
        self._note_bodies(day)

    def _seeds(self) -> str:
        path = self._folder / "seeds.txt"
        urls = (url_of(host, page) for page, host in enumerate(self._pages.host))
        path.write_text("\n".join(urls))
        return str(path)

    def _note_visits(self, manifest: Manifest, day: int) -> None:
        table = open_table(self.address)
        files = load_files(table, manifest.components[f"batches/{manifest.batch}/pages"])
        protocol, fetch = pl.col("protocol_status"), pl.col("fetch_status")
        answer = (
            pl.when(fetch.is_in([codes.FETCH_SUCCESS, codes.FETCH_NOTMODIFIED]))
            .then(ANSWERED)
            .when(fetch == codes.FETCH_RETRY)
            .then(FAILED)
            .when(protocol == codes.ROBOTS_DENIED)
            .then(FORBIDDEN)
            .otherwise(AWAY)
        )
        rows = scan([table / file.path for file in files], PAGES)
        self._visits.append(
            collect(
                rows.select(number=_NUMBER, day=pl.lit(float(day)), answer=answer).sort("number")
            )
        )

    def _note_bodies(self, day: int) -> None:
        """Reads the bodies that rows name since this day."""
        table, named = open_table(self.address), self._state(("key", "page")).drop_nulls("page")
        new = named.join(self._named, on=["key", "page"], how="anti")
        for (path,), some in new.group_by("page"):
            chosen = pl.col("key").is_in(some.get_column("key").implode())
            bodies = collect(
                scan([table / str(path)], PAGES).filter(chosen).select(_NUMBER, "body")
            )
            if len(bodies) != len(some):
                raise SystemExit(f"day {day}: {path} lacks bodies that rows name")
            for page, body in bodies.iter_rows():
                version = version_in(body)
                if self._versions.get(page) != version:
                    self._versions[page] = version
                    self._held.append((page, day, version))
        self._named = named

    def _state(self, columns: tuple[str, ...] = ()) -> pl.DataFrame:
        table, manifest = open_table(self.address), newest_manifest(self.address)
        known = tablets(load_files(table, manifest.components["state"]))
        return table.read("state", known, columns or tuple(STATE.names)).sort("key")
