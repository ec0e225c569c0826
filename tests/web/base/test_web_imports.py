"""Libraries of some options: missing, broken, or missing on a worker only."""

import sys

import pytest

from nutbeam.web.base.imports import import_library
from nutbeam.web.pages import language
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document

PAGE = b"<p>The ferry leaves the island at noon, and comes back in the evening when the sun sets."


def broken(folder, package):
    """Makes a package whose import fails."""
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text("import lxml.no_such_part\n")
    return str(folder)


def test_a_package_that_fails_to_import_is_an_error_at_the_start(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.partition(".")[0] == "py3langid"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(broken(tmp_path, "py3langid"))
    with pytest.raises(ValueError, match="--detect_language needs py3langid") as caught:
        ParseOptions(detect_language=True)
    assert str(caught.value).endswith(
        ", which cannot be imported: ModuleNotFoundError: No module named 'lxml.no_such_part'"
    )


def test_a_package_that_only_a_worker_lacks_is_named_once(monkeypatch, caplog):
    options = ParseOptions(detect_language=True)
    caches = (language._identifier, import_library)
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    for function in caches:
        function.cache_clear()
    source = Source("http://example.com/", PAGE, "text/html")
    pages = [parse_document(source, options) for _ in range(3)]
    for function in caches:
        function.cache_clear()
    assert {page.language for page in pages} == {None}
    assert all(page.text for page in pages)
    assert [record.message.partition(",")[0] for record in caplog.records] == [
        "--detect_language needs py3langid"
    ]
