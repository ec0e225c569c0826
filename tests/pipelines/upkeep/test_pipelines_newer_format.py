"""A table of a newer format: each command says so in one line, and changes nothing."""

import dataclasses
import json
import re
import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import pytest
from crawling import kept_cells, nutbeam, rows_of, tree
from web_tables import InBigtable, newest

from nutbeam.io.table.bigtable_web_table import BigtableWebTable
from nutbeam.io.table.folder_table import manifest_path
from nutbeam.io.table.opening import open_table
from nutbeam.pipelines.command_line.commands import COMMANDS

AGENT = ("--agent_name", "tests", "--agent_email", "tests@example.org")
# What each command is given besides the table; None is one that opens no table.
WORDS = {
    "crawl": AGENT,
    "inject": ("http://c.example.com/",),
    "generate": (),
    "freegen": None,  # its list comes first
    "import_warc": None,  # it reads its files first
    "import_nutch": None,  # it reads its files first
    "fetch": AGENT,
    "parse": (),
    "updatedb": (),
    "invertlinks": (),
    "dedup": (),
    "round": AGENT,
    "next": AGENT,
    "sitemap": AGENT,
    "readdb": (),
    "domainstats": (),
    "protocolstats": (),
    "crawlcomplete": (),
    "readhostdb": (),
    "updatehostdb": (),
    "hostinject": None,  # it reads its file first
    "readlinkdb": ("--dump", "-"),
    "mergelinkdb": ("OTHER",),
    "mergedb": ("OTHER",),
    "batches": None,  # its verb comes first
    "mergesegs": None,  # it reads the batches first
    "webgraph": (),
    "linkrank": (),
    "scoreupdater": (),
    "nodedumper": (),
    "graphfiles": ("-o", "TO"),
    "pages": (),
    "report": (),
    "extract": None,  # it reads its rules first
    "export": (),
    "export_nutch": ("TO",),
    "readseg": ("--list_batches",),
    "dump": ("--output_dir", "TO"),
    "commoncrawldump": ("--output_dir", "TO"),
    "warc": ("TO",),
    "replay": (),
    "files": ("state",),
    "sql": ("select 1",),
    "history": (),
    "status": (),
    "console": (),
    "filterdb": (),
    "index": (),
    "clean": (),
    "search": ("word",),
    "mcp": (),
    "solrindex": ("--writer_parameters", "url=http://localhost:1/solr/c"),
    "solrclean": ("--writer_parameters", "url=http://localhost:1/solr/c"),
    "solrdedup": None,  # it reads the server
    "compact": (),
    "copy": ("TO",),
    "rollback": ("--to", "1"),
    "fsck": (),
    "doctor": (),
    "estimate": (),
    "purge": ("--host", "a.example.com"),
    "table": ("describe",),
    "filterchecker": None,
    "normalizerchecker": None,
    "plugin": None,
    "robotsparser": None,
    "parsechecker": None,
    "extractchecker": None,
    "indexchecker": None,
    "explain": ("http://a.example.com/",),
    "simweb": None,
    "completion": None,
    "config": None,
    "showproperties": None,
}
# Commands that have nothing for tables of a back end, and say that instead.
NOT_HERE: dict[tuple[str, str], str] = {}


def test_all_commands_take_part():
    assert set(WORDS) == set(COMMANDS)


@dataclasses.dataclass
class Table:
    """A table that a later version has written, and all that is in it."""

    address: str
    kind: str
    look: Callable[[], Mapping]


RECORD = {"format": 99, "written_by": "99.1", "components": [1], "digest": "0"}


def made(backend):
    """Makes a table, which nobody has looked at so far."""
    address = backend.fresh()
    assert nutbeam("inject", address, "http://a.example.com/", "http://b.example.com/") == 0
    assert nutbeam("generate", address) == 0
    table = open_table(address)
    files = table.files
    log = table.log if isinstance(table, BigtableWebTable) else None
    cells = (lambda: kept_cells(SimpleNamespace(log=log))) if log else dict
    return Table(address, "bigtable" if log else "folder", lambda: tree(files, ignore=()) | cells())


@pytest.fixture(scope="module")
def newer(backend):
    """A table whose newest manifest is of a later version."""
    table = made(backend)
    web_table, number, data = (
        open_table(table.address),
        newest(table.address),
        json.dumps(RECORD).encode(),
    )
    if table.kind == "folder":
        manifest_path(web_table, number).write_bytes(data)
    else:
        web_table.log.rows.put(b"\0snapshot/%08d" % number, {b"record": data}, number)
    yield table
    backend.remove(table.address)


@pytest.fixture(scope="module")
def newer_as_a_whole(bigtable, tmp_path_factory):
    """A table in Bigtable whose manifest row is of a later version."""
    table = made(InBigtable(tmp_path_factory, bigtable))
    log = open_table(table.address).log
    log.rows.put(b"\0manifest", {b"commit": json.dumps(RECORD).encode()}, newest(table.address))
    return table


OPENING = [name for name, words in WORDS.items() if words is not None]


@pytest.mark.long
@pytest.mark.folder_first
@pytest.mark.parametrize("command", OPENING)
def test_a_newer_manifest(newer, command, tmp_path, capsys):
    # Who looks at the past shows what can be read, too.
    elsewhere = NOT_HERE.get((newer.kind, command), "")
    code = 2 if elsewhere else 0 if command == "history" else 3
    refused(newer, command, tmp_path, capsys, code, elsewhere)


SHORT = ("copy", "fsck", "generate", "table")


@pytest.mark.bigtable
@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=() if c in SHORT else pytest.mark.long) for c in OPENING]
)
def test_a_newer_table_in_bigtable(newer_as_a_whole, command, tmp_path, capsys):
    refused(newer_as_a_whole, command, tmp_path, capsys)


def refused(table, command, tmp_path, capsys, code=3, elsewhere=""):
    to = tmp_path / "to"
    other = tmp_path / "other"
    if "OTHER" in WORDS[command]:
        assert nutbeam("inject", other, "http://d.example.com/") == 0
    words = [{"TO": str(to), "OTHER": str(other)}.get(word, word) for word in WORDS[command]]
    words = [*words, table.address] if command == "table" else [table.address, *words]
    before = table.look()
    forget_settings()
    capsys.readouterr()
    assert nutbeam(command, *words) == code
    out, err = capsys.readouterr()
    wanted = elsewhere or "format 99, this version reads up to"
    (said,) = [line for line in (out + err).splitlines() if wanted in line]
    assert elsewhere or "upgrade nutbeam to 99.1 or newer" in said
    assert len(re.findall("(?m)^nutbeam ", err)) == (0 if said in out else 1)
    assert "Traceback" not in err
    assert "--repair" not in out  # nothing that a newer version must do
    assert "harmless" not in out
    assert table.look() == before
    assert not to.exists()


def forget_settings():
    """Forgets what this process knows of tables in Bigtable, as a new one would know nothing."""
    module = sys.modules.get("nutbeam.io.bigtable.snapshot_log")
    if module is not None:
        module.settings_of_table.cache_clear()


LATER = b"\x80\0\0\0\0\0\0\0\x05a layout to come"


@pytest.mark.bigtable
def test_a_newer_row_is_not_copied(bigtable, tmp_path_factory, tmp_path, capsys):
    from bigtable_damage import put  # late: Google's libraries take a second

    table = made(InBigtable(tmp_path_factory, bigtable))
    put(table.address, rows_of(table.address, "state")["key"][0], LATER, newest(table.address))
    before = table.look()
    capsys.readouterr()
    assert nutbeam("copy", table.address, tmp_path / "to") == 3
    assert "upgrade nutbeam" in capsys.readouterr().err
    assert table.look() == before
    assert not (tmp_path / "to" / "manifest").exists()
