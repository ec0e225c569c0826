"""A little server on loopback with indexes, aliases and documents, as OpenSearch has them."""

import contextlib
import fnmatch
import itertools
import json
import threading
from urllib.parse import unquote, urlsplit

from bulk_servers import BulkServer, Handler, read_actions

_IDS = itertools.count(1)


class IndexServer(BulkServer):
    """Keeps indexes in memory.

    Attributes:
        indexes: By name: ``uuid``, ``body`` (what it was created with) and ``documents``.
        aliases: Index of each alias.
        before: (method, part of the path, answer) of requests that are answered once like that.
        refuses: Function of (id, document) that returns whether the document is refused.
    """

    def __init__(self):
        super().__init__(handler=IndexHandler)
        self.indexes, self.aliases, self.before = {}, {}, []
        self.refuses = lambda id_, document: False

    def create(self, name, body):
        self.indexes[name] = {"uuid": f"uuid-{next(_IDS)}", "body": body, "documents": {}}
        self.aliases.update(dict.fromkeys(body.get("aliases", ()), name))

    def named(self, name):
        """Returns the indexes of a name, an alias or a pattern."""
        name = self.aliases.get(name, name)
        return {index: one for index, one in self.indexes.items() if fnmatch.fnmatch(index, name)}

    def texts(self, name="main"):
        """Returns the text of each URL that searches find."""
        ((_, index),) = self.named(name).items()
        return {id_: one.get("content", "") for id_, one in index["documents"].items()}


class IndexHandler(Handler):
    def say(self, status, record=None):
        self.answer(status, b"" if record is None else json.dumps(record).encode())

    def is_answered(self):
        self.server.heads.append((self.command, self.path, self.headers))
        for one in self.server.before:
            method, part, answer = one
            if method == self.command and part in self.path:
                self.server.before.remove(one)
                self.read_body()
                self.answer(*answer)
                return True
        return False

    def read_body(self):
        return self.rfile.read(int(self.headers["Content-Length"] or 0))

    def words(self):
        return [unquote(word) for word in urlsplit(self.path).path.strip("/").split("/")]

    def do_GET(self):
        if self.is_answered():
            return
        server, words = self.server, self.words()
        if words == [""]:
            self.say(200, server.root)
        elif words[0] == "_alias":
            index = server.aliases.get(words[1])
            self.say(404 if index is None else 200, {} if index is None else {index: {}})
        elif not (found := server.named(words[0])) and "*" not in words[0]:
            self.say(404, {"error": {"type": "index_not_found_exception"}, "status": 404})
        elif words[1] == "_settings":
            settings = {n: {"settings": {"index": {"uuid": i["uuid"]}}} for n, i in found.items()}
            self.say(200, settings)
        elif words[1] == "_mapping":
            self.say(
                200, {n: {"mappings": i["body"].get("mappings", {})} for n, i in found.items()}
            )
        else:
            self.say(200, {"count": sum(len(index["documents"]) for index in found.values())})

    def do_HEAD(self):
        if not self.is_answered():
            self.answer(200 if self.server.named(self.words()[0]) else 404)

    def do_PUT(self):
        if self.is_answered():
            return
        (name,), body = self.words(), json.loads(self.read_body() or b"{}")
        if name in self.server.indexes:
            error = {"type": "resource_already_exists_exception", "reason": name}
            self.say(400, {"error": error, "status": 400})
            return
        self.server.create(name, body)
        self.say(200, {"acknowledged": True})

    def do_DELETE(self):
        if not self.is_answered():
            self.server.indexes.pop(self.words()[0])
            self.say(200, {})

    def do_POST(self):
        if self.is_answered():
            return
        server, words, body = self.server, self.words(), self.read_body()
        if words == ["_aliases"]:
            for action in json.loads(body)["actions"]:
                ((kind, what),) = action.items()
                if kind == "add":
                    server.aliases[what["alias"]] = what["index"]
                elif kind == "remove":
                    server.aliases.pop(what["alias"])
                else:
                    server.indexes.pop(what["index"])
            self.say(200, {})
        elif words[1] == "_bulk":
            actions = list(read_actions(body))
            server.bulks.append([id_ for _, id_, _ in actions])
            self.say(200, self.apply_to(server.named(words[0]), actions))
        else:
            self.say(200 if server.named(words[0]) else 404, {})

    def apply_to(self, found, actions):
        items = []
        for kind, id_, document in actions:
            ((_, index),) = found.items()
            item = {"_id": id_, "status": 200}
            if kind == "delete":
                if index["documents"].pop(id_, None) is None:
                    item["status"] = 404
            elif self.server.refuses(id_, document):
                item |= {"status": 400, "error": {"type": "bad", "reason": "a reason"}}
            else:
                index["documents"][id_] = document
            items.append({kind: item})
        return {"errors": any("error" in one for item in items for one in item.values()),
                "items": items}  # fmt: skip


@contextlib.contextmanager
def index_server():
    """Yields a server."""
    server = IndexServer()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
