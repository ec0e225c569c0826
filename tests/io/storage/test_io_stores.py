"""What files promise holds on disk, on Cloud Storage, on S3 and on HDFS alike."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from frames import frame_of
from free_ports import free_port
from stores_here import HADOOP, PROXIED, everywhere

from nutbeam.io.batches.batches import put_aside, remove_aside, take_up
from nutbeam.io.batches.seeds import sources
from nutbeam.io.storage.files import (
    create_exclusive,
    creating,
    list_files,
    names,
    overwrite_bytes,
    read_bytes,
    read_if_there,
    remove_file,
    size_of,
    store_time,
    write_bytes,
)
from nutbeam.io.storage.store_clients import store_client_of
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import below as name_below
from nutbeam.policy.components.schema import OUTCOME
from nutbeam.web.base.errors import Unavailable, UsageError, UserError


def below(root):
    """Returns the names of all files below a place, however deep."""
    found = []
    for name in names(root):
        try:
            inner = below(root / name)
        except UserError:  # it is a file
            inner = []
        found += [f"{name}/{deeper}" for deeper in inner] or [name]
    return found


@everywhere
def test_bytes_come_back(root):
    path = root / "deep" / "file"
    assert read_if_there(path) is None
    with pytest.raises(UserError, match=r"^data file is missing: .*/deep/file$"):
        read_bytes(path)
    write_bytes(path, b"\x00data")
    assert read_bytes(path) == read_if_there(path) == b"\x00data"
    assert size_of(path) == 5
    assert names(path.parent) == ["file"]
    assert names(root) == ["deep"]
    assert names(root / "none") == []


@everywhere
@pytest.mark.parametrize("data", [b"", b"line\n" * 500_000])
def test_streams_come_back(root, data):
    with creating(root / "x" / "part") as file:
        for at in range(0, len(data), 1_000_000):
            file.write(data[at : at + 1_000_000])
    with (root / "x" / "part").open_for_reading() as file:
        assert b"".join(iter(lambda: file.read(1 << 20), b"")) == data


@everywhere
def test_a_replaced_file_has_another_version(root):
    assert (root / "x" / "beat").version() is None
    write_bytes(root / "x" / "beat", b"1")
    before = (root / "x" / "beat").version()
    overwrite_bytes(root / "x" / "beat", b"2")
    assert read_bytes(root / "x" / "beat") == b"2"
    assert None is not (root / "x" / "beat").version() != before
    assert names(root / "x") == ["beat"]


@everywhere
def test_a_tree_is_removed(root):
    for name in ("a", "b"):
        write_bytes(root / "tree" / name / "file", b"x")
    write_bytes(root / "tree2" / "file", b"x")
    (root / "tree").remove_tree()
    (root / "none").remove_tree()
    assert below(root) == ["tree2/file"]


@everywhere
def test_files_have_ages_by_the_stores_clock(root):
    before = int(store_time(root / "manifest"))
    for name in ("a", "x/b", "x/y/c"):
        write_bytes(root / "tree" / name, b"xyz")
    write_bytes(root / "tree2" / "file", b"x")
    after = store_time(root / "manifest") + 1
    found = {file.path: file.changed for file in list_files(root / "tree")}
    assert sorted(name_below(root, path) for path in found) == [
        "tree/a", "tree/x/b", "tree/x/y/c",
    ]  # fmt: skip
    assert all(before <= written <= after for written in found.values())
    assert list(list_files(root / "none")) == []
    assert names(root / "manifest") == []

    assert remove_file(root / "tree" / "a") == 3
    assert remove_file(root / "tree" / "a") == 0
    (root / "tree").remove_empty_folders()
    assert below(root / "tree") == ["x/b", "x/y/c"]
    assert [remove_file(root / "tree" / name) for name in ("x/b", "x/y/c")] == [3, 3]
    (root / "tree").remove_empty_folders()
    (root / "none").remove_empty_folders()
    assert "tree" not in names(root)


@everywhere
def test_rows_that_are_put_aside_are_read_back_and_removed(root):
    rows = frame_of(OUTCOME, {"key": "a"}, {"key": "b", "status": 3})
    path = put_aside(root, "1-x", rows)
    assert take_up(root, path).equals(rows)
    remove_aside(root, "1-x")
    assert names(root / "batches" / "1-x" / "aside") == []


@pytest.mark.few(2)
@PROXIED
@pytest.mark.parametrize(
    ("code", "word"),
    [(403, "permission denied"), (401, "permission denied"), (400, "slow down|400|Bad")],
)
def test_a_store_that_refuses(proxied, code, word):
    proxy, root = proxied
    proxy.every, proxy.code = 1, code
    with pytest.raises(UsageError, match=word) as caught:
        open_table(str(root)).check_place()
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"^cannot write .*/x: "):
        create_exclusive(root / "x", b"")


@pytest.mark.long
@pytest.mark.few(1)
@PROXIED
def test_a_store_that_is_busy_now_and_then(proxied):
    proxy, root = proxied
    proxy.every = 3
    for number in range(5):
        assert create_exclusive(root / f"{number}", b"x")
        assert read_bytes(root / f"{number}") == b"x"
    assert len(names(root)) == 5
    assert proxy.refused > 3


def test_a_name_node_that_does_not_answer():
    port = free_port()
    table = f"hdfs://127.0.0.1:{port}/table"
    # Not bad usage: a scheduler may try again.
    with pytest.raises(Unavailable) as caught:
        open_table(table).check_place()
    assert str(caught.value) == (
        f"cannot read table {table!r}: HDFS at '127.0.0.1:{port}' cannot be reached (connection "
        "refused): name the host and the HTTP port of its name node (9870, unless it was "
        "set; not 8020)"
    )
    with pytest.raises(Unavailable, match=rf"^cannot read seeds '{table}': HDFS at .* refused"):
        sources([table])


def test_an_unknown_name_node_is_reported():
    with pytest.raises(Unavailable, match=r"HDFS at 'no.such.host.invalid' cannot be reached \("):
        open_table("hdfs://no.such.host.invalid/table").check_place()


@pytest.mark.parametrize("address", ["hdfs", HADOOP], indirect=True)
def test_a_small_file_of_hdfs_is_written_without_an_append(root):
    client = store_client_of(root)
    sent = []
    client.session.hooks["response"].append(lambda response, **_: sent.append(response.request))
    try:
        overwrite_bytes(root / "name", b"first")
        overwrite_bytes(root / "name", b"")
    finally:
        client.session.hooks["response"].pop()
    assert [request.method for request in sent] == ["PUT"] * 4
    assert read_bytes(root / "name") == b""


class _Answering(BaseHTTPRequestHandler):
    """Answers each request as its server says: code, class of Hadoop's exception, message."""

    def do_any(self):
        code, kind, message = self.server.answer
        remote = {"RemoteException": {"exception": kind, "message": message}}
        body = json.dumps(remote).encode() if kind else message.encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_any

    def log_message(self, *_):
        pass


@pytest.fixture
def name_node():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("answer", "kind", "line"),
    [
        ((404, "", "a Hadoop IPC port"), UsageError, r"no WebHDFS answers at '127.*; not 8020\)$"),
        ((403, "AccessControlException", "Permission denied: user=dr.who, access=WRITE"), UsageError,
         r": permission denied: user=dr.who, access=WRITE: set HADOOP_USER_NAME to the user who may$"),
        ((401, "", "Negotiate"), UsageError, r"permission denied: 401 .* \(Kerberos is not supported\)$"),
        ((403, "StandbyException", "Operation category READ is not supported in state standby"),
         Unavailable, r": HDFS at '127.* is not ready: Operation .* standby$"),
        ((403, "DSQuotaExceededException", "The DiskSpace quota of /x is exceeded"), UsageError,
         r": DSQuotaExceededException: The DiskSpace quota of /x is exceeded$"),
    ],
    ids=["rpc_port", "denied", "kerberos", "standby", "quota"],
)  # fmt: skip
def test_refusals_of_a_name_node_are_one_line_with_the_reason(
    name_node, monkeypatch, answer, kind, line
):
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    name_node.answer = answer
    table = f"hdfs://127.0.0.1:{name_node.server_port}/table"
    with pytest.raises(UserError, match=line) as caught:
        open_table(table).check_place()
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
