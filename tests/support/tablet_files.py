"""What the tests of tablets share: keys that lie close to each other, rows, tablets of them."""

import itertools

from frames import frame_of
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.io.tablets.file_lists import DataFile
from nutbeam.io.tablets.tablet_writer import TabletWriter
from nutbeam.io.tablets.tablets import Tablet
from nutbeam.policy.components.schema import STATE

# Hosts that lie close to each other, in key order or not; "." < ":" < letters.
HOSTS_OF_KEYS = ["com.a", "com.a.b", "com.a-b", "com.a1", "com.b", "[::1]", "localhost"]
KEYS = st.builds(
    lambda host, path: f"{host}:http/{path}",
    st.sampled_from(HOSTS_OF_KEYS),
    st.sampled_from(["", *"abcdefgh", "a]b:c", "x:y"]),
)
SORTED_KEYS = st.lists(KEYS, unique=True, max_size=40).map(sorted)
FILES = settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


def tablets_of(keys, cuts):
    """Tablets that hold keys, cut anywhere."""
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(keys)}), len(keys)]
    return [
        Tablet(DataFile(f"t{low}", high - low, 1, keys[low], keys[high - 1]))
        for low, high in itertools.pairwise(edges)
        if high > low
    ]


def state(keys):
    return frame_of(
        STATE,
        *(
            {"key": key, "status": 1 + at % 3, "fetch_time": 100 + at, "score": at / 2}
            for at, key in enumerate(keys)
        ),
    )


def write(root, rows, sizes, tablet_rows):
    """Writes rows in parts of the given sizes; returns the keys of each file."""
    with replaced_sizes(tablet_rows=tablet_rows):
        writer = TabletWriter(root, "state", STATE)
        for size in sizes:
            writer.write(rows.head(size))
            rows = rows.slice(size)
        writer.write(rows)
        return writer.close()


def keys_of(root, files):
    return [collect(scan([root / file.path], STATE))["key"].to_list() for file in files]
