import email.utils
import os
import socket
import threading

import pytest
from dropping import as_nobody
from hypothesis import given
from hypothesis import strategies as st
from listed_folders import links, url_of

from nutbeam.web.base.option_checks import check_setup
from nutbeam.web.base.options import validate
from nutbeam.web.clients import file_client
from nutbeam.web.clients.file_client import FileClient
from nutbeam.web.clients.http_client import Client
from nutbeam.web.exchange.http_options import HttpOptions
from nutbeam.web.exchange.status import classify
from nutbeam.web.normalizers.basic import normalize_basic
from nutbeam.web.urls.percent import path_bytes, path_url

SECRET = b"root:x:0:0: nobody may read this"


@pytest.fixture
def root(tmp_path):
    """A folder with a page in it, beside a file that is nobody's business."""
    folder = tmp_path.resolve() / "root"
    folder.mkdir()
    (folder / "page.html").write_text("<title>Page</title>text")
    (tmp_path / "secret").write_bytes(SECRET)
    return folder


def get(root, url, headers=(), limit=-1, **options):
    return FileClient([str(root)], **options).get(url, headers, limit)


def test_a_file_is_a_page(root):
    response = get(root, url_of(root / "page.html"))
    assert (response.status, response.body) == (200, b"<title>Page</title>text")
    assert response.header("content-type") == "text/html"
    assert response.header("content-length") == "23"
    modified = email.utils.parsedate_to_datetime(response.header("last-modified")).timestamp()
    assert modified == int((root / "page.html").stat().st_mtime)
    assert classify(response)[:2] == (33, 1)


def test_unchanged_files_are_not_read_again(root):
    response = get(root, url_of(root / "page.html"))
    since = [("If-Modified-Since", response.header("last-modified"))]
    again = get(root, url_of(root / "page.html"), since)
    assert (again.status, again.body, classify(again)[:2]) == (304, b"", (38, 21))
    os.utime(root / "page.html", (2_000_000_000, 2_000_000_000))
    assert get(root, url_of(root / "page.html"), since).status == 200
    assert get(root, url_of(root / "page.html"), [("If-Modified-Since", "x")]).status == 200


def test_a_folder_is_a_page_of_links(root):
    (root / "sub").mkdir()
    (root / "ü <&>'\".txt").write_text("x")
    (root / "a:b?c#d%41").write_text("x")
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("page.html")
    response = get(root, url_of(root) + "/")
    assert response.header("content-type") == "text/html; charset=utf-8"
    found = links(response)
    assert sorted(found) == sorted(
        normalize_basic(url_of(root / name) + "/" * (name == "sub"))
        for name in ("sub", "ü <&>'\".txt", "a:b?c#d%41", "link", "page.html")
    )
    for url in found:
        followed = get(root, url)
        assert followed.status == (301 if url.endswith("link") else 200), url
    assert b"../" not in response.body
    above = get(root, url_of(root / "sub") + "/", parent=True)
    assert links(above) == [url_of(root) + "/"]
    assert b"../" not in get(root, url_of(root) + "/", parent=True).body


def test_a_folder_without_a_slash_redirects(root):
    for canonical in (True, False):
        response = get(root, url_of(root), canonical=canonical)
        assert (response.status, response.header("location")) == (301, url_of(root) + "/")
        assert classify(response).redirect_target == url_of(root) + "/"
        with_slash = get(root, url_of(root / "page.html") + "/", canonical=canonical)
        assert with_slash.header("location") == url_of(root / "page.html")


def test_symbolic_links_inside_the_root_lead_to_their_targets(root):
    (root / "sub").mkdir()
    (root / "sub" / "up.html").symlink_to(root / "page.html")
    (root / "other").symlink_to("sub")
    response = get(root, url_of(root / "other" / "up.html"))
    assert (response.status, response.header("location")) == (301, url_of(root / "page.html"))
    response = get(root, url_of(root / "other" / "up.html"), canonical=False)
    assert (response.status, response.body) == (200, b"<title>Page</title>text")
    (root / "loop").symlink_to("loop")
    assert get(root, url_of(root / "loop")).status in (403, 404)


@pytest.mark.parametrize("name", [b"\xff\xfe.txt", "日本.txt".encode(), b"a b+c&d;e=f", b"%2e%2e"])
def test_names_are_bytes(root, name):
    path = os.fsencode(root) + b"/" + name
    (root / os.fsdecode(name)).write_bytes(b"here")
    url = normalize_basic(f"file://{path_url(path)}")
    assert get(root, url).body == b"here"
    assert url in links(get(root, url_of(root) + "/"))


NAMES = st.binary(min_size=1, max_size=20).filter(
    lambda name: name not in (b".", b"..") and not {0, 10, 13, ord("/")} & set(name)
)


@given(NAMES)
def test_every_name_comes_back(name):
    path = b"/x/" + name
    assert path_bytes(path_url(path)) == path
    normal = normalize_basic(f"file://{path_url(path)}")
    assert path_bytes(normal.removeprefix("file://")) == path


def test_statuses(root):
    missing = get(root, url_of(root / "missing.html"))
    assert (missing.status, *classify(missing)[:2]) == (404, 37, 14)
    assert get(root, url_of(root / "page.html" / "below")).status == 404
    assert get(root, url_of(root / ("x" * 300))).status == 404
    outside = get(root, url_of(root.parent / "secret"))
    assert (outside.status, *classify(outside)[:2]) == (403, 37, 17)
    for url in (
        "file:",
        "file://host/x",
        "http://a/",
        "file:///a\r\nb",
        "file:///%00",
        "file:///a%0Ab",
    ):
        assert get(root, url).error == "bad_url", url


def test_files_without_read_permission_are_denied(locked):
    for name, mode in (("page.html", 0), ("closed", 0), ("passage", 0o711), ("list", 0o744)):
        path = locked / name
        if "." not in name:
            path.mkdir()
            path = path / "x"
        path.write_text("x")
        path.chmod(0o644)
        (locked / name).chmod(mode)
    urls = [url_of(locked / name) for name in ("page.html", "closed/x", "list/x", "passage/x")]
    urls += [url_of(locked / name) + "/" for name in ("closed", "passage", "list")]
    assert as_nobody(_statuses, locked, urls) == [403, 403, 403, 200, 403, 403, 200]


def _statuses(root, urls):
    return [get(root, url).status for url in urls]


def test_neither_devices_nor_pipes_nor_sockets_are_opened(root):
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind(os.path.relpath(root / "plug"))
        for name in ("pipe", "plug"):
            assert get(root, url_of(root / name)).status == 403  # and it does not hang
    assert get("/dev", "file:///dev/null").status == 403
    assert get("/dev", "file:///dev/zero", limit=10).status == 403


def ways_out(root):
    """Returns URLs that spell, or lead to, the file beside the root."""
    base, secret = url_of(root), "secret"
    (root / "out").symlink_to(root.parent / "secret")
    (root / "up").symlink_to("..")
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "far").symlink_to("up/up")
    return [
        f"{base}/../{secret}",
        f"{base}/%2e%2e/{secret}",
        f"{base}/%2E%2E%2f{secret}",
        f"{base}/..%2F{secret}",
        f"{base}/%252e%252e/{secret}",
        f"{base}/..%252f{secret}",
        f"{base}/..%5C{secret}",
        f"{base}/..\\{secret}",
        f"{base}/x/../../{secret}",
        f"{base}/./.%2e/{secret}",
        f"{base}//..//{secret}",
        f"{base}/out",
        f"{base}/up/{secret}",
        f"{base}/far/secret",
        f"{base}/passwd",
        f"{base}/%70asswd",
        f"{base}/up/../{secret}",
        f"{base}/up/%2e/{secret}",
        f"{base}x",
        f"{base}/.%00./{secret}",
        f"file://localhost{root.parent}/{secret}",
        f"file:{root.parent}/{secret}",
        f"file:/{root.parent}/{secret}",
        "file:///etc/passwd",
        "file://localhost/etc/passwd",
        "file:////etc/passwd",
        "file:///proc/self/environ",
        "file:///%65tc/passwd",
        "file:/etc/passwd",
        "FILE:///etc/passwd",
        "file:///etc/passwd#x",
        "file:///etc/passwd?x",
    ]


@pytest.mark.parametrize("canonical", [True, False])
def test_nothing_outside_is_read_however_it_is_spelled(root, canonical):
    for url in ways_out(root):
        # As it is typed, and as the table would have it.
        for spelling in {url, normalize_basic(url)}:
            response = get(root, spelling, canonical=canonical)
            assert response.body == b"", spelling
            assert response.status in (0, 403, 404, 301), (spelling, response.status)
            location = response.header("location")
            if location:
                assert get(root, location, canonical=canonical).body == b"", location


def test_a_link_that_is_put_there_meanwhile_leads_nowhere(root, monkeypatch):
    """Between the look at where a path leads and the opening, somebody swaps a folder for a link."""
    (root / "sub").mkdir()
    (root / "sub" / "secret").write_bytes(b"harmless")
    (root / "leaf").write_bytes(b"harmless")
    real = os.path.realpath

    def look_then_swap(path):
        found = real(path)
        (root / "sub").rename(root / "was")
        (root / "sub").symlink_to(root.parent)
        (root / "leaf").unlink()
        (root / "leaf").symlink_to(root.parent / "secret")
        return found

    client = FileClient([str(root)])
    monkeypatch.setattr(file_client.os.path, "realpath", look_then_swap)
    for name in ("sub/secret", "leaf"):
        response = client.get(url_of(root / name))
        monkeypatch.setattr(file_client.os.path, "realpath", real)
        assert (response.body, response.status in (403, 404)) == (b"", True), name
        monkeypatch.setattr(file_client.os.path, "realpath", lambda path: path)


def test_a_race_is_never_won(root):
    """Somebody swaps a folder and a link to elsewhere as fast as they can."""
    (root / "sub").mkdir()
    (root / "sub" / "secret").write_bytes(b"harmless")
    (root / "link").symlink_to(root.parent)
    over = threading.Event()

    def swap():
        while not over.is_set():
            (root / "sub").rename(root / "aside")
            (root / "link").rename(root / "sub")
            (root / "sub").rename(root / "link")
            (root / "aside").rename(root / "sub")

    thread = threading.Thread(target=swap)
    thread.start()
    client, url = FileClient([str(root)], canonical=False), url_of(root / "sub" / "secret")
    try:
        bodies = {client.get(url).body for _ in range(1000)}
    finally:
        over.set()
        thread.join()
    assert bodies <= {b"harmless", b""}


def test_limits(root):
    (root / "long.txt").write_bytes(b"x" * 1000)
    response = get(root, url_of(root / "long.txt"), limit=100)
    assert (len(response.body), response.truncated) == (100, "length")
    assert response.header("content-length") == "1000"
    assert get(root, url_of(root / "long.txt"), limit=1000).truncated is None
    for number in range(100):
        (root / f"{number:03}").touch()
    page = get(root, url_of(root) + "/", limit=2000)
    assert page.truncated is None  # whole entries, and as many as fit
    assert len(page.body) <= 2000
    assert 5 < len(links(page)) < 100


def test_the_root_of_the_disk_and_roots_that_are_links(root, tmp_path):
    assert get("/", url_of(root / "page.html")).status == 200
    assert b"<a href" in get("/", "file:///").body
    (tmp_path / "alias").symlink_to(root)
    response = get(tmp_path / "alias", url_of(tmp_path.resolve() / "alias" / "page.html"))
    assert response.header("location") == url_of(root / "page.html")
    assert get(tmp_path / "alias", url_of(root / "page.html")).status == 200
    assert get(tmp_path / "not there", url_of(root / "page.html")).status == 403
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "x").touch()
    assert get(root, url_of(tmp_path.resolve() / "root2" / "x")).status == 403


def test_the_http_client_reads_files_only_where_they_are_taken(root):
    url = url_of(root / "page.html")
    assert Client(HttpOptions(file_roots=(str(root),))).get(url).error == "bad_url"
    client = Client(HttpOptions(schemes=("http", "file"), file_roots=(str(root),), content_limit=3))
    assert client.get(url).body == b"<ti"
    assert client.get(url, content_limit=5).body == b"<titl"
    assert (client.host(url), client.run(client.locate(url))) == ("", None)
    assert Client(HttpOptions(schemes=("file",))).get(url).status == 403  # no roots: nothing


def test_missing_folders_and_unused_proxies_are_reported_at_the_start(caplog, tmp_path):
    with caplog.at_level("WARNING"):
        check_setup(HttpOptions(schemes=("file",), file_roots=(str(tmp_path), "/not/there")))
        proxied = {"http_proxy": "http://127.0.0.1:1", "agent_name": "a", "agent_email": "b@c"}
        check_setup(HttpOptions(schemes=("http", "ftp"), **proxied))
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "file_roots: there is no folder '/not/there' on this machine"
    assert said[-1].startswith("no proxy is used for FTP")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schemes": ("file",)}, r"file_roots must name .* add --file_roots DIR"),
        ({"schemes": ("http",), "file_roots": ("a",)}, "must be absolute, got 'a': give '/"),
        ({"schemes": ()}, "schemes must be some of http, https, file, ftp, got none"),
        (
            {"schemes": ("gopher",)},
            "schemes must be some of http, https, file, ftp, or those of --protocols, got 'gopher'",
        ),
    ],
)
def test_bad_options_are_one_clear_line(options, message):
    with pytest.raises(ValueError, match=message):
        validate(HttpOptions(**options))
