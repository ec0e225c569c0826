"""table: creates, describes and drops a table in Bigtable; tables in folders need no creation."""

import dataclasses

from ...io.bigtable.address import BigtableAddress, parse_address
from ...io.snapshots.manifest import load_manifest
from ...io.storage.address_kinds import is_place
from ...io.storage.files import names
from ...io.storage.place_addresses import place_of
from ...io.table.opening import open_table
from ...web.base.errors import UsageError
from ...web.base.options import option
from ..base.command import DONE, Argument, Invocation
from ..checkers.checking import say

ARGUMENTS = (
    Argument("action", "One of create, describe and drop."),
    Argument(
        "address", "Where the table is: bigtable://PROJECT/INSTANCE/TABLE[?app_profile=NAME]."
    ),
)


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of table."""

    files: str = option(
        "",
        "With create: the place of page bodies and other files of batches: a new folder that all "
        "workers see, or gs://BUCKET/FOLDER.",
    )
    yes: bool = option(False, "With drop: yes, delete the table with all its rows.")


def run(invocation: Invocation) -> int:
    action = invocation.arguments["action"]
    if action not in ACTIONS:
        raise UsageError(f"the action must be one of {', '.join(ACTIONS)}, got {action!r}")
    text = invocation.arguments["address"]
    if is_place(text):
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
    say(record, lines, invocation.format)
    return DONE


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
