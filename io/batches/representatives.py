"""Finds the targets of URLs that represent other pages."""

from collections.abc import Collection

import polars as pl

from ...policy.components.seeds import Seeds
from ...policy.heirs import ABSENT, no_longer_shown
from ...policy.scope import TargetOptions, judge
from ...web.exchange.status import EXCEPTION, FAILED, MOVED, NOTMODIFIED, SUCCESS, TEMP_MOVED
from ...web.urls.row_keys import to_key
from ..snapshots.operations import Operation
from ..tablets.tablets import tablets
from .batches import named_documents

_COLUMNS = ("key", "protocol_status", "protocol_message", "document")


class Representatives:
    """Where URLs lead, by the newest answer that is known.

    Args:
        operation: The operation, with the table's rows.
        options: The rules for targets of redirects.
        seeds: Hosts and domains of the seeds.
        pages: PAGES rows of a batch: ``key``, ``protocol_status``, ``redirect``.
        documents: Their DOCUMENTS rows: ``key``, ``refresh``. Pages that answered 304 have none: their
            newest document is in the table.
    """

    def __init__(
        self,
        operation: Operation,
        options: TargetOptions,
        seeds: Seeds,
        pages: pl.DataFrame,
        documents: pl.DataFrame,
    ) -> None:
        self._operation, self._options, self._seeds = operation, options, seeds
        refresh = documents.select("key", "refresh").unique("key", keep="first")
        answers = pages.select("key", "protocol_status", url="redirect").unique("key", keep="first")
        unchanged = pl.col("protocol_status") == NOTMODIFIED
        self._unchanged = answers.filter(unchanged).get_column("key")
        answers = answers.filter(~unchanged.fill_null(False)).join(refresh, on="key", how="left")
        self._fetched = answers.select("key", "protocol_status", pl.coalesce("url", "refresh"))

    def outdated(self, rows: pl.DataFrame) -> set[str]:
        """Returns the keys of rows whose ``repr_url`` is outdated and must be removed."""
        shown = rows.select("key", "repr_url").drop_nulls().iter_rows()
        return no_longer_shown({key: to_key(url) for key, url in shown}, self.leads_to)

    def leads_to(self, keys: Collection[str]) -> dict[str, str | None]:
        """Returns where URLs lead; see ``policy.heirs``."""
        wanted = pl.Series("key", sorted(keys), pl.String)
        fetched = self._fetched.filter(pl.col("key").is_in(wanted.implode()))
        others = wanted.filter(~wanted.is_in(fetched.get_column("key").implode()))
        known = pl.concat([fetched, self._of_table(others)]) if len(others) else fetched
        absent = wanted.filter(~wanted.is_in(known.get_column("key").implode()))
        # A failure that may pass says nothing.
        unclear = pl.col("protocol_status").is_null() | pl.col("protocol_status").is_in(
            [EXCEPTION, FAILED]
        )
        known = known.filter(~unclear)
        leading = known.filter(pl.col("url").is_not_null())
        links = leading.select(source="key")
        judged = judge(links, leading.get_column("url"), "fetcher", self._options, self._seeds)
        targets = dict(judged.select("source", "key").iter_rows())
        found = {key: targets.get(key) for key in known.get_column("key")}
        return found | dict.fromkeys(absent, ABSENT)

    def _of_table(self, keys: pl.Series) -> pl.DataFrame:
        """Returns ``key``, ``protocol_status`` and ``url`` of rows of the table."""
        operation = self._operation
        rows = operation.table.find("state", tablets(operation.files("state")), keys, _COLUMNS)
        unchanged = pl.col("key").is_in(self._unchanged.implode())
        rows = rows.with_columns(pl.when(~unchanged).then("protocol_status").otherwise(NOTMODIFIED))
        answer = pl.col("protocol_status")
        redirects = rows.filter(answer.is_in([MOVED, TEMP_MOVED]))
        has_page = answer.is_in([SUCCESS, NOTMODIFIED])
        own = rows.filter(has_page)
        read = own.join(self._refreshes(own), on="key")
        known = pl.concat(part.select("key") for part in (redirects, read))
        rest = rows.join(known, on="key", how="anti")
        parts = (
            redirects.select("key", "protocol_status", url="protocol_message"),
            read.select("key", "protocol_status", "url"),
            # Nothing is known about a page whose document was deleted.
            rest.select("key", pl.when(~has_page).then(answer), url=pl.lit(None, pl.String)),
        )
        return pl.concat(parts)

    def _refreshes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Returns ``key`` and ``url`` of pages: the target of their refresh, or null.

        A page whose document was deleted is left out.
        """
        bare = rows.filter(pl.col("document").is_null())
        table, manifest = self._operation.table, self._operation.manifest()
        documents = named_documents(table, manifest, rows, ("key", "refresh"))
        found = [
            bare.select("key", url=pl.lit(None, pl.String)),
            documents.rename({"refresh": "url"}),
        ]
        return pl.concat(found)
