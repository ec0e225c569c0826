"""Bigtables of the tests' own: the SDK's emulator, a proxy that fails, a server that is told what to say."""

import functools
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from google.cloud.bigtable_v2 import types

from nutbeam.io.bigtable.address import EMULATOR, parse_address
from nutbeam.io.bigtable.admin import create_table

_BELOW_SDK = Path("platform") / "bigtable-emulator" / "cbtemulator"
MISSING = (
    "needs cbtemulator of the Google Cloud SDK: gcloud components install bigtable, "
    "or apt install google-cloud-cli-bigtable-emulator"
)


def find() -> str | None:
    """Returns the path of the emulator, or None."""
    found = shutil.which("cbtemulator")
    if found:
        return found
    gcloud = shutil.which("gcloud")
    if not gcloud:
        return None
    # Where gcloud is; asking it (gcloud info) takes a second.
    program = Path(gcloud).resolve().parent.parent / _BELOW_SDK
    if not program.exists():
        asked = ["gcloud", "info", "--format=value(installation.sdk_root)"]
        root = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        program = Path(root) / _BELOW_SDK
    return str(program) if os.access(program, os.X_OK) else None


class Emulator:
    """Runs while it is entered.

    Attributes:
        host: Its address, HOST:PORT.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._tables = 0

    def __enter__(self):
        # It ends with us, even if we are killed. It chooses the port and prints it.
        tied = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        self._process = subprocess.Popen(
            [*tied, self._program, "-host", "127.0.0.1", "-port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        line = self._process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        if found is None:
            self.__exit__()
            raise RuntimeError(f"cbtemulator does not start: {line!r}")
        self.host = found[0]
        return self

    def __exit__(self, *_):
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def new_address(self, host: str | None = None):
        """Returns the address of a table that nobody else uses; it does not exist yet."""
        self._tables += 1
        name = f"bigtable://my-project/my-instance/crawl-{self._tables}"
        return parse_address(name, {EMULATOR: host or self.host})

    def make(self, folder: Path, host: str | None = None) -> str:
        """Makes a web table that has its files in a folder; returns its address."""
        address = self.new_address(host)
        create_table(address, str(folder))
        return str(address)


class Proxy:
    """Passes connections on to a server, and cuts them off when told to.

    Attributes:
        host: Its address, HOST:PORT.
        received: Bytes that the server has sent so far.
        cut_after: If set, connections end once the server has sent this many bytes
            more; for ``cuts`` of them.
        connections: How many there were.
    """

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self.received = self.connections = self.cuts = 0
        self.cut_after: int | None = None

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # Wakes the thread that accepts; closing alone would leave it waiting.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self.connections += 1
                for source, sink, back in ((client, server, False), (server, client, True)):
                    threading.Thread(
                        target=self._pump, args=(source, sink, back), daemon=True
                    ).start()

    def _pump(self, source, sink, back):
        passed = 0
        with suppress(OSError):
            while data := source.recv(65_536):
                if back:
                    passed += len(data)
                    self.received += len(data)
                    if self.cuts > 0 and self.cut_after is not None and passed > self.cut_after:
                        self.cuts -= 1
                        break
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Counter(grpc.GenericRpcHandler):
    """Passes calls on to a server, and notes which rows of the crawl went through.

    Attributes:
        host: Its address, HOST:PORT.
        read: (column family, key) of each row that the server has sent.
        written: (column family, key) of each row that it was sent.
        forbidden: End of the methods that it refuses; None if it refuses none.
    """

    forbidden: str | None = None

    def __init__(self, server: str) -> None:
        self._channel = grpc.insecure_channel(
            server, [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        )
        self.read: list[tuple[str, str]] = []
        self.written: list[tuple[str, str]] = []

    def __enter__(self):
        self._server = grpc.server(ThreadPoolExecutor(8), [self])
        self.host = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop(None).wait()
        self._channel.close()

    def service(self, call):
        """Returns what answers a call, as grpc asks for it."""
        streams = call.method.rpartition("/")[2] in ("ReadRows", "MutateRows", "SampleRowKeys")
        kind = "stream" if streams else "unary"
        handler = getattr(grpc, f"unary_{kind}_rpc_method_handler")
        return handler(functools.partial(getattr(self, f"_{kind}"), call.method))

    def _unary(self, method, request, context):
        if self.forbidden and method.endswith(self.forbidden):
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not for tests")
        try:
            return self._channel.unary_unary(method)(request)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def _stream(self, method, request, context):
        if method.endswith("/MutateRows"):
            for entry in types.MutateRowsRequest.deserialize(request).entries:
                for mutation in entry.mutations:
                    self._note(self.written, mutation.set_cell.family_name, entry.row_key)
        try:
            for reply in self._channel.unary_stream(method)(request):
                if method.endswith("/ReadRows"):
                    for chunk in types.ReadRowsResponse.deserialize(reply).chunks:
                        if chunk.row_key:
                            self._note(self.read, chunk.family_name, chunk.row_key)
                yield reply
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def _note(self, noted, family, key):
        if not key.startswith(b"\0"):
            noted.append((family, key.decode()))


def started() -> Iterator[Emulator]:
    """Yields an emulator, or skips and says why."""
    program = find()
    if program is None:
        pytest.skip(MISSING)
    with Emulator(program) as emulator:
        yield emulator


class Replies:
    """A server that answers as it is told to: what production does and the emulator does not.

    Attributes:
        host: Its address, HOST:PORT.
        answers: The replies to each call, by method.
        refusals: Codes with which the next calls are refused, each once.
        requests: What was asked, in order.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list] = {}
        self.refusals: list[grpc.StatusCode] = []
        self.requests: list = []

    def __enter__(self):
        handlers = {
            name: grpc.unary_stream_rpc_method_handler(
                functools.partial(self._answer, name),
                request_deserializer=getattr(types, f"{name}Request").deserialize,
                response_serializer=getattr(types, f"{name}Response").serialize,
            )
            for name in ("ReadRows", "MutateRows", "SampleRowKeys")
        }
        self._server = grpc.server(ThreadPoolExecutor(2))
        service = grpc.method_handlers_generic_handler("google.bigtable.v2.Bigtable", handlers)
        self._server.add_generic_rpc_handlers((service,))
        self.host = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop(None).wait()

    def _answer(self, name, request, call):
        self.requests.append(request)
        if self.refusals:
            call.abort(self.refusals.pop(0), "Quota exceeded for quota metric 'requests'")
        yield from self.answers.get(name, ())
