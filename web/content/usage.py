"""What a page allows its content to be used for (IETF aipref: Content-Usage; noai; TDMRep).

A preference is a category with yes or no, such as ``train-ai=n``. If a page says
both yes and no, no counts.
"""

import re
from collections.abc import Iterable, Mapping

FIELD = "content-usage"
TDM_FIELD = "tdm-reservation"
TRAIN_AI = "train-ai"
MAX_CATEGORIES = 20
_MAX_CHARS = 4096
# A member of a dictionary (RFC 8941 3.2) whose value is the token y or n; parameters do not count.
_MEMBER = re.compile(
    r"[ \t]*([a-z*][a-z0-9_.*-]{0,63})[ \t]*=[ \t]*([yn])[ \t]*(?:;[^,]*)?", re.IGNORECASE
)

Preferences = dict[str, bool]


def read_usage(value: str) -> Preferences:
    """Returns the preferences in a Content-Usage; members that are none are left out.

    >>> read_usage("train-ai=n, search=y;x=1, other=?0")
    {'train-ai': False, 'search': True}
    """
    members = (_MEMBER.fullmatch(member) for member in value[:_MAX_CHARS].split(","))
    return join_usage({m[1].lower(): m[2] in "yY"} for m in members if m)


def join_usage(several: Iterable[Mapping[str, bool]]) -> Preferences:
    """Returns preferences from several places together.

    >>> join_usage([{"search": True}, {"search": False, "train-ai": True}])
    {'search': False, 'train-ai': True}
    """
    all_preferences: Preferences = {}
    for preferences in several:
        for category, allowed in preferences.items():
            if category in all_preferences or len(all_preferences) < MAX_CATEGORIES:
                all_preferences[category] = all_preferences.get(category, True) and allowed
    return all_preferences


def usage_text(preferences: Mapping[str, bool]) -> str | None:
    """Returns preferences as a Content-Usage, sorted; None if there are none.

    >>> usage_text({"train-ai": False, "search": True})
    'search=y, train-ai=n'
    """
    pairs = [f"{name}={'y' if allowed else 'n'}" for name, allowed in sorted(preferences.items())]
    return ", ".join(pairs) or None


def usage_of_page(
    robots: str | None, headers: Iterable[tuple[str, str]], directives: Iterable[str]
) -> str | None:
    """Returns what a page allows its content to be used for; None if it does not say.

    Args:
        robots: What its robots.txt says of it.
        headers: Headers of its response, names in lower case.
        directives: Its robots directives; ``noai`` means ``train-ai=n``.

    >>> usage_of_page("train-ai=y", [("content-usage", "search=n")], ["noai"])
    'search=n, train-ai=n'
    """
    usages = [read_usage(robots or "")]
    usages += [read_usage(value) for name, value in headers if name == FIELD]
    is_reserved = any(name == TDM_FIELD and value.strip() == "1" for name, value in headers)
    if is_reserved or "noai" in directives:
        usages.append({TRAIN_AI: False})
    return usage_text(join_usage(usages))
