"""A part of a batch in an archive, which one worker writes."""

from collections.abc import Mapping

from ...io.archives.archive_plans import ArchiveFolder, ArchivePlan
from ...io.snapshots.pinned import Pinned
from ...io.storage.place_addresses import place_of
from ...web.archives.page_records import EarlierCapture
from ...web.archives.warc_options import WarcOptions
from ...web.base.dataclass import dataclass

# The captures that are revisits, by URL and time.
Revisits = Mapping[tuple[str, int], EarlierCapture]


@dataclass(frozen=True)
class ArchivePart:
    """A part of a batch, which one worker writes.

    Attributes:
        pinned: The snapshot.
        folder: Address of the archive.
        plan: The plan of the batch, without its parts.
        part: Number of the part in the plan.
        files: Paths of its files of pages.
        number: Number of the part in this run.
        options: What records are written.
    """

    pinned: Pinned
    folder: str
    plan: ArchivePlan
    part: int
    files: tuple[str, ...]
    number: int
    options: WarcOptions

    @property
    def archive(self) -> ArchiveFolder:
        """The folder of the archive."""
        return ArchiveFolder(place_of(self.folder))
