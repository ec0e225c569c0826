"""A small site of pages, styles, scripts and images, by http and https; and it leads elsewhere."""

import contextlib
import gzip
import io
import ssl

from crawling import nutbeam
from made_certificates import CERTIFICATE
from web_servers import reply, serve

from nutbeam.web.archives.member_codecs import encode_gzip
from nutbeam.web.archives.warc_records import WarcRecord, encode_record, record_id, warc_date

HOST = "site.example.com"
SECURE = "a.example.com"  # the one name of CERTIFICATE
START = f"""<!doctype html><html><head><meta charset="utf-8"><title>Front page</title>
<link rel="stylesheet" href="/style.css?v=1">
<script src="http://{HOST}/js/app.js" defer></script></head>
<body><p id="box">box</p><img src="img/../img/red.png" width="50" height="50" alt="">
<a href="/coded">c</a> <a href="/gone">g</a> <a href="/moved">m</a> <a href="/up">u</a>
<a href="/private/x">p</a> <a href="/leaves">l</a> <a href="/odd">o</a> <a href="/twin">t</a>
</body></html>"""
STYLE = """@import "/more.css"; body { margin: 0; background: #fff; font: 16px monospace }
#box { width: 200px; height: 100px; margin: 0; background: rgb(0, 128, 0); color: rgb(0, 128, 0) }
a { display: none }"""
SCRIPT = """const block = document.createElement('div');
block.style.cssText = 'width: 60px; height: 40px; background: rgb(0, 0, 255)';
document.body.append(block);"""
LEAVES = """<!doctype html><title>Leaves</title>
<link rel="preconnect" href="ELSE"><link rel="stylesheet" href="ELSE/style"><img src="ELSE/img">
<iframe src="ELSE/iframe"></iframe><object data="ELSE/object"></object>
<form id="form" action="ELSE/form"></form><p>leaves</p>
<script>const other = "EL" + "SE";
new Image().src = other + "/image";
fetch(other + "/fetch", {mode: "no-cors"}).catch(() => 0);
try { navigator.sendBeacon(other + "/beacon", "x"); } catch {}
for (const rel of ["preload", "prefetch", "preconnect"]) {
  const link = document.createElement("link");
  link.rel = rel; link.href = other + "/" + rel; link.as = "image"; document.head.append(link);
}
try { open(other + "/window"); } catch {}
setTimeout(() => { try { top.location = other + "/top"; } catch {} }, 300);
setTimeout(() => { location.href = other + "/left"; }, 600);</script>"""


def red_image():
    """Returns a red picture as PNG."""
    from PIL import Image

    picture = io.BytesIO()
    Image.new("RGB", (50, 50), (255, 0, 0)).save(picture, "PNG")
    return picture.getvalue()


def pages(elsewhere):
    """Returns content type and body by path."""
    # The address is in one piece where the page names it, and in two where its script does.
    leaves = LEAVES.replace('"EL" + "SE"', f'"http://127" + ".0.0.1:{elsewhere}"')
    return {
        "/": ("text/html", START.encode()),
        "/style.css?v=1": ("text/css", STYLE.encode()),
        "/more.css": ("text/css", b"img { display: block }"),
        "/js/app.js": ("text/javascript", SCRIPT.encode()),
        "/img/red.png": ("image/png", red_image()),
        "/coded": ("text/html; charset=utf-8", "<title>Codé</title>pear".encode() * 50),
        "/copy": ("text/html", b"<title>Copy</title>the copy"),
        "/twin": ("text/html", b"<title>Copy</title>the copy"),
        "/secure": ("text/html", b"<title>Secure</title>by https"),
        "/odd": ("text/html", b"<title>Odd</title>odd headers"),
        "/leaves": ("text/html", leaves.replace("ELSE", f"http://127.0.0.1:{elsewhere}").encode()),
        "/robots.txt": ("text/plain", b"User-agent: *\nDisallow: /private/\n"),
    }


def answer_to(contents, path):
    """Returns the site's answer to a path, as bytes."""
    if path == "/moved":
        return reply(b"moved", "301 Moved", "Location: /copy", "Content-Type: text/html")
    if path == "/up":
        return reply(b"", "302 Found", f"Location: https://{SECURE}/secure")
    if path not in contents:
        return reply(b"<title>no</title>not here", "404 Not Here", "Content-Type: text/html")
    kind, body = contents[path]
    fields = [f"Content-Type: {kind}", "Server: original", "X-Own: 1"]
    if path == "/odd":
        fields += ["Set-Cookie: a=1", "Content-Security-Policy: default-src *", "Bad Name: x",
                   "Refresh: 0; url=http://elsewhere.example/", "Alt-Svc: h3=\":443\"",
                   "Access-Control-Allow-Origin: *", "X-Control: a\x01b"]  # fmt: skip
    if path == "/coded":
        body = gzip.compress(body, mtime=0)
        fields.append("Content-Encoding: gzip")
    return reply(body, "200 Fine", *fields)


def write_archive(folder, elsewhere=9):
    """Writes the site into a WARC file, as a crawler does that keeps answers as they came.

    The second of two equal pages is a revisit record. Returns the folder.
    """
    contents, time = pages(elsewhere), 1_795_883_544_000
    paths = [*contents, "/gone", "/moved", "/up"]
    urls = [(f"http://{HOST}{path}", path) for path in paths if path != "/secure"]
    records = []
    for number, (url, path) in enumerate([*urls, (f"https://{SECURE}/secure", "/secure")]):
        fields = [("WARC-Target-URI", url), ("Content-Type", "application/http; msgtype=response")]
        block, kind = answer_to(contents, path), "response"
        if path == "/twin":
            kind, block = "revisit", block.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
            profile = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
            fields += [("WARC-Profile", profile),
                       ("WARC-Refers-To-Target-URI", f"http://{HOST}/copy"),
                       ("WARC-Refers-To-Date", warc_date(time + 1000 * paths.index("/copy")))]  # fmt: skip
        records.append(WarcRecord(kind, record_id(url), time + 1000 * number, fields, (block,)))
    folder.mkdir(exist_ok=True)
    data = b"".join(encode_gzip(encode_record(record)) for record in records)
    (folder / "site.warc.gz").write_bytes(data)
    return folder


@contextlib.contextmanager
def archived_site(certificate, elsewhere=9):
    """Runs the site; yields its servers for http and https.

    Args:
        certificate: File of key and certificate, see ``write_certificate``.
        elsewhere: Port of loopback to which the page /leaves leads.
    """
    contents, tls = pages(elsewhere), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)

    def answer(path, _):
        return answer_to(contents, path)

    with serve(answer) as plain, serve(answer, context=tls) as secure:
        yield plain, secure


def crawl_site(table, http_port, https_port, certificate, *words):
    """Crawls the site, with its styles, scripts and images."""
    rules = certificate.with_name("all-urls.txt")
    rules.write_text("+.\n")
    reach = [
        *("--connect_to", f"*.example.com:80:127.0.0.1:{http_port}"),
        *("--connect_to", f"*.example.com:443:127.0.0.1:{https_port}"),
        *("--ca_file", certificate, "--server_delay", "0", "--url_filter_file", rules),
    ]
    return nutbeam("crawl", table, f"http://{HOST}/", "--rounds", "5", *reach, *words)


def write_certificate(folder):
    """Writes key and certificate of the server of https into a folder; returns the file."""
    path = folder / "certificate.pem"
    path.write_text(CERTIFICATE)
    return path
