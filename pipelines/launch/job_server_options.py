"""Checks options of Beam against those that a job server describes.

Beam leaves out options that neither it nor the job server has, and words after an option without a value.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

from ...web.base.errors import Unavailable, UsageError
from ...web.base.wording import quote_value
from ..base.beam_flags import beam_parser
from ..base.suggestions import suggestion

if TYPE_CHECKING:
    from argparse import Action

# What a job server says of its options.
DescribedOptions: TypeAlias = Sequence[beam_job_api_pb2.PipelineOptionDescriptor]
# A job server in Java looks through its classes before its first answer.
_ANSWER_S = 60.0
# Options of Flink's job server that have few values. It describes them as texts, and refuses others
# only when it runs the job.
CHOICES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "checkpointing_mode": ("AT_LEAST_ONCE", "EXACTLY_ONCE"),
        "execution_mode_for_batch": ("BATCH", "BATCH_FORCED", "PIPELINED", "PIPELINED_FORCED"),
    }
)


def described_options(endpoint: str, patience_s: float) -> DescribedOptions:
    """Returns what a job server says of its options.

    Args:
        endpoint: Its address.
        patience_s: Longest time until it takes a connection, s.

    Raises:
        Unavailable: It is no job server.
    """
    request = beam_job_api_pb2.DescribePipelineOptionsRequest()
    try:
        with grpc.insecure_channel(endpoint) as channel:
            grpc.channel_ready_future(channel).result(timeout=patience_s)
            server = beam_job_api_pb2_grpc.JobServiceStub(channel)
            answer = server.DescribePipelineOptions(request, timeout=_ANSWER_S)
    except (grpc.FutureTimeoutError, grpc.RpcError) as error:
        raise Unavailable(f"the server at --job_endpoint {endpoint!r} is no job server") from error
    options: DescribedOptions = answer.options
    return options


def check_choices(beam_args: Sequence[str]) -> None:
    """Checks the options with few values, without a job server.

    Raises:
        UsageError: A value is not one of them.
    """
    parser = beam_parser(plugins=True)
    for name in CHOICES:
        parser.add_argument(f"--{name}")
    _check_choices(vars(parser.parse_known_args(beam_args)[0]))


def check_described(beam_args: Sequence[str], described: DescribedOptions) -> None:
    """Checks that Beam or the job server has all options, and the types of their values.

    Args:
        beam_args: The options.
        described: What the job server says of its options.

    Raises:
        UsageError: An option is unknown, or a value is wrong.
    """
    parser = beam_parser(plugins=True)
    flags = parser._option_string_actions
    for option in described:
        if f"--{option.name}" not in flags:
            parser.add_argument(f"--{option.name}", **_keywords(option))
    _check_switches(beam_args, flags)
    values, unknown = parser.parse_known_args(beam_args)
    if unknown:
        flag = unknown[0].partition("=")[0]
        text = f"unknown option {quote_value(flag)}: neither Beam nor the job server has it"
        raise UsageError(text + suggestion(flag, flags))
    _check_choices(vars(values))


def _keywords(option: beam_job_api_pb2.PipelineOptionDescriptor) -> dict[str, Any]:
    """Returns how Beam parses an option of a job server, see its ``JobServiceHandle``."""
    kinds = beam_job_api_pb2.PipelineOptionType
    match option.type:
        case kinds.BOOLEAN:
            default = option.default_value == "true"
            return {"action": "store_false" if default else "store_true"}
        case kinds.INTEGER:
            return {"type": int}
        case kinds.ARRAY:
            return {"action": "append"}
    return {}


def _check_switches(beam_args: Sequence[str], flags: "Mapping[str, Action]") -> None:
    for word, following in zip(beam_args, [*beam_args[1:], "-"], strict=True):
        flag, equals, value = word.partition("=")
        is_switch = flag in flags and flags[flag].nargs == 0
        if is_switch and (equals or not following.startswith("-")):
            raise UsageError(
                f"{flag} takes no value, got {quote_value(value if equals else following)}"
            )


def _check_choices(values: Mapping[str, Any]) -> None:
    for name, choices in CHOICES.items():
        value = values.get(name)
        if value is not None and value not in choices:
            raise UsageError(
                f"--{name} must be one of {', '.join(choices)}, got {quote_value(value)}"
            )
