"""Files of reports: what a worker has written is described in a file, if it is much.

The step that commits gets all reports of an operation on one key of a shuffle. With these files each
bundle of a worker adds at most ``LARGEST_REPORTS`` bytes there, however many files it has written. No
snapshot names the file: the commit reads it, and retention removes it later.
"""

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..disk.record_checks import check_count, check_number, check_text, each, each_item
from ..disk.table_names import checked_name
from ..storage.file_errors import first_line
from ..storage.files import LARGEST_BYTES, new_name, read_bytes, write_bytes
from ..storage.places import Folder, Place
from .file_lists import file_of_record, file_record
from .written import Written

REPORTS_FOLDER = "manifest/reports"
# Reports of a bundle that take more are written into a file; bytes, as they are sent.
LARGEST_REPORTS = 16 << 10
_counts = each_item(check_text, check_number)
_steps = each_item(check_text, check_count)


def store_reports(table: Folder, reports: Sequence[Written]) -> list[Written]:
    """Returns reports that are small: if they are not, they are written into a file.

    Args:
        table: The place of the table's files.
        reports: Reports of one bundle.
    """
    if len(pickle.dumps(reports)) <= LARGEST_REPORTS:
        return list(reports)
    name = PurePosixPath(REPORTS_FOLDER) / new_name(".json")
    lines = (json.dumps(_record(report)) for report in reports)
    write_bytes(table / name, "".join(f"{line}\n" for line in lines).encode())
    return [Written(listed=str(name))]


def load_reports(table: Folder, reports: Iterable[Written]) -> Iterator[Written]:
    """Yields reports, those of files among them.

    Raises:
        MissingFile: A file is gone, as after a purge.
        UserError: A file is damaged.
    """
    for report in reports:
        if report.listed:
            yield from _read(table / checked_name(report.listed))
        else:
            yield report


def _record(report: Written) -> dict[str, Any]:
    record = {name: value for name, value in vars(report).items() if value}
    return record | {"files": [file_record(file) for file in report.files]}


def _read(path: Place) -> Iterator[Written]:
    try:
        for line in read_bytes(path, LARGEST_BYTES).splitlines():
            yield _report(json_object(line))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"file is damaged: {path}: {first_line(error)[:200]}: run it again"
        ) from error


def _report(record: Mapping[str, Any]) -> Written:
    report = Written(**record)
    if report.component:
        checked_name(report.component)
    each(checked_name)(report.replaced)
    _counts(report.counts)
    _steps(report.due)
    _steps(report.done)
    files = tuple(file_of_record(file) for file in record["files"])
    return Written(**{**record, "files": files, "replaced": tuple(report.replaced)})
