"""A crawl of Nutch in a store comes into a table in a store, and goes back into one."""

import pytest
from command_output import printed
from crawling import manifest_of, nutbeam, state_of
from nutch_crawls import DAY_MS, NOW, NutchCrawl, datum, page
from stores_here import in_stores

from nutbeam.io.storage.files import write_bytes
from nutbeam.io.storage.place_addresses import place_of

pytestmark = pytest.mark.usefixtures("all_stores")


@pytest.mark.long
@in_stores
def test_a_crawl_in_a_store_is_imported_and_exported_there(address, tmp_path, capsys):
    crawl = NutchCrawl(tmp_path / "nutch")
    urls = [f"http://a.com/{number:04d}" for number in range(300)]
    crawl.crawldb(*(datum(url, 2, NOW + DAY_MS) for url in urls))
    crawl.segment(
        "20261022000000",
        fetched=[datum(url, 33, NOW - DAY_MS) for url in urls],
        contents={url: page(1_000 * url.encode()[-4:]) for url in urls},
        parsed=True,
    )
    for file in crawl.folder.rglob("*"):
        if file.is_file():
            name = file.relative_to(crawl.folder)
            write_bytes(place_of(f"{address}-nutch") / str(name), file.read_bytes())
    line = printed(capsys, "import_nutch", address, f"{address}-nutch", "--part_size", "65536")
    assert "pages 300" in line
    (batch,) = manifest_of(address).batches.values()
    assert (batch.phase, batch.segment, batch.urls) == ("updated", "20261022000000", 300)
    printed(capsys, "export_nutch", address, f"{address}-out")
    assert nutbeam("import_nutch", tmp_path / "back", f"{address}-out/crawldb") == 0
    assert state_of(tmp_path / "back")["url"].to_list() == urls
    assert nutbeam("fsck", address) == 0
