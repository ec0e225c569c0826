"""URLs as the WHATWG standard has them: the cases of web-platform-tests, and what differs and why.

The data comes with a Go module (.ci/tools urltestdata.json); without Go the tests are skipped.
"""

import json

import polars as pl
import pytest
from here import ROOT

from nutbeam.web.rules.url_rules import UrlRules
from nutbeam.web.urls.row_keys import from_key, parse_url

DATA = ROOT / "build" / "tools" / "urltestdata.json"
pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason="no build/tools/urltestdata.json: .ci/tools makes it where Go is"
)

PUNYCODE = "ada takes a label of ASCII that begins with xn-- though it decodes to nothing"
CARET = "the standard escapes ^ in paths since 2025; the cases are older"
SURROGATES = "a lone surrogate cannot come from the bytes of a page, and is refused"
# By the input, in the spelling of JSON.
DEVIATIONS = {
    "http://a.b.c.xn--pokxncvks": PUNYCODE,
    "http://10.0.0.xn--pokxncvks": PUNYCODE,
    "http://a.b.c.XN--pokxncvks": PUNYCODE,
    "http://a.b.c.Xn--pokxncvks": PUNYCODE,
    "http://10.0.0.XN--pokxncvks": PUNYCODE,
    "http://10.0.0.xN--pokxncvks": PUNYCODE,
    "file://xn--/p": PUNYCODE,
    "https://xn--/": PUNYCODE,
    "foo://host/ !\"$%&'()*+,-./:;<=>@[\\]^_`{|}~": CARET,
    "wss://host/ !\"$%&'()*+,-./:;<=>@[\\]^_`{|}~": CARET,
    "http://example.com/\ud800\U000107fe\udfff\ufdd0\ufdcf\ufdef\ufdf0\ufffe\uffff"
    "?\ud800\U000107fe\udfff\ufdd0\ufdcf\ufdef\ufdf0\ufffe\uffff": SURROGATES,
}


def cases():
    if not DATA.exists():
        return []
    return [case for case in json.loads(DATA.read_text("utf-8")) if isinstance(case, dict)]


def test_the_cases_of_web_platform_tests(capsys):
    differ = {
        case["input"]
        for case in cases()
        if parse_url(case["input"], case.get("base"))
        != (None if case.get("failure") else case["href"])
    }
    number = len(cases())
    with capsys.disabled():
        print(f"\nweb-platform-tests: {number - len(differ)} of {number} URLs parse as they should")
    assert number > 800
    assert differ <= set(DEVIATIONS)  # ada-url 1.27 has only some of them


def test_admitted_urls_of_whatwg_have_a_key_and_are_admitted_again_unchanged():
    hrefs = [case["href"] for case in cases() if not case.get("failure")]
    admitted = UrlRules().admit(pl.Series(hrefs), filters=False)
    assert admitted.height == len(hrefs)
    kept = admitted.filter(pl.col("url").is_not_null())
    assert kept.height > 200
    assert [from_key(key) for key in kept["key"]] == kept["url"].to_list()
    assert UrlRules().admit(kept["url"], filters=False)["url"].to_list() == kept["url"].to_list()
    reasons = set(admitted["reason"].drop_nulls())
    assert reasons == {"malformed", "scheme_not_allowed"}
    malformed = admitted.with_columns(pl.Series("href", hrefs)).filter(
        (pl.col("reason") == "malformed") & pl.col("href").str.starts_with("http")
    )
    # What no resolver takes: an empty label, or over 63 bytes in one.
    for href in malformed["href"]:
        labels = (
            href.split("/")[2].rpartition("@")[2].partition(":")[0].removesuffix(".").split(".")
        )
        assert "" in labels or max(map(len, labels)) > 63, href
