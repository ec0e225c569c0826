"""Outputs by name, and what type hints say of them."""

import inspect
import typing

import apache_beam as beam
import pytest
from apache_beam.typehints.decorators import IOTypeHints

import nutbeam
from nutbeam.transforms.elements.arguments import DEFAULT_PARTITIONS
from nutbeam.transforms.elements.outputs import Outputs

AGENT = {"agent_name": "mybot", "agent_email": "you@your-site.org"}
SEVERAL = [
    nutbeam.FetchPages(**AGENT),
    nutbeam.ParsePages(),
    nutbeam.DedupByHash("url", "url"),
]


@pytest.mark.parametrize("transform", SEVERAL, ids=lambda transform: type(transform).__name__)
def test_outputs_are_attributes_as_their_type_says(transform, caplog):
    pages = beam.Pipeline("FnApiRunner") | beam.Create([beam.Row(url="http://a/", body=b"")])
    outputs = pages | transform
    declared = typing.get_type_hints(type(transform).expand)["return"]
    assert type(outputs) is declared
    assert {name: getattr(outputs, name) for name in typing.get_type_hints(declared)} == outputs
    assert caplog.text == ""  # Beam warns of hints that it does not understand


def test_a_renamed_output_is_an_attribute_too():
    urls = beam.Pipeline("FnApiRunner") | beam.Create([beam.Row(url="http://a/")])
    outputs = urls | nutbeam.FetchPages(**AGENT, error_handling={"output": "errors"})
    assert outputs.errors is outputs["errors"]


def test_outputs_are_unpacked_and_flattened_as_with_outputs_gives_them():
    pages = beam.Pipeline("FnApiRunner") | beam.Create([beam.Row(url="http://a/", body=b"")])
    outputs = pages | nutbeam.DedupByHash("url", "url")
    kept, duplicates = outputs
    assert (kept, duplicates) == (outputs.kept, outputs.duplicates)
    assert (outputs | beam.Flatten()).producer.inputs == (kept, duplicates)
    assert list(outputs.items()) == [("kept", kept), ("duplicates", duplicates)]


@pytest.mark.parametrize("transform", [nutbeam.FetchPages, nutbeam.ParsePages])
def test_an_output_is_not_named_as_a_method(transform):
    agent = AGENT if transform is nutbeam.FetchPages else {}
    with pytest.raises(ValueError, match=r"another name than .* got {'output': 'items'}"):
        transform(**agent, error_handling={"output": "items"})


def test_a_wrong_name_is_an_error_that_lists_the_right_ones():
    outputs = Outputs(kept=1, duplicates=2)
    with pytest.raises(AttributeError, match="no output 'copies', there are 'kept', 'duplicates'"):
        _ = outputs.copies
    with pytest.raises(KeyError, match="no output 'copies', there are 'kept', 'duplicates'"):
        _ = outputs["copies"]


def test_hints_of_one_output_say_that_elements_keep_their_type():
    hints = IOTypeHints.from_callable(nutbeam.TopNPerKey(1, "host", "score").expand)
    assert hints.strip_pcoll().input_types[0] == hints.strip_pcoll().output_types[0][:1]


def test_shuffles_share_their_work_by_default_and_requests_do_not():
    """A worker fetches its partitions one after the other, so FetchPages needs the number of workers."""
    defaults = {
        name: parameters["partitions"].default
        for name in nutbeam.__all__  # which are loaded late
        if inspect.isclass(transform := getattr(nutbeam, name))
        if issubclass(transform, beam.PTransform)
        if "partitions" in (parameters := inspect.signature(transform).parameters)
    }
    assert defaults.pop("FetchPages") == 1
    assert set(defaults.values()) == {DEFAULT_PARTITIONS}
    assert len(defaults) > 4
