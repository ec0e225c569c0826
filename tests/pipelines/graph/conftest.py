"""Fixtures of the tests of graphs and ranks."""

import pytest

from nutbeam.transforms.graph import graph_layout


@pytest.fixture
def in_ranges(monkeypatch):
    """Cuts the work of webgraph into many small parts."""
    monkeypatch.setattr(graph_layout, "RANGE_BYTES", 4_000)
