"""A receiver of OpenTelemetry's spans: OTLP over HTTP, decoded by opentelemetry-proto."""

import contextlib
import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class SpanReceiver(ThreadingHTTPServer):
    """Keeps what it receives.

    Attributes:
        requests: (path, headers, the decoded message) of each request.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self):
        """Returns the spans by name, in the order in which they came."""
        found = {}
        for _, _, message in self.requests:
            for resource in message.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        found.setdefault(span.name, []).append(span)
        return found


def attributes(span):
    """Returns the attributes of a span or a resource as a dict."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        message = ExportTraceServiceRequest.FromString(body)
        self.server.requests.append((self.path, dict(self.headers), message))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def receiving():
    """Yields a receiver that runs during the block."""
    with SpanReceiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
