"""PDF, by pypdf: the extra ``nutbeam[pdf]``."""

import contextlib
import functools
import io
import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .collected import Collected
from .options import ParseOptions
from .page import NoParser, Page, ParseFailed, Source
from .xml_events import Enough

if TYPE_CHECKING:
    from pypdf import PdfReader

# Of one stream, unpacked; and how many operands and operators it may have: 5 s.
_MAX_STREAM_BYTES = 16 << 20
_MAX_OPERATIONS = 500_000
_MAX_TREE_PAGES = 20_000
_MAX_PAGE_LINKS = 10_000
_MISSING = "PDF is read by pypdf, which comes with the extra nutbeam[pdf]: pip install nutbeam[pdf]"
_METAS = {"/Author": "author", "/Keywords": "keywords", "/Subject": "description"}


def parse_pdf(source: Source, options: ParseOptions) -> Page:
    """Parses PDF: title and the like of its information, text of its pages, links out of it.

    Of a long one the first pages are taken: ``pdf_max_pages``, and no more than half of
    ``parser_timeout`` allows.

    Raises:
        NoParser: ``no_pypdf``: it is not installed.
        ParseFailed: ``encrypted`` (with a password that is not empty), ``malformed``,
            ``too_complex`` (a stream of over 16 MiB, unpacked, and the like).
    """
    collected = Collected(source, options)
    with _limits():
        reader = _open(source.body)
        end = time.monotonic() + options.parser_timeout / 2
        with contextlib.suppress(Enough):
            _read(reader, collected, options.pdf_max_pages, end)
    return collected.done()


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    try:
        from pypdf import apply_configuration, errors, get_configuration
    except ImportError:
        raise NoParser("no_pypdf") from ModuleNotFoundError(_MISSING)
    # What it says of pages is not for this process' log.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        limits = get_configuration().with_overwrites(
            **dict.fromkeys(_SIZES, _MAX_STREAM_BYTES),
            stream_parsing_work_maximum_count=_MAX_OPERATIONS,
            page_tree_maximum_entries=_MAX_TREE_PAGES,
            jbig2dec_binary=None,
            disable_legacy_handling=True,
        )
        with apply_configuration(limits):
            yield
    except (ParseFailed, MemoryError):
        raise
    except (
        errors.WrongPasswordError,
        errors.FileNotDecryptedError,
        errors.DependencyError,
    ) as error:
        raise ParseFailed("encrypted") from error
    except (errors.LimitReachedError, RecursionError) as error:
        raise ParseFailed("too_complex") from error
    except errors.PyPdfError as error:
        raise ParseFailed("malformed") from error
    except Exception as error:  # noqa: BLE001 - it may raise anything
        said = ValueError(f"damaged in a way that pypdf does not foresee ({type(error).__name__})")
        raise ParseFailed("malformed") from said


_SIZES = (
    "maximum_declared_stream_length",
    "array_based_stream_maximum_output_length",
    "lzw_maximum_output_length",
    "run_length_maximum_output_length",
    "zlib_maximum_output_length",
    "brotli_maximum_output_length",
)


def _open(body: bytes) -> "PdfReader":
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(body), root_object_recovery_limit=1_000)
    if reader.is_encrypted and not reader.decrypt(""):
        raise ParseFailed("encrypted")
    return reader


def _read(reader: "PdfReader", collected: Collected, max_pages: int, end: float) -> None:
    _read_information(reader, collected)
    failed: Exception | None = None
    good = False
    for number, page in enumerate(reader.pages):
        if 0 <= max_pages <= number:
            return collected.cut("pages")
        if number and time.monotonic() > end:
            return collected.cut("time")
        try:
            _take_links(page, collected)
            text = page.extract_text()
            good = True
        except _fatal():
            raise
        except Exception as error:  # noqa: BLE001 - other pages may be good
            failed = failed or error
            continue
        collected.add(text + " ")
    if failed is not None and not good:
        raise failed


@functools.cache
def _fatal() -> tuple[type[Exception], ...]:
    from pypdf.errors import LimitReachedError

    return LimitReachedError, MemoryError, RecursionError


def _read_information(reader: "PdfReader", collected: Collected) -> None:
    information = _mapping(reader.metadata)
    collected.title(_text(information.get("/Title")))
    for name, meta in _METAS.items():
        collected.meta(meta, _text(information.get(name)))
    root = reader.root_object
    collected.language(_text(_resolved(root.get("/Lang"))))
    # PDF 32000-1 12.6.4.7: what links are relative to.
    base = _text(_mapping(root.get("/URI")).get("/Base"))
    if base:
        from ..urls import parse

        collected.page.base = parse(base, collected.page.base) or collected.page.base


def _take_links(page: Any, collected: Collected) -> None:
    annotations = _resolved(page.get("/Annots"))
    if not isinstance(annotations, list):
        return
    for annotation in annotations[:_MAX_PAGE_LINKS]:
        action = _mapping(_mapping(annotation).get("/A"))
        if action.get("/S") == "/URI":
            collected.link(_text(_resolved(action.get("/URI"))))


def _resolved(thing: Any) -> Any:
    """Returns the object that an indirect one stands for."""
    return thing.get_object() if hasattr(thing, "get_object") else thing


def _mapping(thing: Any) -> dict[str, Any]:
    found = _resolved(thing)
    return found if isinstance(found, dict) else {}


def _text(thing: Any) -> str:
    thing = _resolved(thing)
    if isinstance(thing, bytes):
        return thing.decode("utf-8", "replace")
    # Half of a surrogate pair is in no UTF-8.
    return str(thing).encode("utf-8", "replace").decode() if isinstance(thing, str) else ""
