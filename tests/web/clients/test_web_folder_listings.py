"""Listings of FTP servers, and the pages made of them."""

import time

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

from nutbeam.web.clients.other_clients import Entry, index_page, read_list, read_mlsd
from nutbeam.web.urls.row_keys import parse_url

HOSTILE_NAMES = (
    b"type=file; a\rDELE b\r\n",
    b"type=file; ../../etc/passwd\r\n",
    b"type=file; ..\r\n",
    b"type=file; .\r\n",
    b"type=file; /etc/passwd\r\n",
    b"type=file; a\0b\r\n",
    b"type=file; \r\n",
    b"type=file;\r\n",
    b"type=pdir; x\r\n",
    b"; y\r\n",
    b"-rw-r--r-- 1 a b 1 Jan 1 2026 ../up\r\n",
    b"-rw-r--r-- 1 a b 1 Jan 1 2026 a\rb\r\n",
    b"-rw-r--r-- 1 a b 1 Jan 1 2026 ..\r\n",
    b"total 8\r\n",
    b"x" * 100_000 + b"\r\n",
    b"\xff" * 50 + b"\n",
    b"\n\n\n\r\n",
)


@pytest.mark.parametrize("line", HOSTILE_NAMES)
def test_invalid_names_are_skipped(line):
    good = b"type=dir; good\r\n-rw-r--r--   1 ftp      1234 Jan  1 12:00 fine one\r\n"
    assert [e.name for e in read_mlsd(line + good)] == [b"good"]
    assert [e.name for e in read_list(line + good)] == [b"fine one"]


def test_listings_of_many_servers():
    listing = (
        b"total 4\r\n"
        b"drwxr-xr-x   2 ftp      ftp          4096 Feb 01  2025 pub\r\n"
        b"-rw-r--r--+  1 1000     1000   1234567890 Dec 31 23:59  two  spaces\r\n"
        b"lrwxrwxrwx   1 root     root            7 Jan  5 10:00 latest -> v2 -> x\r\n"
        b"-rw-r--r--   1 owner        512 Jan  5 10:00 no group\r\n"
        b"brw-rw----   1 root disk   8,   0 Jan  5 10:00 sda\r\n"
        b"02-01-25  10:00AM       <DIR>          A Folder\r\n"
        b"02-01-2025  10:00PM                42 A File.txt\r\n"
    )
    assert [(e.name, e.folder, e.size) for e in read_list(listing)] == [
        (b"pub", True, 4096),
        (b" two  spaces", False, 1234567890),
        (b"latest", False, 7),
        (b"no group", False, 512),
        (b"A Folder", True, None),
        (b"A File.txt", False, 42),
    ]


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_no_listing_breaks_the_page(data):
    for read in (read_mlsd, read_list):
        entries = list(read(data))
        page, left_out = index_page(b"/", entries)
        found = BeautifulSoup(page, "html.parser").find_all("a")
        assert (len(found), left_out) == (len(entries), 0)
        base = "ftp://ftp.example.com/folder/"
        assert all(parse_url(link["href"], base).startswith(base) for link in found)


def test_names_are_shown_without_escapes_and_markup():
    page, _ = index_page(b"/<x>/", [Entry(b"\x1b[2J<script>\xff", changed="<i>")])
    assert b"\x1b" not in page
    assert b"<script>" not in page
    assert b"<i>" not in page


def test_a_pattern_takes_no_time_on_hostile_lines():
    lines = b"\n".join(
        b"-rw-r--r-- 1 " + filler * 1300 for filler in (b"a ", b"1 ", b"  ", b"1", b"Jan 1 ")
    )
    began = time.process_time()
    assert list(read_list(lines * 20)) == []
    assert time.process_time() - began < 10
