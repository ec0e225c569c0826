"""Libraries that read PDF, side by side: what they find in a folder of files, and what it costs.

``python benchmarks/pdf.py FOLDER [LIBRARY]...`` prints a table with a row for each library that is
installed (pypdfium2, pypdf, pdfminer.six). Each file is read by a process of its own, with a limit
of ``SECONDS`` of CPU and ``BYTES`` of memory: document information, text and links of the first
``PAGES`` pages. Beside ``NAME.pdf`` there may be ``NAME.txt`` with the words it was made of, and
``NAME.links`` with its links, one a line.

long: share of all letters that stand in words of over 22 characters, of files in alphabets that put
spaces between words: where spaces are lost it is high. words: share of the known words that are
found. links: share of the known links, and how many are found in all files. CPU is of the whole
reading, by page; memory is what reading added to the process.
"""

import itertools
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

PAGES = 10
SECONDS = 120
BYTES = 4 << 30
LONG = 22
# Alphabets without spaces between words; hyphens join words, and dots in tables of contents lead on.
_WORD = re.compile(r"[^\W\d_]+")
_NO_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")

Read = tuple[dict[str, str], list[str], list[str]]


def pypdfium2(body: bytes) -> Read:
    """Reads with PDFium: (information, texts of pages, links)."""
    import ctypes

    import pypdfium2 as pdfium
    from pypdfium2 import raw

    document = pdfium.PdfDocument(body)
    texts, links = [], []
    for number in range(min(PAGES, len(document))):
        page = document[number]
        texts.append(page.get_textpage().get_text_range().replace("\ufffe", ""))
        place, link = ctypes.c_int(0), raw.FPDF_LINK()
        while raw.FPDFLink_Enumerate(page, place, link):
            action = raw.FPDFLink_GetAction(link)
            if action and raw.FPDFAction_GetType(action) == raw.PDFACTION_URI:
                size = raw.FPDFAction_GetURIPath(document, action, None, 0)
                buffer = ctypes.create_string_buffer(size)
                raw.FPDFAction_GetURIPath(document, action, buffer, size)
                links.append(buffer.value.decode("utf-8", "replace"))
    return document.get_metadata_dict(), texts, links


def pypdf(body: bytes) -> Read:
    """Reads with pypdf."""
    import io
    import logging

    from pypdf import PdfReader

    logging.disable()
    reader = PdfReader(io.BytesIO(body))
    if reader.is_encrypted:
        reader.decrypt("")
    texts, links = [], []
    for page in itertools.islice(reader.pages, PAGES):
        texts.append(page.extract_text())
        for annotation in page.annotations or ():
            action = annotation.get_object().get("/A")
            action = action.get_object() if action else {}
            if action.get("/S") == "/URI":
                links.append(str(action["/URI"]))
    return {key[1:]: str(value) for key, value in (reader.metadata or {}).items()}, texts, links


def pdfminer(body: bytes) -> Read:
    """Reads with pdfminer.six, laid out as by its own tool."""
    import io
    import logging

    from pdfminer.converter import TextConverter
    from pdfminer.layout import LAParams
    from pdfminer.pdfdocument import PDFDocument
    from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
    from pdfminer.pdfpage import PDFPage
    from pdfminer.pdfparser import PDFParser
    from pdfminer.pdftypes import resolve1

    logging.disable()
    document = PDFDocument(PDFParser(io.BytesIO(body)))
    resources, texts, links = PDFResourceManager(), [], []
    for page in itertools.islice(PDFPage.create_pages(document), PAGES):
        out = io.StringIO()
        PDFPageInterpreter(
            resources, TextConverter(resources, out, laparams=LAParams())
        ).process_page(page)
        texts.append(out.getvalue())
        for annotation in resolve1(page.annots) or ():
            action = resolve1((resolve1(annotation) or {}).get("A")) or {}
            if uri := resolve1(action.get("URI")):
                links.append(uri.decode("utf-8", "replace"))
    known = document.info[0] if document.info else {}
    return {str(key): str(value) for key, value in known.items()}, texts, links


LIBRARIES: dict[str, Callable[[bytes], Read]] = {
    "pypdfium2": pypdfium2,
    "pypdf": pypdf,
    "pdfminer": pdfminer,
}


def read(library: str, path: pathlib.Path) -> dict[str, Any]:
    """Reads one file in this process; returns what was found and what it cost."""
    reader, body = LIBRARIES[library], path.read_bytes()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    reader(_ONE_PAGE)  # what is done once in a process, is done
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    information, texts, links = reader(body)
    cpu = time.process_time() - start
    text = "\n".join(texts)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    lengths = [len(word) for word in _WORD.findall(text)]
    spaced = not _NO_SPACES.search(text)
    found = {"pages": len(texts), "cpu": cpu, "memory": memory, "links": len(links), "spaced": spaced,
             "letters": sum(lengths), "long": sum(n for n in lengths if n > LONG),
             "title": bool(information.get("Title"))}  # fmt: skip
    return found | _known(path, text, links)


def _known(path: pathlib.Path, text: str, links: list[str]) -> dict[str, Any]:
    """Compares with what the file was made of, where that is there."""
    if not path.with_suffix(".txt").exists():
        return {}
    # A word that a line's end divides is whole in any of them.
    words = Counter(_WORD.findall(path.with_suffix(".txt").read_text("utf-8")))
    missing = (
        words
        - Counter(_WORD.findall(re.sub("[-\u00ad\u2010]\\s+", "", text)))
        - Counter(_WORD.findall(text))
    )
    wanted = path.with_suffix(".links").read_text("utf-8").split()
    return {"words": words.total(), "words_found": words.total() - missing.total(),
            "wanted": len(wanted), "wanted_found": len({*wanted} & {*links})}  # fmt: skip


_ONE_PAGE = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Count 1/Kids[3 0 R]>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj
xref
0 4
0000000000 65535 f 
0000000009 00000 n 
0000000052 00000 n 
0000000101 00000 n 
trailer<</Root 1 0 R/Size 4>>
startxref
160
%%EOF"""


def main(folder: str, *libraries: str) -> None:
    """Reads all files with each library, and prints the table."""
    paths = sorted(pathlib.Path(folder).glob("*.pdf"))
    found: dict[str, dict[str, Any]] = {}
    for library in libraries or LIBRARIES:
        found[library] = {path.stem: _in_child(library, path) for path in paths}
    print(f"{len(paths)} files\n")
    print("| library | unread | long | words | links | CPU/page, median | worst | memory, worst |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for library, files in found.items():
        print(_row(library, [file for file in files.values() if "cpu" in file], len(files)))
    for library, files in found.items():
        for name, file in files.items():
            if "cpu" not in file:
                print(f"{library}: {name}: {file['error']}")
    (pathlib.Path(folder) / "found.json").write_text(json.dumps(found, indent=1))


def _in_child(library: str, path: pathlib.Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--read", library, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    return {
        "error": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:150]
    }


def _row(library: str, files: list[dict[str, Any]], all_files: int) -> str:
    def share(part: str, whole: str, of: list[dict[str, Any]]) -> str:
        return f"{sum(f.get(part, 0) for f in of) / max(1, sum(f.get(whole, 0) for f in of)):.2%}"

    per_page = [f["cpu"] / max(1, f["pages"]) * 1000 for f in files]
    cells = [
        library,
        str(all_files - len(files)),
        share("long", "letters", [f for f in files if f["spaced"]]),
        share("words_found", "words", files),
        f"{share('wanted_found', 'wanted', files)}, {sum(f['links'] for f in files):,}",
        f"{statistics.median(per_page):.1f} ms",
        f"{max(per_page):.0f} ms",
        f"{max(f['memory'] for f in files) / 1024:.0f} MB",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        print(json.dumps(read(sys.argv[2], pathlib.Path(sys.argv[3]))))
    else:
        main(*sys.argv[1:])
