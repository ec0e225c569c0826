"""The index filter ``geoip``: where the server of a page is, by a MaxMind database of the user."""

import polars as pl

from .geoip_database import GEO_FIELDS, open_database
from .index_filter import IndexFilter
from .index_options import IndexFilterOptions

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
