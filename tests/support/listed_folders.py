"""Files as pages: their URLs, and the links of pages that list folders."""

import os

from bs4 import BeautifulSoup

from nutbeam.web.urls.percent import path_url
from nutbeam.web.urls.row_keys import parse_url


def url_of(path):
    """Returns the file: URL of a path."""
    return f"file://{path_url(os.fsencode(path))}"


def links(response):
    """Returns the URLs to which a page links, in its order."""
    page = BeautifulSoup(response.body, "html.parser")
    return [parse_url(link["href"], response.url) for link in page.find_all("a")]
