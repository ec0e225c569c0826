"""The options of file: URLs."""

import dataclasses
import os
from pathlib import Path

from ..base.options import option
from ..urls.schemes import SchemeOptions


@dataclasses.dataclass(frozen=True)
class FileOptions(SchemeOptions):
    """Options of reading files, used if ``schemes`` includes file."""

    GROUP = "file"

    file_roots: tuple[str, ...] = option(
        (),
        "Folders below which file: URLs are read, and no others; each machine that fetches reads "
        "its own.",
    )
    file_parent: bool = option(
        False, "A folder's page links to its parent.", nutch="file.crawl.parent"
    )
    file_redirect_noncanonical: bool = option(
        True,
        "A path with a symbolic link redirects to the path without it; if false, it is a page of "
        "its own.",
        nutch="file.crawl.redirect_noncanonical",
    )

    def __post_init__(self) -> None:
        for root in self.file_roots:
            if not Path(root).is_absolute():
                absolute = str(Path(root).absolute())
                raise ValueError(f"file_roots must be absolute, got {root!r}: give {absolute!r}")
        if "file" not in self.schemes:
            return
        if os.name != "posix":
            raise ValueError("schemes must be without file on this system, it is not POSIX")
        if not self.file_roots:
            raise ValueError(
                "file_roots must name the folders that may be read where schemes has file: "
                "add --file_roots DIR"
            )
