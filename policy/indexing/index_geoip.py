"""The index filter ``geoip``: where the server of a page is, by MaxMind databases of the user.

Fields are named as Nutch names them.
"""

import functools
import ipaddress
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from ...web.base.errors import UserError, one_line
from ...web.base.imports import check_library
from ...web.base.wording import quote_value
from .index_filter import IndexFilter, IndexFilterOptions

# Parts of the name of a kind of database, such as GeoLite2-City or DBIP-Country-Lite.
_KINDS = ("city", "country", "enterprise", "insights", "asn", "isp", "connection-type", "domain",
         "anonymous")  # fmt: skip
_NAME = ("names", "en")
_LAST = -1  # of the subdivisions, the smallest


class GeoField(NamedTuple):
    """A field of documents.

    Attributes:
        kind: ``str`` or ``int``.
        path: Where its value is in an entry of a database.
        meaning: What it is.
    """

    kind: type
    path: tuple[str | int, ...]
    meaning: str


def _place(field: str, name: str, of: str, *path: str | int) -> dict[str, GeoField]:
    """Returns the fields that every kind of place has."""
    return {
        f"{field}Name": GeoField(str, (*path, *_NAME), f"{name} {of}, in English."),
        f"{field}Confidence": GeoField(int, (*path, "confidence"), "How sure this is, percent."),
        f"{field}GeoNameId": GeoField(int, (*path, "geoname_id"), "Its number in GeoNames."),
    }


# Nutch's fields of cities and countries.
_PLACES: Mapping[str, GeoField] = {
    **_place("city", "City", "of the server", "city"),
    "continentCode": GeoField(str, ("continent", "code"), "Code of the continent."),
    "continentName": GeoField(str, ("continent", *_NAME), "The continent, in English."),
    "continentGeoNameId": GeoField(int, ("continent", "geoname_id"), "Its number in GeoNames."),
    "countryIsoCode": GeoField(str, ("country", "iso_code"), "Code of the country (ISO 3166-1)."),
    **_place("country", "Country", "of the server", "country"),
    "countryType": GeoField(str, ("represented_country", "type"), "`military`, if it is a base."),
    "subDivIsoCode": GeoField(str, ("subdivisions", _LAST, "iso_code"), "Code of the region."),
    **_place("subDiv", "Smallest region", "of the server", "subdivisions", _LAST),
    "accRadius": GeoField(int, ("location", "accuracy_radius"), "How exact `latLon` is, km."),
    "timeZone": GeoField(str, ("location", "time_zone"), "Time zone."),
    "metroCode": GeoField(int, ("location", "metro_code"), "Code of the metropolitan area."),
    "postalCode": GeoField(str, ("postal", "code"), "Postal code."),
    "postalConfidence": GeoField(int, ("postal", "confidence"), "How sure this is, percent."),
}
# Nutch's fields of networks. Some databases have them under `traits`.
_NETWORKS: Mapping[str, GeoField] = {
    "autonSystemNum": GeoField(int, ("autonomous_system_number",), "Autonomous system."),
    "autonSystemOrg": GeoField(str, ("autonomous_system_organization",), "Whose it is."),
    "isp": GeoField(str, ("isp",), "Internet service provider."),
    "org": GeoField(str, ("organization",), "Organization."),
    "connType": GeoField(str, ("connection_type",), "Connection type, such as `Corporate`."),
    "domain": GeoField(str, ("domain",), "Domain of the network; not if `basic` has added one."),
    "userType": GeoField(str, ("user_type",), "Type of user, such as `hosting`."),
}
# `true` if an address is that.
_TRAITS: Mapping[str, GeoField] = {
    "isAnonymous": GeoField(bool, ("is_anonymous",), "`true`: an anonymizing service."),
    "isAnonProxy": GeoField(bool, ("is_anonymous_proxy",), "`true`: an anonymous proxy."),
    "isAnonymousVpn": GeoField(bool, ("is_anonymous_vpn",), "`true`: an anonymous VPN."),
    "isHostingProvider": GeoField(bool, ("is_hosting_provider",), "`true`: a hosting provider."),
    "isPublicProxy": GeoField(bool, ("is_public_proxy",), "`true`: a public proxy."),
    "isTorExitNode": GeoField(bool, ("is_tor_exit_node",), "`true`: a Tor exit node."),
}
GEO_FIELDS: Mapping[str, GeoField] = {**_PLACES, **_NETWORKS, **_TRAITS}


class GeoDatabase:
    """An open database.

    Args:
        path: Its file.

    Raises:
        ValueError: It cannot be opened, or is of another kind; the message quotes the path.
    """

    def __init__(self, path: str) -> None:
        check_library("maxminddb", "the index filter geoip", "geoip")
        import maxminddb

        self.path = path
        wanted = f"geoip_databases must be files of MaxMind databases, got {quote_value(path)}"
        try:
            # Not MODE_AUTO: the reader in C crashes if a file is damaged.
            self._reader = maxminddb.open_database(path, maxminddb.MODE_MMAP)
            kind = str(self._reader.metadata().database_type)
            self._versions = (4, int(self._reader.metadata().ip_version))
        except OSError as error:
            raise ValueError(f"{wanted}: {error.strerror or one_line(error)}") from error
        except Exception as error:  # of any kind, if it is damaged
            raise ValueError(f"{wanted}: it is another file, or damaged") from error
        if not any(name in kind.lower() for name in _KINDS):
            raise ValueError(
                f"{wanted}, of kind {quote_value(kind)}: supported are {', '.join(_KINDS)}"
            )

    @functools.lru_cache(maxsize=10_000)  # noqa: B019 - databases are few, and stay open
    def fields(self, address: str) -> Mapping[str, str | int]:
        """Returns what the database says of an address; nothing if it does not know it.

        Raises:
            UserError: The database is damaged.
        """
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return {}
        if parsed.version not in self._versions:
            return {}
        try:
            return fields_of_entry(self._reader.get(parsed))
        except Exception as error:  # of any kind, if it is damaged
            reason = one_line(error, 200)
            raise UserError(f"the MaxMind database {self.path} is damaged: {reason}") from error


def fields_of_entry(entry: Any) -> dict[str, str | int]:
    """Returns the fields that an entry of a database has.

    >>> fields_of_entry({"country": {"iso_code": "SE"}, "traits": {"isp": "A", "is_anonymous": True}})
    {'countryIsoCode': 'SE', 'isp': 'A', 'isAnonymous': 'true'}
    """
    values = dict[str, str | int]()
    for name, field in GEO_FIELDS.items():
        value = _value(entry, field.path)
        if value is None and name not in _PLACES:
            value = _value(entry, ("traits", *field.path))
        if field.kind is bool and value is True:
            values[name] = "true"
        elif type(value) is field.kind and isinstance(value, str | int) and value is not False:
            values[name] = value
    latitude, longitude = (_value(entry, ("location", name)) for name in ("latitude", "longitude"))
    if isinstance(latitude, float) and isinstance(longitude, float):
        values["latLon"] = f"{latitude},{longitude}"
    return values


def _value(entry: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        if isinstance(step, str):
            entry = entry.get(step) if isinstance(entry, dict) else None
        else:
            entry = entry[step] if isinstance(entry, list) and entry else None
    return entry


def open_database(path: str) -> GeoDatabase:
    """Returns a database; opens it again only if its file has changed.

    Raises:
        ValueError: It cannot be opened, or is of another kind.
    """
    try:
        file = os.stat(path)  # noqa: PTH116 - a text, as the cache needs it
        return _open_version(path, file.st_mtime_ns, file.st_size)
    except OSError:
        return GeoDatabase(path)  # which says why not


@functools.lru_cache(maxsize=16)
def _open_version(path: str, changed: int, size: int) -> GeoDatabase:
    return GeoDatabase(path)


_SCHEMA = {
    "ip": pl.String(),
    **{
        name: pl.Int64() if field.kind is int else pl.String() for name, field in GEO_FIELDS.items()
    },
    "latLon": pl.String(),
}


class GeoIp(IndexFilter):
    """Indexes where the server of a page is, and whose network it is in (Nutch's index-geoip).

    The address is that from which the page was fetched; nothing is resolved. Of several databases
    with the same field the first counts.
    """

    name = "geoip"
    reads = ("ip",)
    fields = {  # noqa: RUF012 - a declaration
        "ip": "Address of the server.",
        **{name: field.meaning for name, field in GEO_FIELDS.items()},
        "latLon": "Latitude and longitude, with a comma between.",
    }

    def __init__(self, options: IndexFilterOptions) -> None:
        super().__init__(options)
        if not options.geoip_databases:
            raise ValueError("the index filter geoip needs --geoip_databases")
        self._databases = [open_database(path) for path in options.geoip_databases]

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the fields; a page without a known address has none."""
        ips = pages.get_column("ip").cast(pl.String)
        addresses = ips.drop_nulls().unique()
        address_rows = pl.DataFrame(
            [{"ip": ip, **self._fields(ip)} for ip in addresses], schema=_SCHEMA
        )
        geo_fields = ips.to_frame("ip").join(
            address_rows, on="ip", how="left", maintain_order="left"
        )
        if "domain" in documents.columns:  # the registered domain of the page
            geo_fields = geo_fields.drop("domain")
        return documents.with_columns(geo_fields)

    def _fields(self, address: str) -> dict[str, str | int]:
        fields = dict[str, str | int]()
        for database in reversed(self._databases):
            fields |= database.fields(address)
        return fields
