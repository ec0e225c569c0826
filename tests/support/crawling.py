"""What the tests of the pipelines share: the command in this process, and tables as frames."""

import hashlib
import json
from collections import Counter, deque
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
from bs4 import BeautifulSoup
from running import BEAM_ARGS

from nutbeam.io.batches.batches import live_file
from nutbeam.io.bigtable.cell_layout import OWN_FAMILY
from nutbeam.io.bigtable.request_parts import VERSIONS
from nutbeam.io.snapshots.manifest import load_manifest
from nutbeam.io.storage.files import read_bytes
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.io.table.bigtable_web_table import BigtableWebTable
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.pipelines.command_line.cli import main
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.pipelines.views.reader import read
from nutbeam.policy.components.kinds import KINDS, SEED_HOSTS
from nutbeam.policy.components.schema import STATUS_NAMES, empty
from nutbeam.web.urls.row_keys import from_key, parse_url

# What two crawls of the same web need not have in common: the time, the batch or the attempt decide.
VOLATILE = (
    *("fetch_time", "last_fetch_time", "modified_time", "response_ms", "last_inlink_day"),
    "gone_since",
    *("batch_id", "document", "page", "slot", "headers", "request", "ip"),
    *("robots_time", "last_request_time", "requests", "response_times", "time"),
)


def nutbeam(*words):
    """Runs one command in this process, without progress; returns its exit code.

    Its pipeline runs on the runner under test, unless the words say where.
    """
    words = [*map(str, words), "--progress", "false"]
    chosen = any(word.startswith(("--runner", "--direct_")) for word in words)
    command = COMMANDS.get(words[0])
    return main(words if chosen or command is None or not command.beam else [*words, *BEAM_ARGS])


def reach(web):
    """Returns the options with which a simulated web is crawled, politely but at once."""
    connect_to = [word for each in web.connect_to for word in ("--connect_to", each)]
    return [*connect_to, "--server_delay", "0"]


def crawl(table, web, *words):
    """Crawls a simulated web until nothing is due; returns the exit code."""
    return nutbeam("crawl", table, *words, "--rounds", "-1", *reach(web))


def open_batches(table, web, top_n):
    """Makes three batches: one is parsed, one fetched, one generated."""
    for last in range(3, 0, -1):
        assert nutbeam("generate", table, "--top_n", top_n) == 0
        for job in ("fetch", "parse")[: last - 1]:
            assert nutbeam(job, table, *(reach(web) if job == "fetch" else [])) == 0


def in_each_phase(table, web, *before):
    """Makes a table with several tablets, runs, and a batch in each phase.

    The commands in ``before`` run before the batches are made.
    """
    with replaced_sizes(tablet_rows=8):
        assert nutbeam("crawl", table, *web.seeds, "--rounds", "2", *reach(web)) == 0
        for words in before:
            assert nutbeam(*words) == 0
        open_batches(table, web, 2)
    return table


def manifest_of(address):
    """Returns the newest snapshot."""
    table = open_table(str(address))
    return load_manifest(table, table.latest_snapshot())


def latest_snapshot(table):
    """Returns the number of the newest snapshot."""
    return open_table(str(table)).latest_snapshot()


def manifest_at(table, snapshot):
    """Returns a snapshot."""
    return load_manifest(open_table(str(table)), snapshot)


def manifests_of(address):
    """Returns all snapshots, oldest first."""
    table = open_table(str(address))
    return [load_manifest(table, number) for number in range(1, table.latest_snapshot() + 1)]


def links_of(address):
    """Returns the links of the newest document of each page: URL and key of both ends, anchor, rel."""
    table, manifest, found = open_table(str(address)), manifest_of(address), []
    for key, document in rows_of(address, "state").select("key", "document").iter_rows():
        file = live_file(table, manifest, document) if document else None
        if file is not None:
            frame = pl.read_parquet(read_bytes(table / file.path)).filter(pl.col("key") == key)
            for link in (frame["outlinks"].to_list()[0] or ()) if len(frame) else ():
                target = link["key"]
                found.append(
                    (from_key(key), key, from_key(target), target, link["anchor"], link["rel"])
                )
    return found


def files_of(address, component):
    """Returns the places of a component's live files."""
    table = open_table(str(address))
    return [
        table / f.path for f in load_files(table, manifest_of(address).components.get(component))
    ]


def plain_rows(address, files):
    """Returns the rows of a component's files in key order, as plain polars reads them.

    Of several rows of a key the newest run's counts, and a base's if there is none.
    """
    parts = [
        pl.read_parquet(read_bytes(open_table(str(address)) / file.path)).with_columns(
            _age=pl.lit(file.order if file.base else 0)
        )
        for file in files
    ]
    assert [len(part) for part in parts] == [file.rows for file in files]
    bases = pl.concat([p for p, file in zip(parts, files, strict=True) if file.base is None])
    assert bases["key"].is_unique().all()
    rows = pl.concat(parts, how="diagonal").sort("key", "_age")
    rows = rows.unique("key", keep="last", maintain_order=True)
    assert len(rows) == sum(file.live_rows for file in files)
    return rows.select(bases.drop("_age").columns)


def rows_of(address, name):
    """Returns the rows of a component in key order."""
    table = open_table(str(address))
    if not table.in_files(name):
        return received(table, name, table.latest_snapshot())
    files = load_files(table, manifest_of(address).components.get(name))
    assert len({file.path for file in files}) == len(files)
    return plain_rows(address, files)


def received(table, name, snapshot):
    """Returns the rows of a snapshot of a table in Bigtable in one scan, whatever its tablets are."""
    from nutbeam.io.bigtable.cell_layout import cell_kind
    from nutbeam.io.bigtable.cells import decode
    from nutbeam.io.bigtable.key_ranges import KeyRange

    cells = table.log.table.scan(cell_kind(name), KeyRange(None, None), snapshot)
    parts = [pl.DataFrame(pl.from_arrow(decode(some, cell_kind(name)))) for some in cells]
    return pl.concat(parts) if parts else empty(KINDS[name].schema)


def state_of(table):
    """Returns the whole state, with ``url`` in front."""
    component = manifest_of(table).components.get("state")
    rows = rows_of(table, "state")
    assert component is None or component.rows == len(rows)
    urls = pl.Series("url", [from_key(key) for key in rows["key"]], dtype=pl.String)
    return rows.select(urls, pl.all())


def contents(table):
    """Returns all rows of each component in key order, without what two crawls may differ in.

    Batches are called by number, in the order in which they were made. No file
    may be named twice, and no row be there twice.
    """
    manifest, found = manifest_of(table), {}
    made = sorted(manifest.batches, key=lambda name: manifest.batches[name].created)
    number = {name: str(at) for at, name in enumerate(made, 1)}
    # Of these, one says nothing of its own, and the other is no rows but differences.
    for name in manifest.components.keys() - {SEED_HOSTS, "host_counts"}:
        rows = rows_of(table, name)
        kept = [column for column in rows.columns if column not in VOLATILE]
        name = "/".join(number.get(part, part) for part in name.split("/"))
        found[name] = rows.select(kept).sort("key")
    return found


def done_in(table):
    """Returns job and counts of each operation but those that generated nothing.

    Whether a last one is begun depends on what zone maps know.
    """
    made = [(manifest.job, manifest.counts) for manifest in manifests_of(table)]
    return [(job, counts) for job, counts in made if job != "generate" or counts]


def assert_same(found, right):
    """Asserts that two tables have the same contents."""
    assert not found.keys() ^ right.keys(), found.keys() ^ right.keys()
    for name, rows in found.items():
        assert rows.equals(right[name]), f"{name}: {differences(rows, right[name])}"


def differences(found, right):
    """Returns up to five keys of each column in which two frames differ, with both values."""
    keys, others = (frame.get_column("key").to_list() for frame in (found, right))
    if keys != others:
        return f"{len(keys)} and {len(others)} keys, such as {keys[:3]} and {others[:3]}"
    pairs = {
        name: [
            (key, one, other)
            for key, one, other in zip(found["key"], found[name], right[name], strict=True)
            if str(one) != str(other)
        ][:5]
        for name in found.columns
    }
    return {name: some for name, some in pairs.items() if some}


def assert_same_frames(table, right):
    """Asserts that ``nutbeam.read`` gives the same of a table and of the one that it is a copy of."""
    for what in ("state", "hosts", "pages", "outlinks", "batch_pages"):
        found, wanted = (read(each, what) for each in (table, right))
        order = {"hosts": ["host"], "outlinks": ["url", "target_url", "anchor"]}.get(what, ["url"])
        assert found.height > 0, what
        assert found.sort(order).equals(wanted.sort(order)), what


def statuses_of(table):
    """Returns the name of each URL's status."""
    rows = state_of(table).select("url", "status").rows()
    return {url: STATUS_NAMES[status] for url, status in rows}


def right_statuses(site):
    """Returns the statuses that each reachable URL may have after a whole crawl."""
    copies = {url for urls in site.duplicates() for url in urls}
    right = {}
    for url, kind in site.reachable().items():
        if kind == "redirect":
            code = answer(site, url).status
            right[url] = {"db_redir_perm" if code == 301 else "db_redir_temp"}
        elif kind == "page":
            right[url] = {"db_fetched", "db_duplicate"} if url in copies else {"db_fetched"}
        else:
            right[url] = {"db_gone"}
    return right


def assert_whole(table, site):
    """Asserts that a table holds just what there is on a site, each copy but once."""
    found, right = statuses_of(table), right_statuses(site)
    assert found.keys() == right.keys()
    assert {u: s for u, s in found.items() if s not in right[u]} == {}
    for urls in site.duplicates():
        assert sum(found[url] == "db_fetched" for url in urls) == 1, urls


def answer(site, url):
    """Returns what a site says to GET of a URL."""
    parts = urlsplit(url)
    return site.answer(parts.netloc, parts.path + (f"?{parts.query}" if parts.query else ""))


def distances(site, seeds):
    """Returns how many links each URL is away from the seeds; redirects count nothing."""
    kinds = site.reachable(seeds)
    found = dict.fromkeys(seeds, 0)
    waiting = deque(seeds)
    while waiting:
        url = waiting.popleft()
        for target, cost in _targets(site, url, kinds[url]):
            if target in kinds and found[url] + cost < found.get(target, 1 << 30):
                found[target] = found[url] + cost
                waiting.append(target)
    return found


def _targets(site, url, kind):
    got = answer(site, url)
    if kind == "redirect":
        return [(dict(got.headers)["Location"], 0)]
    if kind != "page":
        return []
    soup = BeautifulSoup(got.body, "html.parser")
    robots = soup.find("meta", attrs={"name": "robots"})
    if robots is not None and "nofollow" in robots["content"]:
        return []
    base = soup.find("base")
    start = parse_url(base["href"], url) if base is not None else url
    return [
        ((parse_url(link["href"], start) or "").partition("#")[0], 1)
        for link in soup.find_all("a", href=True)
        if "nofollow" not in (link.get("rel") or [])
    ]


def asked(web):
    """Returns the URLs that the server was asked for, robots.txt aside, in order."""
    requests = web.requests()
    return [f"http://{r.host}{r.path}" for r in requests if r.path != "/robots.txt"]


def place_in(table, name):
    """Returns the place of a file or folder of a table."""
    return open_table(str(table)).files / name


def tree(folder, *, ignore=("operations",)):
    """Returns a digest of each file below a folder, by relative path; of a table all its rows, too."""
    table = open_table(str(folder))
    if isinstance(table, BigtableWebTable):
        rows = {f"row {name!r}": _digest(cell) for name, cell in kept_cells(table).items()}
        return tree(table.files, ignore=ignore) | rows
    root = Path(folder)
    return {
        str(path.relative_to(root)): _digest(path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in ignore
    }


def _digest(data):
    return hashlib.sha256(data).hexdigest()


def cells_of(table):
    """Returns all cells of a table in Bigtable by row, family, column and time, versions too."""
    from google.cloud.bigtable_v2 import types

    rows = table.log.table
    request = types.ReadRowsRequest(table_name=rows.address.name)
    found = {}
    key = family = column = b""
    for reply in rows.client.read_rows(request=request):
        for chunk in types.ReadRowsResponse.pb(reply).chunks:
            key = chunk.row_key or key
            family = chunk.family_name.value if chunk.HasField("family_name") else family
            column = chunk.qualifier.value if chunk.HasField("qualifier") else column
            name = (key, family, column, chunk.timestamp_micros)
            found[name] = found.get(name, b"") + chunk.value  # a large one comes in parts
    return found


def kept_cells(table):
    """Returns the cells of a table in Bigtable without versions that it removes when it likes.

    Those are all but the newest few. The emulator begins to remove them every second when column
    families of any of its tables are changed.
    """
    kept, seen = {}, Counter()
    for name, value in cells_of(table).items():  # the newest version of a cell is first
        seen[name[:3]] += 1
        if seen[name[:3]] <= (1 if name[1] == OWN_FAMILY else VERSIONS):
            kept[name] = value
    return kept


def json_lines(text):
    """Returns the records of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]
