import base64
import dataclasses
import hashlib
import logging
import re
import traceback

import pytest
from http_clients import Client, HttpOptions
from web_servers import connect_to, reply, serve

from nutbeam.io.batches.page_writer import page_row
from nutbeam.transforms.fetch_pages import FetchPages
from nutbeam.web.base.errors import UsageError
from nutbeam.web.base.option_checks import check_setup
from nutbeam.web.engine.tasks import Result, Task
from nutbeam.web.exchange.credentials import (
    Credential,
    Credentials,
    choose_challenge,
    digest_header,
    load_credentials,
)
from nutbeam.web.robots.robots import fetch_robots

PASSWORD = "s3cret of ours"
TOKEN = "t0ken.of-ours"
A = "http://a.example.com/"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "credentials"
    path.write_text(
        f"# ours\n\nhttp://a.example.com basic us\u00e9r {PASSWORD}\n"
        f"http://b.example.com/ bearer {TOKEN}\n"
        f"https://c.example.com basic user {PASSWORD}\n"
        f"http://d.example.com digest user {PASSWORD}\n"
        f"http://[2606:4700::1111]:8080 basic user {PASSWORD}\n"
    )
    path.chmod(0o600)
    return str(path)


def ask(file, *urls, answer=lambda path, connection: reply(b"x"), **options):
    """Returns (responses, heads of the requests as the server got them)."""
    with serve(answer) as server:
        if isinstance(answer, Digest):
            answer.server = server
        at = (f"*.example.com::127.0.0.1:{server.port}",)
        client = Client(HttpOptions(connect_to=at, http_credentials=file, **options))
        responses = [client.get(url) for url in urls]
        return responses, [head for _, head, _ in server.requests]


def authorization(head):
    found = re.findall(r"\r\n(?:Proxy-)?Authorization: ([^\r]*)", head)
    assert len(found) < 2
    return found[0] if found else None


@pytest.mark.usefixtures("each_client")
def test_basic_and_bearer_go_to_their_origin(file):
    pair = base64.b64encode(f"us\u00e9r:{PASSWORD}".encode()).decode()
    responses, heads = ask(file, A, "http://b.example.com/x", f"{A}robots.txt")
    assert list(map(authorization, heads)) == [f"Basic {pair}", f"Bearer {TOKEN}", f"Basic {pair}"]
    assert [r.status for r in responses] == [200, 200, 200]


@pytest.mark.usefixtures("each_client")
@pytest.mark.parametrize(
    "url",
    [
        "http://c.example.com/",  # its entry says https
        "http://a.example.com:8080/",
        "http://x.a.example.com/",
        "http://example.com/",
        "http://a.example.com./",
        "http://aXexample.com.example.com/",
        "http://a.example.com@e.example.com/",
        "http://user:pass@e.example.com/",
    ],
)
def test_nothing_goes_to_another_origin(file, url):
    (response,), (head,) = ask(file, url)
    assert response.status == 200
    assert authorization(head) is None


@pytest.mark.usefixtures("each_client")
def test_nothing_follows_a_redirect_of_robots_txt(file):
    def answer(path, connection):
        if path == "/robots.txt":
            return reply(b"", "302 Found", "Location: http://e.example.com/elsewhere")
        return reply(b"User-agent: *\nDisallow: /x")

    with serve(answer) as server:
        options = HttpOptions(connect_to=connect_to(server.port), http_credentials=file)
        fetch_robots(Client(options), "http://a.example.com")
        heads = {path: head for path, head, _ in server.requests}
    assert authorization(heads["/robots.txt"])
    assert authorization(heads["/elsewhere"]) is None


@pytest.mark.usefixtures("each_client")
def test_secrets_are_not_kept(file):
    responses, _ = ask(file, A, "http://b.example.com/", "http://d.example.com/", answer=Digest())
    for response in responses:
        assert response.status == 200
        row = str(page_row(Result(Task(response.url), response, 33, 1)))
        for text in (row, repr(response)):
            assert "\\r\\nAuthorization: (withheld)\\r\\n" in text
            for secret in (PASSWORD, TOKEN, base64.b64encode(PASSWORD.encode()).decode()[:10]):
                assert secret not in text
            assert "nonce" not in text.replace("WWW-Authenticate", "")


def test_secrets_are_not_shown(file):
    entries = load_credentials(file)
    options = HttpOptions(http_credentials=file)
    display = FetchPages(agent_name="a", agent_email="b@c", http_credentials=file).display_data()
    for shown in (repr(entries), repr(options), str(display), str(dataclasses.asdict(options))):
        assert PASSWORD not in shown
        assert TOKEN not in shown


class Digest:
    """A server that asks for digest, and checks the answer in its own way.

    ``stale_after`` is how often a nonce may be used.
    """

    def __init__(self, algorithm="SHA-256", qop="auth", stale_after=100):
        self.algorithm, self.qop, self.stale_after = algorithm, qop, stale_after
        self.nonces, self.uses, self.server = 0, [], None

    def __call__(self, path, connection):
        head = self.server.requests[-1][1]
        if "Host: d.example.com" not in head:
            return reply(b"x")
        return reply(b"in") if self.knows(authorization(head), path) else self.challenge()

    def challenge(self):
        stale = ", stale=true" if self.nonces else ""
        self.nonces += 1
        self.uses = []
        qop = f', qop="{self.qop}"' if self.qop else ""
        value = (
            f'Digest realm="a \\"b\\", c", nonce="n{self.nonces}", opaque="o=="'
            f", algorithm={self.algorithm}{qop}{stale}"
        )
        return reply(b"out", "401 Who?", f'WWW-Authenticate: Basic realm="x", {value}')

    def knows(self, given, path):
        if not given:
            return False
        fields = dict(re.findall(r'(\w+)="?((?:\\.|[^",])*)', given.removeprefix("Digest ")))
        make = hashlib.sha256 if self.algorithm.startswith("SHA-256") else hashlib.md5

        def h(*words):
            return make(":".join(words).encode()).hexdigest()

        first = h("user", 'a "b", c', PASSWORD)
        if self.algorithm.endswith("sess"):
            first = h(first, fields["nonce"], fields["cnonce"])
        middle = [fields["nonce"]]
        if self.qop:
            middle += [fields["nc"], fields["cnonce"], "auth"]
            if fields["nc"] in self.uses or len(self.uses) >= self.stale_after:
                return False
            self.uses.append(fields["nc"])
        right = h(first, *middle, h("GET", path))
        fresh = fields["nonce"] == f"n{self.nonces}" and fields["opaque"] == "o=="
        return fresh and fields["uri"] == path and fields["response"] == right


@pytest.mark.usefixtures("each_client")
@pytest.mark.parametrize("algorithm", ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess"])
@pytest.mark.parametrize("qop", ["auth", "auth-int,auth", ""])
def test_digest(file, algorithm, qop):
    urls = ["http://d.example.com/a;b?c=d&e", "http://d.example.com/2", "http://d.example.com/3"]
    responses, heads = ask(file, *urls, answer=Digest(algorithm, qop))
    assert [response.body for response in responses] == [b"in"] * 3
    assert len(heads) == 4  # the challenge is asked for once


@pytest.mark.usefixtures("each_client")
def test_a_stale_nonce_is_renewed_once(file):
    answer = Digest(stale_after=2)
    responses, heads = ask(file, *["http://d.example.com/"] * 4, answer=answer)
    assert [response.body for response in responses] == [b"in"] * 4
    assert len(heads) == 6


@pytest.mark.usefixtures("each_client")
def test_a_wrong_password_is_not_tried_for_ever(tmp_path):
    file = tmp_path / "wrong"
    file.write_text("http://d.example.com digest user wrong\n")

    def answer(path, connection):
        return reply(b"", "401 No", 'WWW-Authenticate: Digest realm="r", nonce="n", stale=true')

    (response,), heads = ask(str(file), "http://d.example.com/", answer=answer)
    assert response.status == 401
    assert len(heads) == 2


@pytest.mark.usefixtures("each_client")
def test_each_request_passes_the_gate(file):
    asked = []
    with serve(lambda path, connection: reply(b"", "401 No", CHALLENGE)) as server:
        options = HttpOptions(connect_to=connect_to(server.port), http_credentials=file)
        client = Client(options, gate=lambda: asked.append(1) or len(server.requests) < 1)
        response = client.get("http://d.example.com/")
    assert len(server.requests) == 1
    assert (response.status, response.error) == (0, "stopped")
    assert len(asked) >= 2


CHALLENGE = 'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"'


@pytest.mark.usefixtures("each_client")
def test_a_challenge_of_another_host_gets_no_credentials(file):
    def answer(path, connection):
        return reply(b"", "401 No", CHALLENGE)

    (response,), heads = ask(file, "http://e.example.com/", answer=answer)
    assert (response.status, len(heads), authorization(heads[0])) == (401, 1, None)


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_the_examples_of_rfc_7616(algorithm, expected):
    challenge = {
        "realm": "http-auth@example.org",
        "qop": "auth, auth-int",
        "algorithm": algorithm,
        "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
    }
    cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    entry = Credential("digest", "Mufasa", "Circle of Life")
    header = digest_header(entry, challenge, "/dir/index.html", 1, cnonce)
    assert f'response="{expected}"' in header
    assert "qop=auth, nc=00000001" in header


@pytest.mark.parametrize(
    "values",
    [
        [],
        ['Basic realm="Digest nonce=n"'],
        ['Digest realm="r"'],
        ['Digest nonce="n", algorithm=SHA-512-256'],
        ['Digest nonce="n", qop="auth-int"'],
        ["\0" * 10, "Digest", ",,,=", '"'],
    ],
)
def test_challenges_that_cannot_be_met(values):
    assert choose_challenge(values) is None


def test_the_stronger_challenge_is_met():
    values = ['Digest nonce="a", algorithm=MD5', 'Digest nonce="b", algorithm=SHA-256']
    assert choose_challenge(values)["nonce"] == "b"


def test_names_and_realms_may_be_in_any_language():
    challenge = {"realm": "caf\u00e9".encode().decode("latin-1"), "nonce": "n"}
    header = digest_header(Credential("digest", "us\u00e9r", "p\u00e4ss"), challenge, "/", 1, "c")
    first = hashlib.md5("us\u00e9r:caf\u00e9:p\u00e4ss".encode()).hexdigest()
    second = hashlib.md5(b"GET:/").hexdigest()
    assert hashlib.md5(f"{first}:n:{second}".encode()).hexdigest() in header
    assert 'realm="caf\u00e9"'.encode() in header.encode("latin-1")


def test_line_breaks_of_a_challenge_do_not_come_back():
    entry = Credential("digest", "user", PASSWORD)
    header = digest_header(entry, {"nonce": "a\r\nX: y", "realm": 'q"\\'}, "/", 1, "c")
    assert "\r" not in header
    assert 'realm="q\\"\\\\"' in header


@pytest.mark.parametrize(
    "line",
    [
        f"http://a.example.com basic user{PASSWORD[:3]}",
        f"http://a.example.com basic us:er {PASSWORD}",
        f"http://a.example.com token {PASSWORD}",
        f"a.example.com basic user {PASSWORD}",
        f"ftp://a.example.com digest user {PASSWORD}",
        f"ftp://a.example.com bearer {PASSWORD.split()[0]}",
        f"ftp://a.example.com:99999 basic user {PASSWORD}",
        f"http://a.example.com/path basic user {PASSWORD}",
        f"http://user:{PASSWORD}@a.example.com basic user x",
        f"http://a.example.com bearer {PASSWORD}",
        f"http://a.example.com basic user {PASSWORD}\x01",
        f"http://a.example.com:99999 basic user {PASSWORD}",
        f"http://ok.example.com basic user {PASSWORD}",
        f"{PASSWORD}",
    ],
)
def test_errors_name_the_line_and_tell_no_secret(tmp_path, line):
    file = tmp_path / "credentials"
    file.write_text(f"http://ok.example.com basic a b\n{line}\n")
    with pytest.raises(UsageError, match=r"credentials, line 2: ") as error:
        load_credentials(str(file))
    shown = "".join(traceback.format_exception(error.value))
    assert PASSWORD.split()[0] not in str(error.value)
    assert "s3c" not in shown.partition(str(error.value))[2]
    assert error.value.__cause__ is None


def test_a_mark_at_the_begin_of_the_file(tmp_path):
    (tmp_path / "c").write_text("\ufeffhttp://a.example.com bearer t", "utf-8")
    assert list(load_credentials(str(tmp_path / "c"))) == [("http", "a.example.com", 80)]


def test_a_file_that_is_not_there():
    with pytest.raises(UsageError, match="No such file"):
        load_credentials("/nowhere/at/all")


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o644, True), (0o640, True)])
def test_a_credentials_file_that_others_may_read_causes_a_warning(
    file, caplog, mode, warned, tmp_path
):
    (tmp_path / "credentials").chmod(mode)
    with caplog.at_level(logging.WARNING):
        check_setup(HttpOptions(agent_name="a", agent_email="b@c", http_credentials=file))
    assert ("chmod 600" in caplog.text) == warned
    assert PASSWORD not in caplog.text


@pytest.mark.usefixtures("each_client")
def test_credentials_of_a_proxy():
    basic = Credentials({("http", "p", 3128): Credential("basic", "u", "p")})
    assert basic.proxy_header("p", 3128) == "Basic dTpw"
    assert basic.proxy_header("p", 3129) == ""
    six = Credentials({("http", "[::1]", 3128): Credential("bearer", "", "t")})
    assert six.proxy_header("::1", 3128) == "Bearer t"
    with pytest.raises(UsageError, match="basic or bearer"):
        Credentials({("http", "p", 1): Credential("digest", "u", "p")}).proxy_header("p", 1)
