"""The prescan against the algorithm of WHATWG HTML 13.2.3.2, word by word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.web.content.charset import declared_encoding
from nutbeam.web.content.whatwg_encodings import encoding_name

SPACE = b"\t\n\f\r "


class OutOfBytes(Exception):
    pass


class Prescan:
    def __init__(self, text):
        self.text, self.at = text, 0

    def byte(self):
        if self.at >= len(self.text):
            raise OutOfBytes
        return self.text[self.at : self.at + 1]

    def skip(self, what):
        while self.byte() in what:
            self.at += 1

    def until(self, what):
        start = self.at
        while self.byte() not in what:
            self.at += 1
        return self.text[start : self.at]

    def run(self):
        try:
            return self.scan()
        except OutOfBytes:
            return None

    def scan(self):
        while True:
            rest = self.text[self.at : self.at + 6].lower()
            if rest.startswith(b"<!--"):
                end = self.text.find(b"-->", self.at + 2)
                if end < 0:
                    raise OutOfBytes
                self.at = end + 2
            elif rest[:5] == b"<meta" and rest[5:] and rest[5:] in SPACE + b"/":
                self.at += 5
                name = self.meta()
                if name:
                    return name
            elif rest[:1] == b"<" and rest[1:3].lstrip(b"/")[:1].isalpha() and rest[1:3] != b"//":
                self.until(SPACE + b">")
                while self.attribute():
                    pass
            elif rest[:2] in (b"<!", b"</", b"<?"):
                self.until(b">")
            else:
                self.byte()
            self.at += 1

    def meta(self):
        found = {}
        while pair := self.attribute():
            found.setdefault(*pair)
        if b"charset" in found:
            return encoding_name(found[b"charset"].decode("latin-1").rstrip("/"))  # ours: the slash
        if found.get(b"http-equiv") != b"content-type":
            return None
        return self.of_content(found.get(b"content", b""))

    def of_content(self, value):
        at = 0
        while (at := value.find(b"charset", at)) >= 0:
            at += 7
            rest = value[at:].lstrip(SPACE)
            if rest[:1] != b"=":
                continue
            rest = rest[1:].lstrip(SPACE)
            if rest[:1] in (b'"', b"'"):
                label, mark, _ = rest[1:].partition(rest[:1])
                return encoding_name(label.decode("latin-1")) if mark else None
            label = rest.split(b";")[0].split()
            return encoding_name(label[0].decode("latin-1")) if label else None
        return None

    def attribute(self):
        """The standard's "get an attribute"."""
        self.skip(SPACE + b"/")
        if self.byte() == b">":
            return None
        name = self.byte()
        self.at += 1
        name += self.until(SPACE + b"/>=")
        self.skip(SPACE)
        if self.byte() != b"=":
            return name.lower(), b""
        self.at += 1
        self.skip(SPACE)
        mark = self.byte()
        if mark in (b'"', b"'"):
            self.at += 1
            value = self.until(mark)
            self.at += 1
        else:
            value = self.until(SPACE + b">")
        return name.lower(), value.lower()


PIECES = st.lists(
    st.sampled_from(
        [b"<meta", b"<p", b"</p", b"<a/", b"<!--", b"-->", b"--", b"<!", b"</", b"<?", b">", b"/",
         b" ", b"\n", b"=", b"'", b'"', b" charset", b"charset=", b"koi8-r", b"big5", b"x",
         b" http-equiv=content-type", b" content=", b"content='charset=koi8-r'", b"METAL", b"<",
         b"<meta charset=gbk>", b";", b"9", b" title='<meta charset=big5>'"]
    ),
    max_size=25,
).map(b"".join)  # fmt: skip


@given(PIECES)
def test_the_prescan_agrees_with_the_standard(text):
    assert declared_encoding(text) == Prescan(text).run()


@pytest.mark.parametrize("before", [0, 1000, 1020, 3000])
def test_finds_it_wherever_it_stands(before):
    text = b"<p a='" + b"x" * before + b"'><meta charset=koi8-r>"
    assert declared_encoding(text) == Prescan(text).run() == "koi8-r"
