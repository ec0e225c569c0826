"""What is taken from documents: the options that all parsers share."""

import dataclasses

from ..options import option


@dataclasses.dataclass(frozen=True)
class ParseOptions:
    """What is taken from a page, and how much trouble it may make."""

    max_outlinks: int = option(
        100,
        "links kept per page, of those that pass the filters; negative: all",
        unit="links",
        nutch="db.max.outlinks.per.page",
        group="parse",
    )
    outlinks_ignore_tags: tuple[str, ...] = option(
        (),
        "elements whose links are not followed, such as img or script",
        nutch="parser.html.outlinks.ignore_tags",
        group="parse",
    )
    form_use_action: bool = option(
        False,
        "follow the action of forms, except of those that post",
        nutch="parser.html.form.use_action",
        group="parse",
    )
    parser_timeout: float = option(
        30.0,
        "time after which the parsing of a page is given up",
        unit="s",
        nutch="parser.timeout",
        minimum=0.1,
        group="parse",
    )
    max_nesting: int = option(
        5000,
        "pages that nest deeper go to a slower parser that does not mind",
        unit="elements",
        minimum=100,
        group="parse",
    )
    skip_truncated: bool = option(
        True,
        "do not parse pages that were cut at the content limit",
        nutch="parser.skip.truncated",
        group="parse",
    )
    feed_documents: bool = option(
        False,
        "make a document of each item of a feed whose link is on the feed's own host",
        group="parse",
    )
