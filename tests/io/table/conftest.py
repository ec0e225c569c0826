"""A table on each back end, for what a job may ask of a web table."""

import pytest

PLACES = ("local", "gs", "bigtable")


@pytest.fixture(params=PLACES)
def address(request, tmp_path, monkeypatch):
    """The address of a table that is empty."""
    if request.param == "bigtable":
        return request.getfixturevalue("bigtable").make(tmp_path / "files")
    if request.param == "local":
        return str(tmp_path / "table")
    stores = request.getfixturevalue("stores")
    for name, value in stores.environ(request.param).items():
        monkeypatch.setenv(name, value)
    return stores.address(request.param)
