"""table: describes a table: what it weighs; creates and drops tables in Bigtable."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from rich import filesize

from ...io.bigtable.address import BigtableAddress, parse_address
from ...io.snapshots.manifest import load_manifest, newest_manifest
from ...io.storage.address_kinds import is_place
from ...io.storage.files import names
from ...io.storage.place_addresses import place_of
from ...io.table.opening import open_table
from ...io.upkeep.retention import RetentionOptions
from ...io.upkeep.table_weight import weigh_files
from ...policy.components.vocabulary import iso
from ...policy.estimating.disk_weights import freed_by_day, weigh_components
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option, shared_option
from ..base.command import DONE, Argument, Invocation
from ..checkers.checking import say

ARGUMENTS = (
    Argument("action", "One of create, describe and drop."),
    Argument(
        "address",
        "Where the table is; to create or drop it, bigtable://PROJECT/INSTANCE/TABLE[?app_profile=NAME].",
    ),
)


@dataclass(frozen=True)
class Options:
    """Options of table."""

    files: str = option(
        "",
        "With create: the place of page bodies and other files of batches: a new folder that all "
        "workers see, or gs://BUCKET/FOLDER.",
    )
    yes: bool = option(False, "With drop: yes, delete the table with all its rows.")
    snapshot_retention: int = shared_option(RetentionOptions, "snapshot_retention")


def run(invocation: Invocation) -> int:
    action = invocation.arguments["action"]
    if action not in ACTIONS:
        raise UsageError(f"the action must be one of {', '.join(ACTIONS)}, got {action!r}")
    text = invocation.arguments["address"]
    if is_place(text):
        if action == "describe":
            return _describe_files(text, invocation)
        raise UsageError(
            f"a table in a folder or a store needs no {action}, got {text!r}: inject makes it"
        )
    return ACTIONS[action](parse_address(text), invocation)


def _create(address: BigtableAddress, invocation: Invocation) -> int:
    files = _place(invocation.options.files)
    # Imported late: Google's libraries take a second to load.
    from ...io.bigtable.admin import create_table

    create_table(address, files)
    record = {"table": str(address), "files": files, "created": True}
    say(record, [f"created {address}, its files are in {files}"], invocation.format)
    return DONE


def _describe(address: BigtableAddress, invocation: Invocation) -> int:
    from ...io.bigtable.admin import describe_table

    description = describe_table(address)
    table = open_table(str(address))
    load_manifest(table, table.latest_snapshot())  # refuses a newer format
    record = dataclasses.asdict(description) | {"table": str(address)}
    del record["address"]
    record["ranges"] = [{"first": first, "bytes": size} for first, size in description.ranges]
    applying = (
        f" ({description.applying} is being applied)" if description.applying is not None else ""
    )
    families = ", ".join(f"{name} (versions: {n})" for name, n in description.families.items())
    lines = [
        f"table     {address}",
        f"files     {description.files}",
        f"profile   {description.app_profile or 'default'}",
        f"snapshot  {description.snapshot}{applying}",
        f"families  {families}",
        f"ranges    {len(description.ranges):,}, about {sum(n for _, n in description.ranges):,} bytes",
    ]
    weight, weight_lines = _weigh(str(address), invocation)
    say(record | weight, [*lines, *weight_lines], invocation.format)
    return DONE


def _describe_files(address: str, invocation: Invocation) -> int:
    open_table(address).check_place()
    manifest = newest_manifest(address)
    record = {"table": address, "snapshot": manifest.snapshot}
    lines = [f"table     {address}", f"snapshot  {manifest.snapshot}, {iso(manifest.time)}"]
    weight, weight_lines = _weigh(address, invocation)
    say(record | weight, [*lines, *weight_lines], invocation.format)
    return DONE


def _weigh(address: str, invocation: Invocation) -> tuple[dict[str, Any], list[str]]:
    """Returns what a table weighs, as a record and as lines."""
    table, retention = open_table(address), invocation.options.snapshot_retention
    now = now_ms(load_manifest(table, table.latest_snapshot()).latest_time)
    files, room = weigh_files(table), table.files.disk_room()
    weights, days = weigh_components(files), freed_by_day(files, 1000 * retention, now)
    record = {
        "bytes": sum(one.current + one.waiting for one in weights),
        "components": [one._asdict() for one in weights],
        "freed": [{"time": iso(day.time), "bytes": day.bytes} for day in days],
        "disk": room._asdict() if room is not None else None,
    }
    return record, list(_weight_lines(record, now))


def _weight_lines(record: dict[str, Any], now: int) -> Iterator[str]:
    yield f"size      {filesize.decimal(record['bytes'])}"
    if record["disk"] is not None:
        free, total = (filesize.decimal(record["disk"][name]) for name in ("free", "total"))
        yield f"disk      {free} free of {total}"
    yield f"{'component':<18}{'current':>12}{'older':>12}{'files':>10}"
    for one in record["components"]:
        current, older = (filesize.decimal(one[name]) for name in ("current", "waiting"))
        yield f"{one['what']:<18}{current:>12}{older:>12}{one['files']:>10,}"
    if not record["freed"]:
        yield "compact frees nothing: the newest snapshot needs all files"
    for day in record["freed"]:
        when = "now" if day["time"] == iso(now) else f"from {day['time']} on"
        yield f"compact frees {filesize.decimal(day['bytes'])} {when}"


def _drop(address: BigtableAddress, invocation: Invocation) -> int:
    if not invocation.options.yes:
        raise UsageError(f"drop deletes {address} with all its rows: add --yes if that is wanted")
    from ...io.bigtable.admin import drop_table

    files = drop_table(address)
    record = {"table": str(address), "files": files, "dropped": True}
    say(record, [f"dropped {address}; its files are left in {files}"], invocation.format)
    return DONE


def _place(files: str) -> str:
    """Returns the absolute place for files, which must be empty; makes it if it is a folder."""
    if not files:
        raise UsageError("create needs --files: the place of page bodies and other files")
    place = place_of(files).absolute()
    try:
        place.make_folder()
    except OSError as error:
        raise UsageError(f"cannot make the folder {files!r}: {error.strerror}") from error
    if names(place):
        raise UsageError(f"--files must be a new or empty folder, got {files!r}")
    return str(place)


ACTIONS = {"create": _create, "describe": _describe, "drop": _drop}
