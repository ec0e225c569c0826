"""A site for reports: hostile titles, duplicates, and hosts that keep the crawler out in each way."""

from web_servers import reply

HTML = "Content-Type: text/html; charset=utf-8"
EVIL = "<script>document.title='obeyed'</script>\u202egnp.exe"
WALL = b"<title>Just a moment...</title><script>window._cf_chl_opt={}</script>"
HOSTS = ("www", "wall", "robots", "failing", "denied", "busy")
SEEDS = [f"http://{name}.example.com/" for name in HOSTS]


def page(title, body="", lang="en"):
    text = f'<html lang="{lang}"><title>{title}</title><body><p>{body}</p></body></html>'
    return reply(text.encode(), "200 OK", HTML)


PAGES = {
    "/": page("Home", '<a href="/evil">x</a><a href="/de">x</a><a href="/twin1">x</a><a href="/twin2">x</a>'
              '<a href="/none">x</a><a href="http://other.example.com/">x</a>'
              '<a href="http://other.example.com/b">x</a>'),
    "/evil": page(EVIL.replace("<", "&lt;"), EVIL.replace("<", "&lt;")),
    "/de": page("Haus", "Ein Haus am See", "de"),
    "/twin1": page("Twin", "the same text on two pages"),
    "/twin2": page("Twin", "the same text on two pages"),
}  # fmt: skip


class ReportedSite:
    """Answers of the site; ``walled`` puts a wall before all of its pages."""

    def __init__(self):
        self.walled = False
        self.current = None

    def answer(self, path, host):
        name = host.partition(".")[0]
        if path == "/robots.txt":
            if name == "failing":
                return reply(b"", "503 Service Unavailable")
            return reply(b"User-agent: *\nDisallow: /" if name == "robots" else b"", "200 OK")
        if name == "wall" or self.walled:
            return reply(WALL, "200 OK" if self.walled else "403 Forbidden", HTML)
        if name == "denied":
            return reply(b"no", "403 Forbidden")
        if name == "busy":
            return reply(b"later", "429 Too Many Requests")
        return PAGES.get(path) or reply(b"", "404 Not Found")
