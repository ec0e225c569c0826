import hashlib

from nutbeam.web.signature import md5


def test_is_the_md5_of_the_raw_body():
    assert md5(b"a body", "http://example.com/") == hashlib.md5(b"a body").digest()


def test_empty_bodies_differ_by_url():
    assert md5(b"", "http://example.com/a") == hashlib.md5(b"http://example.com/a").digest()
    assert md5(b"", "http://example.com/\udc80")  # never fails
