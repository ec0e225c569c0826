"""Chooses the page to keep among pages with the same or nearly the same content."""

import hashlib
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from ...web.base.clock import TOLERANCE_MS
from ...web.base.columns import each_once
from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ..base.row_status import FETCHED_STATUSES
from ..components.schema import STATE, TEXT, OutcomeRows, StateRows, Status, columns
from ..generating.selection import groups
from .near_pairs import Hashes, near_any

# Rows that dedup compares.
SIGNATURES = pa.schema(
    [
        *columns(STATE, "key", "status", "score", "last_fetch_time"),
        ("url_length", pa.int32()),
        ("https", pa.bool_()),
        ("group", TEXT),  # signature, with host or domain if pages are only compared within these
        # Host or domain, and URL without its scheme; null: the scheme has no effect.
        ("twins", TEXT),
        ("ranked_as", TEXT),  # the key that decides last: that of the https page, or its own
        ("follows", pa.bool_()),  # whether it comes right after the page ``ranked_as``
        ("returned", pa.bool_()),  # a duplicate that is in question; pages that stay come first
        ("scope", pa.uint64()),  # hash of the host or domain
        ("hash", pa.uint64()),  # SimHash; null: only pages with an equal signature are duplicates
    ]
)

SignatureRows: TypeAlias = pl.DataFrame  # columns of SIGNATURES
ComparableRows: TypeAlias = pl.DataFrame  # what ``comparable_rows`` returns
# Pairs of near hashes; and pages with the key of the page that stays, which may be their own.
NEAR_PAIRS = pa.schema([("scope", pa.uint64()), ("hash", pa.uint64()), ("other", pa.uint64())])
SETTLED = pa.schema(
    [*columns(SIGNATURES, "key", "status", "group"), ("winner", TEXT), ("leads", pa.bool_())]
)

# Parts of the table that a batch calls into question: keys of pages near its pages, and hashes of
# duplicates whose page may not stay.
QUESTIONED = pa.schema([*columns(STATE, "key", "signature"), ("hash", pa.uint64())])

# The changes of dedup: duplicates with the page that stays, and pages that are no longer
# duplicates.
# ``near``: their contents are not equal; without ``duplicate_of``: the page has near duplicates.
VERDICTS = pa.schema([*columns(STATE, "key", "duplicate_of"), ("near", pa.bool_())])
QuestionedRows: TypeAlias = pl.DataFrame  # columns of QUESTIONED
VerdictRows: TypeAlias = pl.DataFrame  # columns of VERDICTS
SCHEME = "httpsOverHttp"
# Columns of the state, and of the outcome, that are compared.
OF_STATE = ("key", "status", "signature", "score", "last_fetch_time", "duplicate_of")
COMPARED = ("key", "status", "signature", "old_status", "old_signature")
_UNFETCHED, _DUPLICATE = int(Status.DB_UNFETCHED), int(Status.DB_DUPLICATE)
_HTTPS = r"^(\[[^\]]*\]|[^:/]*):https([:/])"
# Nutch's names of the criteria, each with (column, whether a larger value is better).
ORDERS = {
    "score": ("score", True),
    "fetchTime": ("last_fetch_time", True),
    "urlLength": ("url_length", False),
    SCHEME: ("https", True),
}


@dataclass(frozen=True)
class DedupOptions:
    """Options of finding duplicates, and of choosing the page to keep."""

    GROUP = "dedup"

    dedup_group: str = option(
        "none",
        "Only pages of one host, or one domain, are duplicates of each other.",
        choices=("none", "host", "domain"),
        nutch="dedup -group",
    )
    compare_order: tuple[str, ...] = option(
        ("score", "fetchTime", "urlLength"),
        "Which comparisons decide which page stays, in this order; the row key decides last.",
        choices=tuple(ORDERS),
        nutch="dedup -compareOrder",
    )
    dedup_distance: int = option(
        3,
        "With --signature simhash: pages whose signatures differ in up to this number of bits are "
        "duplicates, too; 0: only pages with equal signatures are.",
        unit="bits",
        minimum=0,
        maximum=8,
    )

    @property
    def near(self) -> bool:
        """Whether pages can have near duplicates; dedup does not know the kind of signature."""
        return self.dedup_distance > 0 and getattr(self, "signature", "simhash") == "simhash"


SIMHASH_BYTES = 8


def order_by(options: DedupOptions, *, twins: bool) -> tuple[list[str], list[bool]]:
    """Returns columns and directions of a sort order in which the page to keep is first.

    Args:
        options: The order.
        twins: Whether the pages differ only by ``http:`` and ``https:``. Only then the scheme
            counts.
    """
    words = [word for word in options.compare_order if twins or word != SCHEME]
    chosen = [("returned", False), *(ORDERS[w] for w in words), ("ranked_as", False)]
    chosen.append(("follows", False))
    return [name for name, _ in chosen], [better for _, better in chosen]


class Questioned(NamedTuple):
    """The signatures and duplicates that dedup must check after new outcomes of batches.

    Attributes:
        signatures: Signatures of pages to compare.
        lost: Keys of pages that are gone, or whose content has changed. Pages that were their
            duplicates no longer are. A page that failed, and is tried again, is not lost yet.
    """

    signatures: pl.Series
    lost: pl.Series

    @property
    def hashes(self) -> Hashes:
        """The SimHashes among the signatures."""
        return simhashes(self.signatures.drop_nulls()).drop_nulls().to_numpy()


def signatures_to_compare(outcome: OutcomeRows) -> Questioned:
    """Returns the signatures to compare, and the lost pages, whose duplicates are checked again.

    Args:
        outcome: OUTCOME rows with the columns ``COMPARED``.
    """
    # inject may have replaced the row of a page that had duplicates: such a row is db_unfetched.
    had = pl.col("old_status").is_in([*FETCHED_STATUSES, _DUPLICATE, _UNFETCHED])
    # A page that was tried, and that is db_unfetched, is tried again soon: it may have its content.
    has = pl.col("status").is_in([*FETCHED_STATUSES, _UNFETCHED])
    changed = pl.col("signature").ne_missing(pl.col("old_signature"))
    lost = outcome.filter(had & (~has | changed))
    columns = [outcome.get_column("signature"), lost.get_column("old_signature")]
    signatures = pl.concat([column.rename("signature") for column in columns])
    return Questioned(signatures.drop_nulls().unique(), lost.get_column("key"))


def simhashes(signatures: pl.Series) -> pl.Series:
    """Returns signatures as numbers; null for those that are not SimHashes.

    >>> simhashes(pl.Series([bytes(7) + b"\\x05", b"an MD5", None])).to_list()
    [5, None, None]
    """
    right = pl.when(pl.col("s").bin.size() == SIMHASH_BYTES).then("s")
    frame = signatures.to_frame("s").select(right.alias("s"))
    number = pl.col("s").bin.reinterpret(dtype=pl.UInt64, endianness="big")
    return frame.select(number).to_series().alias(signatures.name)


def near_signatures(signatures: pl.Series, hashes: Hashes, distance: int) -> pl.Series:
    """Returns for each signature whether it is a SimHash near one of the hashes."""
    numbers = simhashes(signatures)
    distinct = numbers.drop_nulls().unique()
    near = distinct.filter(pl.Series(near_any(distinct.to_numpy(), hashes, distance)))
    return numbers.is_in(near.implode()).fill_null(value=False)


def alive_rows(rows: StateRows) -> StateRows:
    """Returns the pages that stay: fetched, and no duplicates."""
    return rows.filter(pl.col("status").is_in(FETCHED_STATUSES))


def is_returning(lost: pl.Series) -> pl.Expr:
    """Returns a condition: the page is a duplicate of a lost page, or of one that is not known.

    A job that removes a page leaves its duplicates without ``duplicate_of``. Rows that an older
    version wrote have none, either.
    """
    winner = pl.col("duplicate_of")
    return (pl.col("status") == _DUPLICATE) & (
        winner.is_null() | winner.is_in(lost.implode()).fill_null(value=False)
    )


def near_duplicates_of(state_rows: StateRows, pages: QuestionedRows) -> StateRows:
    """Returns the duplicates of pages whose signature is not that of the page.

    A page of equal content needs no other winner if its page loses: it is as near to that page's
    winner as its page is.

    Args:
        state_rows: STATE rows with the columns ``OF_STATE``.
        pages: QUESTIONED rows with keys of pages and their hashes.
    """
    duplicates = state_rows.filter(pl.col("status") == _DUPLICATE).join(
        pages.select(duplicate_of="key", hash="hash"), on="duplicate_of", how="inner"
    )
    numbers = simhashes(duplicates.get_column("signature"))
    differ = numbers.ne_missing(duplicates.get_column("hash"))
    return duplicates.filter(differ).select(state_rows.columns)


def comparable_rows(
    state_rows: StateRows, now: int, lost: pl.Series | None = None
) -> ComparableRows:
    """Returns the pages that can be duplicates, with the compared columns.

    Args:
        state_rows: STATE rows with the columns ``OF_STATE``.
        now: Time in ms; a later fetch time is wrong, and does not make a page newer.
        lost: Pages whose duplicates are compared, too, see ``is_returning``; None: all duplicates
            are.
    """
    last = pl.col("last_fetch_time")
    duplicate = pl.col("status") == _DUPLICATE if lost is None else is_returning(lost)
    compared = pl.col("status").is_in(FETCHED_STATUSES) | duplicate
    key = pl.col("key")
    return state_rows.filter(compared & pl.col("signature").is_not_null()).select(
        "key",
        "signature",
        "status",
        # In polars NaN is larger than every number, but such a page must not be the best.
        pl.col("score").fill_nan(None),
        pl.when(last <= now + TOLERANCE_MS).then(last),
        _decoded_length(key).alias("url_length"),
        key.str.contains(_HTTPS).alias("https"),
        key.str.replace(_HTTPS, "${1}:http${2}").alias("plain"),
    )


def signature_rows(
    pages: ComparableRows, options: DedupOptions, *, all_pages: bool
) -> SignatureRows:
    """Returns the SIGNATURES rows of comparable pages.

    Args:
        pages: Rows of ``comparable_rows``.
        options: Groups, order, distance.
        all_pages: Whether all pages are compared. If not, near duplicates that are in question
            rank after the pages that stay, so that no page outside the batch loses.
    """
    group = pl.col("signature").bin.encode("hex")
    name = pl.lit("")
    if options.dedup_group != "none":
        names = groups(pages.get_column("key"), options.dedup_group)
        pages = pages.with_columns(names.alias("name"), scope=_scopes(names))
        group = group + "/" + pl.col("name")
        name = pl.col("name") + "/"
    else:
        pages = pages.with_columns(scope=pl.lit(0, pl.UInt64))
    numbers = simhashes(pages.get_column("signature"))
    nulls = pl.Series([None], dtype=pl.UInt64).new_from_index(0, len(pages))
    pages = pages.with_columns(hash=numbers if options.near else nulls)
    back = (pl.col("status") == _DUPLICATE) & pl.col("hash").is_not_null()
    twins = name + pl.col("plain") if SCHEME in options.compare_order else pl.lit(None, pl.String)
    return pages.with_columns(
        group=group,
        twins=twins,
        ranked_as="key",
        follows=pl.lit(False),
        returned=pl.lit(False) if all_pages else back,
    ).select(SIGNATURES.names)


def _scopes(names: pl.Series) -> pl.Series:
    """Returns a 64-bit hash of each name, the same on every worker."""

    def hash_of(name: str) -> int:
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())

    return each_once(names, hash_of, pl.UInt64)


def follow_twins(rows: SignatureRows, options: DedupOptions) -> SignatureRows:
    """Ranks an http page right after its https page, if the scheme decides between the two.

    So the order stays a total one, and even of more than two pages one is the best.

    Args:
        rows: SIGNATURES rows, with all rows of each value of ``twins``.
        options: Order and distance.
    """
    order, descending = order_by(options, twins=True)
    ranked = rows.sort(order, descending=descending, nulls_last=True).with_row_index("rank")
    copied = ["score", "last_fetch_time", "url_length", "ranked_as"]
    first = ranked.filter("https").select("twins", "rank", "group", "hash", *copied)
    pairs = ranked.filter(~pl.col("https")).join(first, on="twins", suffix="_of", how="inner")
    equal = pl.col("group") == pl.col("group_of")
    if options.near:
        hashes = (pairs.get_column(name).fill_null(0).to_numpy() for name in ("hash", "hash_of"))
        near = np.bitwise_count(np.bitwise_xor(*hashes)) <= options.dedup_distance
        have_hashes = pl.col("hash").is_not_null() & pl.col("hash_of").is_not_null()
        equal |= have_hashes & pl.Series(near)
    after = pairs.filter((pl.col("rank_of") < pl.col("rank")) & equal)
    moved = after.select("key", follows_=pl.lit(True), **{f"{n}_": f"{n}_of" for n in copied})
    joined = ranked.join(moved, on="key", how="left")
    return (
        joined.with_columns(
            pl.when("follows_").then(f"{name}_").otherwise(name).alias(name) for name in copied
        )
        .with_columns(follows=pl.col("follows_").fill_null(value=False))
        .select(rows.columns)
    )


def _decoded_length(keys: pl.Expr) -> pl.Expr:
    """Returns the length of URLs after decoding of their percent escapes, minus a constant.

    Keys are shorter than URLs by the same few characters, which does not affect comparisons.
    Normalized URLs have no bad escapes.
    """
    escapes = keys.str.count_matches("%[0-9A-Fa-f]{2}")
    # Escapes of continuation bytes of UTF-8.
    following = keys.str.count_matches("%[89ABab][0-9A-Fa-f]")
    return (keys.str.len_bytes().cast(pl.Int32) - 2 * escapes - following).cast(pl.Int32)


def apply_verdicts(
    state_rows: StateRows, verdicts: VerdictRows
) -> tuple[StateRows, dict[str, int]]:
    """Marks duplicates with the page that stays; revives pages that are no longer duplicates.

    Args:
        state_rows: STATE rows in key order.
        verdicts: VERDICTS rows; without ``duplicate_of`` the page is no duplicate.

    Returns:
        (rows, counts).
    """
    judged = verdicts.select("key", "near", winner="duplicate_of", judged=pl.lit(True))
    judged_rows = state_rows.join(judged, on="key", how="left", maintain_order="left")
    lost = pl.col("winner").is_not_null()
    revived = pl.col("judged") & ~lost & (pl.col("status") == _DUPLICATE)
    fresh = lost & (pl.col("status") != _DUPLICATE)
    near = pl.col("near").fill_null(value=False)
    moved = lost & ~fresh & pl.col("duplicate_of").ne_missing(pl.col("winner"))
    counts = judged_rows.select(
        duplicates=fresh.sum(),
        near_duplicates=(fresh & near).sum(),
        near_clusters=(~lost & near).sum(),
        revived=revived.sum(),
        other_representative=moved.sum(),
    ).row(0, named=True)
    status = pl.when(lost).then(_DUPLICATE).when(revived).then(int(Status.DB_FETCHED))
    marked = judged_rows.with_columns(
        status=status.otherwise("status").cast(pl.UInt8),
        duplicate_of=pl.when("judged").then("winner").otherwise("duplicate_of"),
    )
    return marked.select(state_rows.columns), {name: n for name, n in counts.items() if n}
