"""The options that all parsers share."""

from ..base.agent import AgentOptions
from ..base.dataclass import dataclass
from ..base.imports import check_library
from ..base.options import option, seconds, shared_option
from ..plugins.plugin_options import PluginOptions
from ..plugins.plugins import PluginGroup
from ..robots.robots_options import RobotsOptions

PARSERS = PluginGroup("nutbeam.parsers", "parser", keyed="parsers")


@dataclass(frozen=True)
class ParseOptions(PluginOptions):
    """Options of the content to extract from a page, and limits."""

    GROUP = "parse"

    # Nutch's 100 hide most of an index page or of a manual.
    max_outlinks: int = option(
        10_000,
        "Most links kept per page, of those that pass the filters; -1: no limit. Nutch keeps 100.",
        unit="links",
        nutch="db.max.outlinks.per.page",
    )
    outlinks_ignore_tags: tuple[str, ...] = option(
        (),
        "Elements whose links are not followed, such as img or script.",
        nutch="parser.html.outlinks.ignore_tags",
    )
    form_use_action: bool = option(
        False,
        "Follow the action of forms, except of those with the method POST.",
        nutch="parser.html.form.use_action",
    )
    parser_timeout: float = seconds(
        30.0,
        "Longest time that the parsing of a page may take.",
        nutch="parser.timeout",
        minimum=0.1,
    )
    headings: tuple[str, ...] = option(
        ("h1", "h2"),
        "Headings whose texts go into the metadata of a page, under these names.",
        nutch="headings",
        choices=("h1", "h2", "h3", "h4", "h5", "h6"),
    )
    structured_data: bool = option(
        True,
        "Store the structured data of pages: JSON-LD, microdata, RDFa, Open Graph and the like.",
    )
    detect_language: bool = option(
        False,
        "Guess the language of pages that declare none from their text; needs nutbeam[language].",
        nutch="lang.extraction.policy",
    )
    agent_name: str = shared_option(AgentOptions, "agent_name")
    robots_agents: tuple[str, ...] = shared_option(RobotsOptions, "robots_agents")
    skip_truncated: bool = option(
        True,
        "Do not parse pages that were cut at the content limit.",
        nutch="parser.skip.truncated",
    )
    feed_documents: bool = option(
        False, "Make a document of each item of a feed, if the item's link is on the feed's host."
    )
    pdf_max_pages: int = option(
        2000,
        "Most pages of a PDF that are read, each in about 2 ms; -1: no limit.",
        unit="pages",
    )

    parsers: tuple[str, ...] = option(
        (),
        "Plug-ins that parse documents, as TYPE=NAME with a media type or TYPE/*, in place of the "
        "parser of nutbeam, if it has one.",
        pattern=r"[a-z0-9.+-]+/(?:[a-z0-9.+-]+|\*)=[^=+]+",
        form="TYPE=NAME, such as text/html=NAME or image/*=NAME",
        nutch="parse-plugins.xml",
        plugins=True,
    )

    def parser_plugin(self, *types: str) -> str | None:
        """Returns the name of the plug-in that parses documents of a media type, or None.

        Args:
            types: The types of a document: that of its bytes, and the declared one.
        """
        chosen = dict(text.split("=", 1) for text in self.parsers)
        keys = (key for mime in types for key in (mime, f"{mime.partition('/')[0]}/*"))
        return next((chosen[key] for key in keys if key in chosen), None)

    def __post_init__(self) -> None:
        if self.detect_language:
            check_library("py3langid", "--detect_language", "language")
