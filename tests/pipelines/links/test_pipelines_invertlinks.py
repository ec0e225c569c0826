"""invertlinks from crawl to crawl: the link table is that of the newest documents."""

import pytest
from crawling import nutbeam
from linked_web import HOST, LinkedWeb, stored_links, true_links
from web_servers import serve


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_random_histories_end_in_the_links_of_the_newest_documents(tmp_path, seed):
    table, web = tmp_path / "table", LinkedWeb(seed)
    with serve(web) as server:
        words = ["--connect_to", f"{HOST}:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        assert nutbeam("crawl", table, f"http://{HOST}/", "--rounds", "2", "--links", *words) == 0
        for _ in range(4):
            assert stored_links(table) == true_links(table) != {}
            page = web.random.randrange(web.pages)
            (
                web.change(page)
                if web.random.random() < 0.6
                else web.gone.symmetric_difference_update({str(page)})
            )
            nutbeam("crawl", table, "--rounds", "1", "--add_days", "200", "--links", *words)
        assert stored_links(table) == true_links(table)
        assert nutbeam("fsck", table) == 0
