"""Builds the graph of one command and submits it; the launcher of a Flex Template runs this.

The environment of the image names the command and the image of the workers.
The options are this template's parameters.
"""

import os
import sys
from collections.abc import Mapping, Sequence

from nutbeam.pipelines.command_line.cli import main

# The workers use the same image: nothing is delivered to them, and __main__ has nothing to pickle.
SAME_IMAGE = ("--deliver=false", "--sdk_location=container", "--no_save_main_session")


def words(parameters: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Returns the words of the command line for the parameters.

    >>> words(["--table=gs://b/t"], {"NUTBEAM_COMMAND": "dedup", "NUTBEAM_IMAGE": "here/it:1"})[-1]
    '--sdk_container_image=here/it:1'
    """
    image = f"--sdk_container_image={environ['NUTBEAM_IMAGE']}"
    # The launcher costs money: it ends when Dataflow has the job.
    return [environ["NUTBEAM_COMMAND"], *parameters, "--no_wait_until_finish", *SAME_IMAGE, image]


if __name__ == "__main__":
    sys.exit(main(words(sys.argv[1:], os.environ)))
