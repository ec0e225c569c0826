"""FTP servers on loopback for tests: a real one, and one that says what it is told to."""

import contextlib
import socket
import threading
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it imports modules that Python will not have for ever
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.filesystems import AbstractedFS
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.ioloop import IOLoop
    from pyftpdlib.servers import FTPServer


class RealServer:
    """pyftpdlib serving a folder to anonymous, and to a user with a password.

    Attributes:
        port: Of the control connections.
        commands: What clients sent, password aside.
        logins: User names that were given.
    """

    def __init__(self, folder, user=None, password=None, mlsd=True):
        self.commands, self.logins = [], []
        commands, logins = self.commands, self.logins
        authorizer = DummyAuthorizer()
        if user is None:
            authorizer.add_anonymous(str(folder))
        else:
            authorizer.add_user(user, password, str(folder))

        class Handler(FTPHandler):
            def pre_process_command(self, line, cmd, arg):
                commands.append(f"{cmd} {arg}".strip() if cmd != "PASS" else cmd)
                if cmd == "MLSD" and not mlsd:
                    self.respond("500 What?", lambda _: None)
                    return
                super().pre_process_command(line, cmd, arg)

            def on_login(self, username):
                logins.append(username)

        Handler.authorizer, Handler.abstracted_fs = authorizer, AbstractedFS
        Handler.auth_failed_timeout = 0
        self._loop = IOLoop()
        self._server = FTPServer(("127.0.0.1", 0), Handler, ioloop=self._loop)
        self.port = self._server.address[1]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while not self._over.is_set():
            self._loop.loop(timeout=0.02, blocking=False)
        self._server.close_all()

    def close(self):
        self._over.set()
        self._thread.join(10)


@contextlib.contextmanager
def real_server(folder, **kwargs):
    """Runs a real FTP server."""
    server = RealServer(folder, **kwargs)
    try:
        yield server
    finally:
        server.close()


class ToldServer:
    """Answers each command by what ``answers`` has for it: bytes, or a function that returns some.

    Data connections, opened by PASV, carry ``data`` and are closed.

    Attributes:
        port: Of the control connections.
        commands: What clients sent.
        connections: How many control connections there were.
    """

    def __init__(self, answers=(), data=b"", host="127,0,0,1"):
        self.answers = {
            "": b"220 hello\r\n",
            "USER": b"331 password\r\n",
            "PASS": b"230 in\r\n",
            "TYPE": b"200 ok\r\n",
            "CWD": b"250 ok\r\n",
            "MDTM": b"500 what?\r\n",
            "SIZE": b"500 what?\r\n",
            **dict(answers),
        }
        self.data, self.host = data, host
        self.commands, self.connections = [], 0
        self.closing = threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        data = None
        with contextlib.suppress(OSError, ValueError), connection:
            self._say(connection, "")
            for line in connection.makefile("rb"):
                text = line.rstrip(b"\r\n").decode("latin-1")
                self.commands.append(text)
                word = text.partition(" ")[0]
                if word == "PASV" and word not in self.answers:
                    data = socket.create_server(("127.0.0.1", 0))
                    port = data.getsockname()[1]
                    at = f"{self.host},{port >> 8},{port & 255}"
                    connection.sendall(f"227 ({at})\r\n".encode())
                elif word in ("MLSD", "LIST", "RETR") and word not in self.answers:
                    connection.sendall(b"150 here\r\n")
                    self._send(data)
                    connection.sendall(b"226 done\r\n")
                elif not self._say(connection, word):
                    return

    def _say(self, connection, word):
        answer = self.answers.get(word, b"502 what?\r\n")
        answer = answer(self) if callable(answer) else answer
        for part in [answer] if isinstance(answer, bytes) else answer:
            connection.sendall(part)
        return word != "QUIT"

    def _send(self, data):
        with contextlib.suppress(OSError), data, data.accept()[0] as connection:
            for part in [self.data] if isinstance(self.data, bytes) else self.data():
                connection.sendall(part)

    def close(self):
        self.closing.set()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@contextlib.contextmanager
def scripted_server(answers=(), **kwargs):
    """Runs a server that says what it is told to."""
    server = ToldServer(answers, **kwargs)
    try:
        yield server
    finally:
        server.close()


def ftp_mapping(port, host="ftp.example.com"):
    """Returns the connect_to entry of an FTP server on loopback."""
    return f"{host}:21:127.0.0.1:{port}"
