"""Names of the files into which pages are dumped: as Nutch's ``dump`` and ``commoncrawldump`` name them.

A name comes from a stranger's URL. So only plain letters of it stay, and no name leads out of its folder.
"""

import hashlib
import re

from ...web.urls.row_keys import from_key, host_key_of

# As in Nutch: longer ones are cut.
_LONGEST_NAME, _LONGEST_ENDING = 32, 5
_WITHOUT_ENDING = "html"
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
_NO_LABEL = re.compile(r"[^a-z0-9_-]+")


def md5_name(key: str, *, flat: bool = False, ending: str = "") -> str:
    """Returns the name of a page's file: in two folders by its MD5, or in none.

    Args:
        key: Row key.
        flat: Whether all files are in one folder.
        ending: Ending of the file; empty takes that of the URL.

    >>> md5_name("com.a:http/x/logo.PNG?v=1")
    '16/6d/166dcfd5b5ca32a7053eda41038cb631_logo.PNG'
    >>> md5_name("com.a:http/../..%2F..%2Fetc", flat=True).partition("_")[2]
    '2F.2Fetc'
    """
    url = from_key(key)
    digest = hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    base, dot, own_ending = path.rpartition("/")[2].rpartition(".")
    base, own_ending = (base, own_ending) if dot else (own_ending, "")
    base = _NOT_PLAIN.sub("_", base).strip("_")[:_LONGEST_NAME]
    own_ending = _NOT_PLAIN.sub("", own_ending)[:_LONGEST_ENDING] or _WITHOUT_ENDING
    name = f"{digest}_{base}.{ending or own_ending}"
    return name if flat else f"{digest[:2]}/{digest[2:4]}/{name}"


def reversed_name(key: str, name: str = "") -> str:
    """Returns the name of a page's file in folders of its reversed host.

    Args:
        key: Row key.
        name: Name in the folder; empty takes the SHA-256 of the URL.

    >>> reversed_name("com.a.www:http/x", "1.cbor")
    'com/a/www/1.cbor'
    >>> reversed_name("[::1]:http:8080/x", "y"), reversed_name(":file/x", "y")
    ('_1/y', 'localhost/y')
    """
    host = host_key_of(key)
    labels = [host] if host.startswith("[") else host.split(".")
    folders = [_NO_LABEL.sub("_", label).removesuffix("_") or "_" for label in labels if label]
    name = name or hashlib.sha256(from_key(key).encode()).hexdigest()
    return "/".join([*(folders or ["localhost"]), name])
