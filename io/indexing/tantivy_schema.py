"""The schema of a shard in tantivy, and how its texts are cut into terms.

======================  =====================================================================
field                   what
======================  =====================================================================
``id``                  URL, as one term
``url``                 words of the URL to show
``site``                host and the domains above it, each as one term
``lang``, ``type``      language code; MIME type and its parts; each as one term
``date``                ms since 1970
``weight``              factor of the boost, see ``stored_weight``
``title_L``             title, content and texts of links, by the analyzer ``L`` of the language
``content_L``
``anchor_L``
``analyzer``            the ``L`` of a document, as one term
``folded``              words with accents, without their accents
``document``            all fields but title, content and anchor, as JSON; only stored
======================  =====================================================================
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from ...web.base.errors import UsageError, UserError
from ...web.content.search_languages import ANALYZERS, OTHER, SPACELESS_TERM, STEMMERS
from ..storage.file_errors import first_line

# Changes with the schema or its analyzers. Shards of another version are refused: index --full.
SCHEMA_VERSION = 1
TEXT_FIELDS = ("title", "content", "anchor")
_TERMS = ("id", "site", "lang", "type", "analyzer")
_LONGEST_TERM = 255
# Scripts with marks that are no letters: the simple tokenizer would cut words at them.
_BY_PATTERN = ("ta", OTHER)


@functools.cache
def tantivy() -> Any:
    """Returns the package.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import tantivy as package
    except ModuleNotFoundError as error:
        raise UsageError(
            "the index needs tantivy, which is part of an installation: install nutbeam again"
        ) from error
    return package


@functools.cache
def version() -> str:
    """Returns the version of what shards contain: of tantivy's files, and of the schema."""
    numbers = str(tantivy().__version__).split(".")
    return f"tantivy {'.'.join(numbers[:2])}, schema {SCHEMA_VERSION}"


@functools.cache
def shard_schema() -> Any:
    """Returns the schema of a shard."""
    builder = tantivy().SchemaBuilder()
    for name in _TERMS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("url", "folded"):
        builder.add_text_field(name, tokenizer_name="plain")
    builder.add_integer_field("date", indexed=True, fast=True)
    builder.add_float_field("weight", fast=True)
    for analyzer in ANALYZERS:
        for name in TEXT_FIELDS:
            builder.add_text_field(
                f"{name}_{analyzer}", stored=True, tokenizer_name=f"text_{analyzer}"
            )
    builder.add_bytes_field("document", stored=True)
    return builder.build()


@functools.cache
def analyzers() -> dict[str, Any]:
    """Returns the analyzers of texts by name: ``plain`` and one per language.

    A stemmer needs the accents of its language, so these are folded after it.
    """
    by_name = {"plain": _analyzer(tantivy().Tokenizer.simple())}
    for name in ANALYZERS:
        pattern = name in _BY_PATTERN
        tokenizer = (
            tantivy().Tokenizer.regex(SPACELESS_TERM) if pattern else tantivy().Tokenizer.simple()
        )
        by_name[f"text_{name}"] = _analyzer(tokenizer, STEMMERS.get(name))
    return by_name


def _analyzer(tokenizer: Any, stemmer: str | None = None) -> Any:
    filters = tantivy().Filter
    builder = tantivy().TextAnalyzerBuilder(tokenizer)
    builder = builder.filter(filters.remove_long(_LONGEST_TERM)).filter(filters.lowercase())
    if stemmer is not None:
        builder = builder.filter(filters.stemmer(stemmer))
    return builder.filter(filters.ascii_fold()).build()


def register_analyzers(index: Any) -> None:
    """Makes the analyzers known to an open index."""
    for name, analyzer in analyzers().items():
        index.register_tokenizer(name, analyzer)


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
