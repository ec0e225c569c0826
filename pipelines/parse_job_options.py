"""Options of parse, also for ``nutbeam.parse``, which runs no pipeline."""

from ..transforms.parsing import ParsePagesOptions
from ..web.base.joined_options import joined_options
from ..web.base.options import option
from .launch.job_options import BatchOptions


@joined_options
class ParseJobOptions(ParsePagesOptions, BatchOptions):
    """Options of parse."""

    reparse: bool = option(
        False,
        "Parse the bodies of batches again that were parsed before, as today's options say; without "
        "--batch, those of all batches.",
        nutch="parse -reparse",
        group="parse",
    )
    all: bool = option(
        False,
        "With --reparse: all batches that have bodies, as it takes without --batch.",
        group="parse",
    )

    def __post_init__(self) -> None:
        if self.all and not self.reparse:
            raise ValueError(
                "--all needs --reparse: else parse takes the oldest batch that waits, or --batch"
            )
        if self.all and self.batch:
            raise ValueError("--all and --batch cannot be used together")
