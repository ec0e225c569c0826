"""Guesses the encoding of a text in a Latin alphabet by its letters beyond ASCII."""

from collections import Counter

from .whatwg_encodings import decode_as

# The letters beyond ASCII of languages, by the encodings that pages in them have had; of
# encodings that fit as well the first is taken.
_ALPHABETS = {
    "windows-1252": (
        "äöüß",  # German
        "àâæçèéêëîïôœùûüÿ",  # French
        "áéíñóúüªº¿¡",  # Spanish
        "àáâãçéêíóôõúüªº",  # Portuguese
        "àáèéìíîòóùú",  # Italian
        "áèéëïóöü",  # Dutch
        "àçèéíïòóúü",  # Catalan
        "åäöéü",  # Swedish
        "æøåéèóòôäöü",  # Danish, Norwegian
        "äöåšžõü",  # Finnish, Estonian
        "áðéíóúýþæö",  # Icelandic
        "áðíóúýæø",  # Faroese
        "çë",  # Albanian
    ),
    "windows-1250": (
        "ąćęłńóśźż",  # Polish
        "áčďéěíňóřšťúůýž",  # Czech
        "áäčďéíĺľňóôŕšťúýž",  # Slovak
        "áéíóöőúüű",  # Hungarian
        "čćđšž",  # Croatian, Slovene
        "ăâîşţ",  # Romanian
    ),
    "windows-1254": ("çğıöşüİ",),  # Turkish
    "windows-1257": (
        "ąčęėįšųūž",  # Lithuanian
        "āčēģīķļņšūž",  # Latvian
        "äöõüšž",  # Estonian
    ),
    "windows-1258": ("àáâăèéêíóôơùúưđ\u0300\u0301\u0303\u0309\u0323",),  # Vietnamese
}
_ALPHABETS["iso-8859-2"] = _ALPHABETS["windows-1250"]
# What stands in texts of any language.
_SIGNS = frozenset("\xa0«»„“”‘’‚‹›–—…•·©®™°§€")  # noqa: RUF001
_FITS = 0.95
_BETTER = 0.02
# With this many letters, a more usual encoding wins even if it fits no better.
_MANY = 10
_ASCII = bytes(range(128))


def latin_encoding(sample: bytes, name: str) -> str:
    """Returns a better guess than ``name`` for a text in one of these encodings, or ``name``.

    Better is one in which nearly all letters beyond ASCII are of one language, where in
    ``name`` some are not. Turkish, read as windows-1252, has letters that only Icelandic has,
    and others that Icelandic does not have.

    >>> latin_encoding("Yağmurlu bir gündü".encode("cp1254"), "windows-1252")
    'windows-1254'
    """
    if name not in _ALPHABETS:
        return name
    found = Counter(sample.translate(None, _ASCII))
    fit = {each: _fit(found, each) for each in _ALPHABETS}
    best = max(fit, key=lambda each: fit[each])
    order = list(_ALPHABETS)
    first = order.index(best) < order.index(name) and found.total() >= _MANY
    needed = fit[name] + (0 if first else _BETTER)
    return best if fit[best] >= max(_FITS, needed) else name


def _fit(found: Counter[int], name: str) -> float:
    """Returns the share of the letters that are of the language that most are of."""
    letters = [(decode_as(name, bytes([byte])), number) for byte, number in found.items()]
    letters = [(letter, number) for letter, number in letters if letter not in _SIGNS]
    total = sum(number for _, number in letters)
    known = (
        sum(number for letter, number in letters if letter in alphabet + alphabet.upper())
        for alphabet in _ALPHABETS[name]
    )
    return max(known) / total if total else 1.0
