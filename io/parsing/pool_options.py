"""The options of the processes that parse."""

import dataclasses

from ...web.base.options import option


@dataclasses.dataclass(frozen=True)
class PoolOptions:
    """Options of the processes that parse."""

    GROUP = "parse"

    parse_processes: int = option(
        0, "How many processes parse on a worker; 0 is one for each core.", minimum=0, maximum=256
    )
    parser_memory: int = option(
        8 << 30,
        "Largest memory of each process that parses; 0: no limit.",
        unit="bytes",
        minimum=0,
    )
