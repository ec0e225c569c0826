"""Documents of the embedded index: rows with the fields that are searched, and tantivy's schema.

A field that is none of these is kept with the document, and can be shown, but is not searched.

======================  =====================================================================
field                   what
======================  =====================================================================
``id``                  URL, as one term
``url``                 words of the URL to show
``site``                host and the domains above it, each as one term; counted, too
``lang``, ``type``      language code; MIME type and its parts; each as one term; counted, too
``date``                ms since 1970
``weight``              factor of the boost, see ``stored_weight``
``title``, ``content``  terms of title, content and texts of links: stems, each with the language of
``anchor``              the page, see ``language_terms``
``analyzer``            the language by which a document is cut into terms, as one term; stored
``folded``              words with accents, without their accents
``words``               words of title and content as they are, in lower case: what people may type
``title_words``         words of the title, without accents, one after the other
``title_text``          title, content and texts of links as they are; only stored
``content_text``
``anchor_text``
``document``            all other fields, as JSON; only stored
======================  =====================================================================
"""

import contextlib
import functools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import tantivy
from tantivy.tantivy import __version__ as TANTIVY_VERSION

from ...web.base.errors import UserError
from ...web.content.searched_forms import (
    ANALYZERS,
    OTHER,
    SPACELESS,
    SPACELESS_TERM,
    STEMMERS,
    accented_words,
    analyzers_of,
    primary_languages,
    searched_forms,
    url_words,
)
from ...web.pages.document_dates import document_date, document_times
from ...web.pages.text_languages import text_languages
from ...web.urls.domains import sites_of
from ...web.urls.url_parts import host_of_url
from ..storage.file_errors import first_line
from .page_vectors import VECTORS_FIELD

_TEXTS = pl.List(pl.String)
# The searched fields of documents, as ``index`` makes them, all other fields as JSON, and vectors.
SEARCHED: dict[str, pl.DataType] = {
    "id": pl.String(), "title": pl.String(), "content": pl.String(), "anchor": _TEXTS,
    "host": pl.String(), "url": pl.String(), "lang": pl.String(), "type": _TEXTS,
    "date": pl.Int64(), "boost": pl.Float64(), "document": pl.String(), VECTORS_FIELD: pl.Binary(),
}  # fmt: skip
MOST_TITLE = 2_000
MOST_CONTENT = 4_000_000  # characters: a longer text is cut, so that memory is bounded
MOST_ANCHORS = 1_000
_READ_CHARS = 3_000  # of a text whose language is not known
_LEAST_SPACELESS = 0.1  # share of characters of scripts without spaces
_IN_FIELDS = ("title", "content", "anchor")


def searched_rows(documents: pl.DataFrame) -> pl.DataFrame:
    """Returns documents as SEARCHED rows.

    Args:
        documents: ``id`` and any other fields: texts, lists of texts, numbers, times in ms.

    >>> rows = searched_rows(pl.DataFrame({"id": ["http://a.com/"], "colour": ["red"]}))
    >>> rows.select("id", "host", "url", "document").row(0)
    ('http://a.com/', 'a.com', 'http://a.com/', '{"id":"http://a.com/","colour":"red"}')
    """
    there = documents.columns
    stored = [name for name in there if name not in (*_IN_FIELDS, VECTORS_FIELD)]
    rows = documents.select(
        "id",
        _text("title", documents).str.slice(0, MOST_TITLE).alias("title"),
        _text("content", documents).alias("content"),
        _list("anchor", documents).list.head(MOST_ANCHORS).alias("anchor"),
        _text("host", documents).alias("host"),
        pl.coalesce(_text("url", documents), pl.col("id")).alias("url"),
        _text("lang", documents).alias("lang"),
        _list("type", documents).alias("type"),
        document_times(documents).alias("date"),
        _number("boost", documents).alias("boost"),
        pl.struct(stored).struct.json_encode().alias("document"),
        pl.col(VECTORS_FIELD)
        if VECTORS_FIELD in there
        else pl.lit(None, pl.Binary).alias(VECTORS_FIELD),
    )
    return _cut_long_texts(rows.with_columns(_hosts(rows)))


def restored_rows(stored: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Returns the SEARCHED rows of documents as an index has stored them.

    Args:
        stored: ``title``, ``content``, ``anchor``, ``document`` and vectors of each.
    """
    rows = []
    for one in stored:
        fields = json.loads(one["document"])
        date = document_date(fields)
        kind = fields.get("type")
        rows.append(
            {
                **{name: one.get(name) for name in (*_IN_FIELDS, "document", VECTORS_FIELD)},
                **{name: _join_texts(fields.get(name)) for name in ("id", "host", "url", "lang")},
                "type": kind if kind is None or isinstance(kind, list) else [str(kind)],
                "date": None if date is None else date.time,
                "boost": float(fields["boost"]) if _is_number(fields.get("boost")) else None,
            }
        )
    frame = pl.DataFrame(rows, schema=SEARCHED)
    return frame.with_columns(url=pl.coalesce("url", "id")).with_columns(_hosts(frame))


def index_terms(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds the columns that are only searched to SEARCHED rows.

    Returns:
        The rows with texts in their ``searched_form``, ``url_words``, ``lang`` (where it is not
        known, that of the text), ``analyzer`` (of this language), ``site`` (names for ``site:``),
        ``folded`` (words with accents) and ``weight``, see ``stored_weight``.
    """
    rows = _cut_long_texts(
        rows.with_columns(searched_forms(rows.get_column(name)) for name in _IN_FIELDS)
    )
    rows = rows.with_columns(_languages(rows))
    hosts = rows.get_column("host").drop_nulls().unique()
    sites = pl.Series([sites_of(host) for host in hosts], dtype=_TEXTS)
    place = rows.get_column("host").replace_strict(
        hosts, range(len(hosts)), return_dtype=pl.UInt32, default=None
    )
    empty = pl.lit("")
    texts = pl.concat_str(
        *(pl.coalesce(name, empty) for name in ("title", "content")),
        pl.coalesce(pl.col("anchor").list.join(" "), empty),
        separator=" ",
    )
    return rows.with_columns(
        pl.Series("url_words", map(url_words, rows.get_column("url")), dtype=pl.String),
        _analyzers(rows).alias("analyzer"),
        sites.gather(place).alias("site") if len(hosts) else pl.lit(None, _TEXTS).alias("site"),
        folded=accented_words(texts),
        weight=stored_weight(pl.col("boost")),
    )


def stored_weight(boost: pl.Expr) -> pl.Expr:
    """Returns what an index stores so that search multiplies scores by a factor of a boost.

    The factor of a boost b is 1 + log10(b) / 4, at most 2: LinkRank's mean of 1 gives 1, a page with
    100 times that gives 1.5. Below 1 it is 1 + log10(b) / 10, at least 0.7: there a page that only
    lists others often has twice the score of these, and must not go before them. tantivy multiplies a score by
    log2(2 + stored value), so the stored value is 4 ** factor - 2, and all scores are doubled.

    >>> pl.DataFrame({"b": [1.0, 100.0, 0.0, None]}).select(stored_weight(pl.col("b"))).to_series().to_list()
    [2.0, 6.0, 0.6390158215457884, 2.0]
    """
    return pl.lit(4.0).pow(_factor(boost)) - 2


def boost_factor(boost: Any) -> float:
    """Returns the factor by which a boost multiplies a score; 1 if it is no number.

    >>> boost_factor(100.0), boost_factor(None)
    (1.5, 1.0)
    """
    number = float(boost) if _is_number(boost) else None
    return float(pl.select(_factor(pl.lit(number, pl.Float64))).item())


def _factor(boost: pl.Expr) -> pl.Expr:
    valid_boost = pl.when(boost.is_finite() & (boost >= 0)).then(boost).otherwise(1.0)
    magnitude = valid_boost.clip(1e-9).log10()
    return (1 + magnitude / pl.when(magnitude > 0).then(4).otherwise(10)).clip(0.7, 2)


def _analyzers(rows: pl.DataFrame) -> pl.Series:
    """Returns the analyzer of each row.

    Many pages in Chinese or Japanese declare another language, which a template has. By its
    analyzer a sentence would be one term, so the text counts. A page in Latin letters whose
    language nobody knows, as a short one, is read as English, so that plurals are found.
    """
    analyzers, text = analyzers_of(rows.get_column("lang")), _titled_text()
    if rows.get_column("lang").null_count():
        start = text.str.head(_READ_CHARS)
        latin = start.str.count_matches(r"\p{Latin}") * 2 > start.str.count_matches(r"\p{L}")
        latin_rows = rows.select(pl.col("lang").is_null() & latin).to_series()
        analyzers = _same("en", rows).zip_with(latin_rows, analyzers)
    spaceless = text.str.count_matches(f"[{SPACELESS}]") > _LEAST_SPACELESS * text.str.len_chars()
    return _same(OTHER, rows).zip_with(rows.select(spaceless).to_series(), analyzers)


def _same(value: str, rows: pl.DataFrame) -> pl.Series:
    return pl.Series([value]).new_from_index(0, len(rows))


def _titled_text() -> pl.Expr:
    return pl.concat_str(
        *(pl.col(name).fill_null("") for name in ("title", "content")), separator=" "
    )


def _languages(rows: pl.DataFrame) -> pl.Series:
    """Returns the language of each row; where it is not known, that of the text."""
    lang = primary_languages(rows.get_column("lang"))
    unknown = lang.is_null()
    if not unknown.any():
        return lang
    texts = rows.filter(unknown).select(_titled_text().str.head(_READ_CHARS)).to_series()
    places = unknown.cum_sum().cast(pl.Int64) - 1
    return text_languages(texts).gather(places.clip(0)).zip_with(unknown, lang).alias("lang")


def _cut_long_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """Cuts texts that are too long."""
    long = pl.col("content").str.len_bytes() > MOST_CONTENT
    if not rows.select(long.any()).item():
        return rows
    cut = pl.col("content").str.slice(0, MOST_CONTENT)
    return rows.with_columns(content=pl.when(long).then(cut).otherwise("content"))


def _hosts(rows: pl.DataFrame) -> pl.Series:
    """Returns the host of each row; a row without one has that of its URL."""
    hosts = rows.get_column("host")
    if not hosts.null_count():
        return hosts
    url_hosts = pl.Series("host", map(host_of_url, rows.get_column("id")), dtype=pl.String)
    return hosts.zip_with(hosts.is_not_null(), url_hosts)


def _text(name: str, documents: pl.DataFrame) -> pl.Expr:
    kind = documents.schema.get(name)
    if kind is None:
        return pl.lit(None, pl.String)
    if isinstance(kind, pl.List):
        return pl.col(name).cast(_TEXTS).list.drop_nulls().list.join(" ")
    return pl.col(name).cast(pl.String)


def _list(name: str, documents: pl.DataFrame) -> pl.Expr:
    kind = documents.schema.get(name)
    if kind is None:
        return pl.lit(None, _TEXTS)
    if isinstance(kind, pl.List):
        return pl.col(name).cast(_TEXTS).list.drop_nulls()
    return pl.when(pl.col(name).is_not_null()).then(pl.concat_list(pl.col(name).cast(pl.String)))


def _number(name: str, documents: pl.DataFrame) -> pl.Expr:
    if name not in documents.columns or isinstance(documents.schema[name], pl.List):
        return pl.lit(None, pl.Float64)
    return pl.col(name).cast(pl.Float64, strict=False)


def _join_texts(value: Any) -> str | None:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return None if value is None else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


# Changes with the schema or its analyzers. Shards of other versions than these two are refused.
SCHEMA_VERSION = 3
TEXT_FIELDS = ("title", "content", "anchor")
_TERMS = ("id", "site", "lang", "type", "analyzer")
_COUNTED = ("site", "lang", "type")  # how many pages of a result have each value
_LONGEST_TERM = 255
_LONGEST_WORD = 40  # bytes; what is longer is no word that people type
# Scripts with marks that are no letters: the simple tokenizer would cut words at them.
_BY_PATTERN = ("ta", OTHER)


@functools.cache
def shard_format() -> str:
    """Returns the version of what shards contain: of tantivy's files, and of the schema."""
    return _format(SCHEMA_VERSION)


def former_format() -> str:
    """Returns the version of shards that had fields of their own for each language.

    Their documents are indexed again where such a shard is unpacked.
    """
    return _format(1)


def _format(schema: int) -> str:
    numbers = TANTIVY_VERSION.split(".")
    return f"tantivy {'.'.join(numbers[:2])}, schema {schema}"


@functools.cache
def shard_schema() -> Any:
    """Returns the schema of a shard."""
    builder = tantivy.SchemaBuilder()
    for name in _TERMS:
        builder.add_text_field(
            name,
            stored=name == "analyzer",
            fast=name in _COUNTED,
            tokenizer_name="raw",
            index_option="basic",
        )
    for name in ("url", "folded", "title_words"):
        builder.add_text_field(name, tokenizer_name="plain")
    builder.add_text_field("words", tokenizer_name="words", index_option="basic")
    builder.add_integer_field("date", indexed=True, fast=True)
    builder.add_float_field("weight", fast=True)
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name="terms")
        builder.add_bytes_field(f"{name}_text", stored=True)
    builder.add_bytes_field("document", stored=True)
    return builder.build()


@functools.cache
def analyzers() -> dict[str, Any]:
    """Returns the analyzers of texts by name: ``plain``, ``words``, ``terms``, one per language.

    A stemmer needs the accents of its language, so these are folded after it.
    """
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    words = words.filter(tantivy.Filter.remove_long(_LONGEST_WORD))
    by_name = {
        "plain": _analyzer(tantivy.Tokenizer.simple()),
        "words": words.filter(tantivy.Filter.lowercase()).build(),
        "terms": tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build(),
    }
    for name in ANALYZERS:
        pattern = name in _BY_PATTERN
        tokenizer = (
            tantivy.Tokenizer.regex(SPACELESS_TERM) if pattern else tantivy.Tokenizer.simple()
        )
        by_name[f"text_{name}"] = _analyzer(tokenizer, STEMMERS.get(name))
    return by_name


def _analyzer(tokenizer: Any, stemmer: str | None = None) -> Any:
    filters = tantivy.Filter
    builder = tantivy.TextAnalyzerBuilder(tokenizer)
    builder = builder.filter(filters.remove_long(_LONGEST_TERM)).filter(filters.lowercase())
    if stemmer is not None:
        builder = builder.filter(filters.stemmer(stemmer))
    return builder.filter(filters.ascii_fold()).build()


def register_analyzers(index: Any) -> None:
    """Makes the analyzers known to an open index."""
    for name, analyzer in analyzers().items():
        index.register_tokenizer(name, analyzer)


def open_index(folder: Path) -> Any:
    """Returns the index of tantivy in a folder, with its analyzers."""
    index = tantivy.Index.open(str(folder))
    register_analyzers(index)
    return index


@contextlib.contextmanager
def tantivy_errors(failure: Callable[[str], UserError]) -> Iterator[None]:
    """Re-raises errors of tantivy, also its panics, as an error for users.

    Args:
        failure: Returns the error for a reason.
    """
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise failure(first_line(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust; it is no Exception
            raise
        raise failure(first_line(error)) from error
