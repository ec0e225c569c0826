"""URL normalizers: so that one page has one URL, however it is written."""

import dataclasses
import re
from collections.abc import Callable
from xml.etree import ElementTree

from .patterns import Pattern, compile_pattern
from .urls import BadUrl, parse

MAX_ROUNDS = 5
# RFC 1035 2.3.4; no resolver takes more.
MAX_LABEL, MAX_HOST = 63, 253

_PARTS = re.compile(
    r"(https?|ftp|file)://(?:[^/?@]*@)?(\[[^\]]*\]|[^/?:]*)(:[0-9]+)?(/[^?]*)(\?.*)?", re.DOTALL
)
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_TO_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?|[^!#-;=?-Z\\_a-z~]")
_SLASHES = re.compile("/{2,}")
_GROUP = re.compile(r"\\(.)|\$(?:([0-9]+)|\{([A-Za-z][A-Za-z0-9]*)\})|[\\$]", re.DOTALL)


def normalize_basic(url: str) -> str:
    """Returns a URL in the form that all ways to write it share.

    WHATWG parsing (as browsers do), then for http, https, ftp and file:

    * user info and fragment are dropped, and one trailing dot of the host;
    * escapes of ``A-Z a-z 0-9 - . _ ~`` are decoded, other escapes get
      upper-case digits, a lone ``%`` becomes ``%25``;
    * of what WHATWG leaves, ``"<>[]^`{|}`` are escaped too;
    * several slashes of the path become one (nutch.md 3.2).

    Raises:
        BadUrl: ``malformed``: WHATWG refuses it, or no resolver takes the host
            (an empty label, over 63 bytes in one, over 253 in all).

    >>> normalize_basic(" HTTPS://user@Foo.COM.:443//a/./../%7efoo%2fx|y?a=%#z ")
    'https://foo.com/~foo%2Fx%7Cy?a=%25'
    """
    href = parse(url)
    if href is None:
        raise BadUrl("malformed", url)
    href = href.partition("#")[0]
    match = _PARTS.fullmatch(href)
    if match is None:
        return href
    scheme, host, port, path, query = match.groups("")
    host = host.removesuffix(".")
    if not _can_resolve(host) and scheme != "file":
        raise BadUrl("malformed", url)
    path = _SLASHES.sub("/", _escape(path))
    return f"{scheme}://{host}{port}{path}{_escape(query)}"


def _can_resolve(host: str) -> bool:
    if not 0 < len(host) <= MAX_HOST:
        return False
    return host.startswith("[") or all(0 < len(part) <= MAX_LABEL for part in host.split("."))


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    if match[1] is None:
        return "".join(f"%{byte:02X}" for byte in match[0].encode())
    char = chr(int(match[1], 16))
    return char if _UNRESERVED.match(char) else match[0].upper()


@dataclasses.dataclass(frozen=True)
class Substitution:
    """One rule: every match of ``pattern`` is replaced by ``template``."""

    pattern: Pattern
    template: str

    def apply(self, url: str) -> str:
        """Returns the URL with every match replaced."""
        return self.pattern.python.sub(self.template, url)


class RegexNormalizer:
    """Rules of a file in the format of Nutch's regex-normalize.xml.

    Args:
        text: The file.
        name: What messages call it.

    Raises:
        ValueError: It is not XML of that form, or a rule does not compile; one
            line with the name of the file, and the rule.

    Attributes:
        rules: In the order in which they are applied.
    """

    def __init__(self, text: str, name: str) -> None:
        self.rules = tuple(_read_rules(text, name))

    def apply(self, url: str) -> str:
        """Returns the URL after all rules, each applied once."""
        for rule in self.rules:
            url = rule.apply(url)
        return url


def _read_rules(text: str, name: str) -> list[Substitution]:
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"{name} must be xml like regex-normalize.xml: {error}") from error
    rules: list[Substitution] = []
    for element in root.iter("regex"):
        pattern, template = element.findtext("pattern"), element.findtext("substitution", "")
        if not pattern:
            raise ValueError(f"{name}: rule {len(rules) + 1} must have a pattern, got {pattern!r}")
        rules.append(_read_rule(pattern, template, f"{name}: rule {len(rules) + 1}"))
    return rules


def _read_rule(pattern: str, template: str, where: str) -> Substitution:
    try:
        compiled = compile_pattern(pattern)
    except ValueError as error:
        raise ValueError(
            f"{where} must be a regular expression, got {pattern!r}: {error}"
        ) from error
    try:
        return Substitution(compiled, _python_template(template, compiled))
    except ValueError as error:
        raise ValueError(f"{where} must substitute {error}, got {template!r}") from error


def _python_template(template: str, pattern: Pattern) -> str:
    """Turns Java's replacement (``$1``, ``${name}``, backslash quotes) into Python's."""

    def group(match: re.Match[str]) -> str:
        quoted, number, name = match.groups()
        if quoted:
            return quoted.replace("\\", "\\\\")
        if name in pattern.python.groupindex:
            return rf"\g<{name}>"
        # Java takes as many digits as name a group, and at least one.
        for end in range(len(number or ""), 0, -1):
            if int(number[:end]) <= pattern.python.groups:
                return rf"\g<{number[:end]}>{number[end:]}"
        raise ValueError("groups that the pattern has ($1, ${name}; \\$ for a dollar sign)")

    return _GROUP.sub(group, template)


@dataclasses.dataclass(frozen=True)
class Normalizer:
    """The chain of normalizers: basic, then the rules of a file.

    Repeated until nothing changes, so that to normalize twice is to normalize
    once.

    Attributes:
        rules: None for the basic normalizer alone.
    """

    rules: RegexNormalizer | None

    def normalize(self, url: str) -> str:
        """Returns the normalized URL.

        Raises:
            BadUrl: ``malformed`` as ``normalize_basic``, also of what a rule
                made of the URL; ``normalizer_loop`` where it still changes
                after ``MAX_ROUNDS``.
        """
        for _ in range(MAX_ROUNDS):
            basic = normalize_basic(url)
            after = self.rules.apply(basic) if self.rules else basic
            if after in (url, basic):
                return after
            url = after
        raise BadUrl("normalizer_loop", url)

    def steps(self, url: str) -> list[tuple[str, str]]:
        """Returns what changes the URL, in order: (what did it, the URL after)."""
        steps: list[tuple[str, Callable[[str], str]]] = [("basic normalizer", normalize_basic)]
        for number, rule in enumerate(self.rules.rules if self.rules else (), start=1):
            steps.append((f"normalizer rule {number} {rule.pattern.text}", rule.apply))
        done: list[tuple[str, str]] = []
        for _ in range(MAX_ROUNDS):
            before = len(done)
            for name, step in steps:
                after = step(url)
                if after != url:
                    done.append((name, after))
                url = after
            if len(done) == before:
                break
        return done
