"""A server of TLS 1.2 as of 2008: RSA key exchange, and no secure renegotiation (RFC 5746).

OpenSSL cannot be told to be so old. It serves one connection after the other, in a thread.
"""

import contextlib
import hashlib
import hmac
import os
import socket
import struct
import threading
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

RSA_AES_128_GCM = b"\x00\x9c"
_HANDSHAKE, _CHANGE, _DATA = 22, 20, 23


def prf(secret, label, seed, length):
    """RFC 5246 5."""
    seed, found, a = label + seed, b"", label + seed
    while len(found) < length:
        a = hmac.digest(secret, a, "sha256")
        found += hmac.digest(secret, a + seed, "sha256")
    return found[:length]


class _Session:
    def __init__(self, connection):
        self.connection, self.transcript = connection, b""
        self.reader = self.writer = None
        self.read_number = self.write_number = 0

    def receive(self, wanted):
        kind, _, length = struct.unpack("!BHH", self._exactly(5))
        data = self._exactly(length)
        if kind != wanted:
            raise ConnectionError(f"record {kind}")
        if self.reader:
            key, salt = self.reader
            head = struct.pack("!QBHH", self.read_number, kind, 0x0303, length - 24)
            data = AESGCM(key).decrypt(salt + data[:8], data[8:], head)
            self.read_number += 1
        return data

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.connection.recv(count - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data

    def send(self, kind, data):
        if self.writer:
            key, salt = self.writer
            head = struct.pack("!QBHH", self.write_number, kind, 0x0303, len(data))
            explicit = struct.pack("!Q", self.write_number)
            data = explicit + AESGCM(key).encrypt(salt + explicit, data, head)
            self.write_number += 1
        self.connection.sendall(struct.pack("!BHH", kind, 0x0303, len(data)) + data)

    def handshake(self, kind, body):
        message = struct.pack("!I", kind << 24 | len(body)) + body
        self.transcript += message
        self.send(_HANDSHAKE, message)

    def greet(self, key, certificate):
        hello = self.receive(_HANDSHAKE)
        self.transcript += hello
        client, server = hello[6:38], os.urandom(32)
        self.handshake(2, b"\x03\x03" + server + b"\0" + RSA_AES_128_GCM + b"\0")
        entry = len(certificate).to_bytes(3) + certificate
        self.handshake(11, len(entry).to_bytes(3) + entry)
        self.handshake(14, b"")
        exchange = self.receive(_HANDSHAKE)
        self.transcript += exchange
        secret = key.decrypt(exchange[6:], padding.PKCS1v15())
        master = prf(secret, b"master secret", client + server, 48)
        block = prf(master, b"key expansion", server + client, 40)
        self.receive(_CHANGE)
        self.reader = block[:16], block[32:36]
        self.transcript += self.receive(_HANDSHAKE)
        digest = hashlib.sha256(self.transcript).digest()
        self.send(_CHANGE, b"\1")
        self.writer = block[16:32], block[36:40]
        self.handshake(20, prf(master, b"server finished", digest, 12))


@contextlib.contextmanager
def serving_as_of_2008(key, file, answer):
    """Serves one answer to all requests; yields the port.

    Args:
        key: The RSA key of the server.
        file: Its certificate.
        answer: The response, with its head.
    """
    certificate = x509.load_pem_x509_certificate(Path(file).read_bytes())
    encoded = certificate.public_bytes(serialization.Encoding.DER)
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                session = _Session(connection)
                session.greet(key, encoded)
                session.receive(_DATA)
                session.send(_DATA, answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)
