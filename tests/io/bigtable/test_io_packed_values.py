"""Values of any type come back as they were; damaged bytes are an error, or other values."""

import contextlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutbeam.io.bigtable.packed_values import can_pack, pack, unpack

PLAIN = {
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5),
    pa.large_string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
}


def nested(kinds):
    names = st.integers(1, 3).map(lambda number: [f"f{at}" for at in range(number)])
    structs = names.flatmap(
        lambda some: st.tuples(*(kinds for _ in some)).map(
            lambda types: pa.struct(list(zip(some, types, strict=True)))
        )
    )
    keys = st.sampled_from([pa.string(), pa.int64()])
    maps = st.tuples(keys, kinds).map(lambda types: pa.map_(*types))
    return kinds.map(pa.list_) | kinds.map(pa.large_list) | structs | maps


KINDS = st.recursive(st.sampled_from(list(PLAIN)), nested, max_leaves=4)


def values_of(kind):
    """Returns values of a type, or None."""
    if pa.types.is_struct(kind):
        made = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    elif pa.types.is_map(kind):
        entry = st.tuples(PLAIN[kind.key_type], values_of(kind.item_type))
        made = st.lists(entry, max_size=3)
    elif kind in PLAIN:
        made = PLAIN[kind]
    else:
        made = st.lists(values_of(kind.value_type), max_size=3)
    return st.none() | made


ARRAYS = KINDS.flatmap(
    lambda kind: st.lists(values_of(kind), max_size=6).map(lambda some: pa.array(some, kind))
)


@settings(max_examples=50)
@given(ARRAYS)
def test_values_come_back(array):
    assert can_pack(array.type)
    packed = pack(array)
    back = unpack(
        pa.array(
            [p if v.is_valid else None for p, v in zip(packed.to_pylist(), array, strict=True)],
            pa.large_binary(),
        ),
        array.type,
    )
    assert back.type == array.type
    assert back.to_pylist() == array.to_pylist()


@settings(max_examples=50)
@given(ARRAYS, st.integers(0, 5), st.integers(0, 100))
def test_a_slice_is_packed_like_its_values(array, first, number):
    part = array[first : first + number]
    assert pack(part).to_pylist() == pack(pa.array(part.to_pylist(), part.type)).to_pylist()


@settings(max_examples=50)
@given(ARRAYS, st.data())
def test_damaged_bytes_are_a_value_error_or_values(array, data):
    packed = pack(array).to_pylist()
    for at, value in enumerate(packed):
        cut = value[: data.draw(st.integers(0, len(value)))]
        changed = bytearray(cut + data.draw(st.binary(max_size=3)))
        if changed:
            changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(0, 255))
        packed[at] = bytes(changed)
    with contextlib.suppress(ValueError):
        assert len(unpack(pa.array(packed, pa.large_binary()), array.type)) == len(array)


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_a_list_without_its_number_of_items_is_cut_short(cut):
    packed = pack(pa.array([["a"], ["b"]]))[1].as_py()[:cut]
    with pytest.raises(ValueError, match="a list is cut short"):
        unpack(pa.array([b"", packed], pa.large_binary()), pa.list_(pa.string()))
