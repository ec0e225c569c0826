"""The index filter geoip, with databases that are written here."""

import random
from pathlib import Path

import pytest
from frames import frame_of
from geo_databases import database

from nutbeam.policy.components.index_schema import INDEX_PAGES
from nutbeam.policy.indexing.index_documents import (
    DocumentRules,
    chosen_filters,
    documents_of_pages,
)
from nutbeam.policy.indexing.index_filter import IndexFilterOptions
from nutbeam.policy.indexing.index_geoip import GeoDatabase, open_database
from nutbeam.web.base.errors import UserError

CITY = {
    "city": {"names": {"en": "Uppsala", "sv": "Uppsala stad"}, "geoname_id": 2666199},
    "continent": {"code": "EU", "names": {"en": "Europe"}, "geoname_id": 6255148},
    "country": {"iso_code": "SE", "names": {"en": "Sweden"}, "geoname_id": 2661886},
    "location": {"latitude": 59.8585, "longitude": 17.6454, "accuracy_radius": 20,
                 "time_zone": "Europe/Stockholm"},
    "postal": {"code": "75240"},
    "subdivisions": [{"iso_code": "X", "names": {"en": "Larger"}},
                     {"iso_code": "C", "names": {"en": "Uppsala län"}}],
    "traits": {"is_anonymous_proxy": True, "is_hosting_provider": False},
}  # fmt: skip
NETWORK = {"autonomous_system_number": 64500, "autonomous_system_organization": "Example AB",
           "isp": "Example", "organization": "Example"}  # fmt: skip


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    path = tmp_path_factory.mktemp("geoip") / "city.mmdb"
    entries = {"192.0.2.0/24": CITY, "2001:db8::/32": {"country": {"iso_code": "NO"}}}
    return database(path, "GeoLite2-City", entries)


def made(*paths, ips, names=("geoip",), **options):
    chosen = IndexFilterOptions(index_filters=names, geoip_databases=paths, **options)
    pages = [{"key": f"com.a:http/{n}", "ip": ip} for n, ip in enumerate(ips)]
    rules = DocumentRules(chosen_filters(chosen), chosen)
    found = documents_of_pages(frame_of(INDEX_PAGES, *pages), rules)
    rows = found.drop("id", "segment", "digest", "boost", "dropped_by").to_dicts()
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def test_a_page_gets_the_fields_of_the_database_for_its_server(city):
    here, north, other, unknown, no_address = made(
        city, ips=["192.0.2.7", "2001:db8::1", "198.51.100.1", None, "h0.example.com"]
    )
    assert here == {
        "ip": "192.0.2.7", "cityName": "Uppsala", "cityGeoNameId": 2666199, "continentCode": "EU",
        "continentName": "Europe", "continentGeoNameId": 6255148, "countryIsoCode": "SE",
        "countryName": "Sweden", "countryGeoNameId": 2661886, "latLon": "59.8585,17.6454",
        "accRadius": 20, "timeZone": "Europe/Stockholm", "postalCode": "75240",
        "subDivIsoCode": "C", "subDivName": "Uppsala län", "isAnonProxy": "true",
    }  # fmt: skip
    assert north == {"ip": "2001:db8::1", "countryIsoCode": "NO"}
    assert other == {"ip": "198.51.100.1"}
    assert unknown == {}
    assert no_address == {"ip": "h0.example.com"}


def test_several_databases_add_up_and_the_first_counts(city, tmp_path):
    network = {**NETWORK, "domain": "example.net", "country": {"iso_code": "DE"}}
    isp = database(tmp_path / "isp", "GeoIP2-ISP", {"192.0.2.0/24": network}, 4)
    kind = {"192.0.2.0/25": {"connection_type": "Corporate"}}
    connection = database(tmp_path / "connection", "GeoIP2-Connection-Type", kind, 4)
    found = made(city, isp, connection, ips=["192.0.2.7", "192.0.2.200", "2001:db8::1"])
    assert [page["countryIsoCode"] for page in found] == ["SE", "SE", "NO"]
    assert [page.get("connType") for page in found] == ["Corporate", None, None]
    assert [page.get("autonSystemNum") for page in found] == [64500, 64500, None]
    assert (found[0]["autonSystemOrg"], found[0]["isp"]) == ("Example AB", "Example")
    assert found[0]["domain"] == "example.net"
    names = ("basic", "geoip")
    (page,) = made(isp, ips=["192.0.2.7"], names=names, add_domain=True)
    assert (page["domain"], page["org"]) == ("a.com", "Example")


def test_values_of_a_wrong_type_are_no_fields(tmp_path):
    strange = {"city": ["x"], "subdivisions": {"names": 1}, "postal": {"code": 5},
               "location": {"latitude": "north", "accuracy_radius": "wide"}, "isp": {"a": 1}}  # fmt: skip
    path = database(tmp_path / "odd.mmdb", "DBIP-City-Lite", {"192.0.2.0/24": strange})
    assert made(path, ips=["192.0.2.1"]) == [{"ip": "192.0.2.1"}]


def test_a_database_that_cannot_be_used_is_one_line(city, tmp_path):
    cut, text = tmp_path / "cut.mmdb", tmp_path / "text.mmdb"
    text.write_text("no database")
    cut.write_bytes(Path(city).read_bytes()[:500])
    wrong = database(tmp_path / "wrong.mmdb", "Product-Names", {"192.0.2.0/24": {"a": "b"}})
    with pytest.raises(ValueError, match="index filter geoip needs --geoip_databases"):
        made(ips=[])
    reasons = {
        str(tmp_path / "absent.mmdb"): "No such file or directory",
        str(tmp_path): "Is a directory",
        str(text): "it is another file, or damaged",
        str(cut): "it is another file, or damaged",
        wrong: "of kind 'Product-Names': supported are city, country",
    }
    for path, reason in reasons.items():
        with pytest.raises(ValueError, match=f"^geoip_databases must be .*{reason}") as caught:
            made(path, ips=[])
        assert repr(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def refusal(path):
    """Returns why a database is refused, or why its entries are; None if they can be read."""
    try:
        made_of = GeoDatabase(path)
        made_of.fields("192.0.2.7")
        made_of.fields("2001:db8::1")
    except (UserError, ValueError) as error:
        return str(error)
    return None


def test_a_damaged_database_gives_fields_or_one_line(city, tmp_path):
    whole, dice, reasons = Path(city).read_bytes(), random.Random(1), []
    for number in range(300):
        data, path = bytearray(whole), tmp_path / f"{number}.mmdb"
        for _ in range(3):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        if reason := refusal(str(path)):
            assert "\n" not in reason
            assert str(path) in reason
            reasons.append(reason)
    assert len(reasons) > 10


def test_a_database_that_was_replaced_is_opened_again(city, tmp_path):
    path = tmp_path / "db.mmdb"
    path.write_bytes(Path(city).read_bytes())
    assert made(str(path), ips=["192.0.2.7"])[0]["countryIsoCode"] == "SE"
    assert open_database(str(path)) is open_database(str(path))
    path.unlink()
    database(path, "GeoLite2-Country", {"192.0.2.0/24": {"country": {"iso_code": "FI"}}})
    assert made(str(path), ips=["192.0.2.7"]) == [{"ip": "192.0.2.7", "countryIsoCode": "FI"}]
