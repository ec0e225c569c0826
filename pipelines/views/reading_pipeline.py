"""Pipelines of the commands that only read: workers write part files, which the command joins."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import apache_beam as beam

from ..launch.launch import LaunchOptions, launch_args
from ..running.runner import make_pipeline, run_pipeline
from .reading_job import PartFiles, Reading, ReadItem, tablets_of, written_parts


def item_pipeline(
    address: str,
    work: Callable[[ReadItem], None],
    beam_args: Sequence[str],
    options: LaunchOptions,
    divide: Callable[[Reading], Iterator[ReadItem]],
) -> AbstractContextManager[PartFiles]:
    """Does what ``item_parts`` does, on a runner."""

    def build(items: beam.PCollection[ReadItem], _: Reading) -> None:
        items | "Read" >> beam.Map(work)

    return export_parts(address, build, beam_args, options, divide)


def export_parts(
    address: str,
    build: Callable[[beam.PCollection[ReadItem], Reading], Any],
    beam_args: Sequence[str],
    options: LaunchOptions,
    divide: Callable[[Reading], Iterator[ReadItem]] = tablets_of,
) -> AbstractContextManager[PartFiles]:
    """Runs a pipeline that writes files; yields the snapshot and the files, in order.

    The files are removed afterwards.

    Args:
        address: Address of the table.
        build: Builds the pipeline from a collection of items.
        beam_args: Arguments for Beam.
        options: Options of the launch.
        divide: Function that divides the snapshot into items.
    """

    def run(reading: Reading) -> None:
        pipeline = make_pipeline([*launch_args(options, beam_args), *beam_args])
        items = (
            pipeline
            | "Reading" >> beam.Create([reading])
            | "Parts" >> beam.FlatMap(divide).with_output_types(ReadItem)
            # Spreads the items over the workers.
            | "Spread" >> beam.Reshuffle()
        )
        build(items, reading)
        run_pipeline(pipeline)

    return written_parts(address, run, beam_args, options)
