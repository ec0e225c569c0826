"""Builds the graph of one command and submits it; the launcher of a Flex Template runs this.

The parameter ``command`` names the command, and the environment of the image the image of the workers. The other
parameters are options.
"""

import os
import sys
from collections.abc import Mapping, Sequence

from nutbeam.pipelines.command_line.cli import main

# The workers use the same image: nothing is delivered to them, and __main__ has nothing to pickle.
SAME_IMAGE = ("--deliver=false", "--sdk_location=container", "--no_save_main_session")


COMMAND = "--command="


def words(parameters: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Returns the words of the command line for the parameters.

    >>> words(["--command=dedup", "--table=gs://b/t"], {"NUTBEAM_IMAGE": "here/it:1"})[:2]
    ['dedup', '--table=gs://b/t']
    """
    commands = [word.removeprefix(COMMAND) for word in parameters if word.startswith(COMMAND)]
    if len(commands) != 1:
        sys.exit("the parameter command must name the job, such as command=round")
    options = [word for word in parameters if not word.startswith(COMMAND)]
    image = f"--sdk_container_image={environ['NUTBEAM_IMAGE']}"
    # The launcher costs money: it ends when Dataflow has the job.
    return [*commands, *options, "--no_wait_until_finish", *SAME_IMAGE, image]


if __name__ == "__main__":
    sys.exit(main(words(sys.argv[1:], os.environ)))
