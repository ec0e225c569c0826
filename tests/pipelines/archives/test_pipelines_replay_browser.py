"""An archived page in a real browser: it looks as the site did, and sends nothing elsewhere."""

import shutil
import subprocess

import pytest
from archived_site import HOST, archived_site, write_archive, write_certificate
from replaying import served
from web_servers import reply, serve

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium: make browser")
GREEN, RED, BLUE = (0, 128, 0), (255, 0, 0), (0, 0, 255)
LEADS_NOWHERE = {"/top": "204 No Content"}
# Of the style, of the image, and of what the script has added.
COLOURS = {GREEN: 200 * 100, RED: 50 * 50, BLUE: 60 * 40}


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    """The site, its archive, and the server elsewhere that must not get requests."""
    folder = tmp_path_factory.mktemp("browsed")
    certificate = write_certificate(folder)
    with (
        # A page whose top goes on to 204 stays where it is, so the rest of its script runs.
        serve(lambda path, *_: reply(b"", LEADS_NOWHERE.get(path, "200 OK"))) as elsewhere,
        archived_site(certificate, elsewhere.port) as (plain, _),
        served(write_archive(folder / "archive", elsewhere.port)) as replay,
    ):
        yield plain, replay, elsewhere


def picture(tmp_path, url, *words):
    """Returns a picture of a page after its scripts have run."""
    path = tmp_path / "page.png"
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *("--window-size=600,500", "--virtual-time-budget=5000", f"--screenshot={path}"),
        *("--disable-background-networking", "--disable-component-update"),
        *(f"--user-data-dir={tmp_path / 'profile'}", *words, url),
    ]
    subprocess.run(command, capture_output=True, timeout=300, check=True)
    return Image.open(path).convert("RGB")


def colours(image):
    numbers = {colour: number for number, colour in image.getcolors(1 << 20)}
    return {colour: numbers.get(colour, 0) for colour in COLOURS}


def live(web):
    return f"--host-resolver-rules=MAP {HOST} 127.0.0.1:{web[0].port}"


@pytest.mark.long
def test_by_proxy_a_page_looks_as_its_site_does(web, tmp_path):
    url = f"http://{HOST}/"
    site = picture(tmp_path, url, live(web))
    assert colours(site) == COLOURS
    asked = len(web[0].paths)
    archived = picture(tmp_path, url, f"--proxy-server=http://127.0.0.1:{web[1].port}")
    assert archived.tobytes() == site.tobytes()
    assert len(web[0].paths) == asked


def test_by_path_a_page_has_its_styles_scripts_and_images(web, tmp_path):
    asked = len(web[0].paths)
    archived = picture(tmp_path, f"http://127.0.0.1:{web[1].port}/http://{HOST}/")
    assert colours(archived) == COLOURS
    assert len(web[0].paths) == asked


@pytest.mark.long
def test_by_path_no_request_is_sent_elsewhere(web, tmp_path):
    _, replay, elsewhere = web
    picture(tmp_path, f"http://127.0.0.1:{replay.port}/http://{HOST}/leaves")
    assert elsewhere.paths == []  # no policy of a page forbids a connection without a request
    # The same page on its site does all this.
    picture(tmp_path, f"http://{HOST}/leaves", live(web))
    expected = {"/img", "/style", "/iframe", "/image", "/fetch", "/object", "/top", "/left"}
    assert expected <= set(elsewhere.paths)
