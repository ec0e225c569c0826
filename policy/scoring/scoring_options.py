"""Options of scorings."""

import dataclasses

from ...web.base.options import option

BUILT_IN_SCORINGS = (
    *("opic", "opic_cash", "depth", "link", "orphan", "similarity", "metadata", "urlboost"),
)
_WITHOUT_SCORES = ("depth", "link", "orphan", "metadata")  # they change no score of a row
# Two forms of one algorithm: both would add the scores of links.
_EITHER = ("opic", "opic_cash")


@dataclasses.dataclass(frozen=True)
class OrphanOptions:
    """Options of orphans: pages to which no page links any more."""

    GROUP = "scoring"

    mark_gone_after: int = option(
        2_592_000,
        "Scoring orphan: time without a link to a page after which it becomes db_gone.",
        unit="s",
        nutch="scoring.orphan.mark.gone.after",
        minimum=0,
    )
    mark_orphan_after: int = option(
        3_456_000,
        "Scoring orphan and --drop_orphans: time without a link to a page after which it is an "
        "orphan; the scoring gives it the status db_orphan.",
        unit="s",
        nutch="scoring.orphan.mark.orphan.after",
        minimum=0,
    )

    def __post_init__(self) -> None:
        if self.mark_orphan_after < self.mark_gone_after:
            raise ValueError(
                f"--mark_orphan_after must be at least --mark_gone_after ({self.mark_gone_after} "
                f"s), got {self.mark_orphan_after} s"
            )


@dataclasses.dataclass(frozen=True)
class ScoringOptions(OrphanOptions):
    """Options of the scorings, and their order."""

    GROUP = "scoring"

    scoring: tuple[str, ...] = option(
        ("opic",),
        "How pages and links are scored: scorings, applied in this order. "
        f"{', '.join(BUILT_IN_SCORINGS)}; plug-ins add more. inject, generate and updatedb need "
        "the same value.",
        nutch="scoring.filter.order",
        pattern="[A-Za-z0-9_.-]+",
    )
    depth_max: int = option(
        1000,
        "Scoring depth: pages at this depth pass no links on; a seed has depth 1. _maxdepth_=N in "
        "a seed list is the limit for the pages found from that seed.",
        nutch="scoring.depth.max",
        minimum=1,
    )
    depth_override_pattern: str = option(
        "",
        "Scoring depth: the links of pages whose URL matches this regular expression get the limit "
        "--depth_max_override, whatever the limit of their page.",
        nutch="scoring.depth.override.pattern",
    )
    depth_max_override: int = option(
        10,
        "Scoring depth: the limit for pages found from URLs that match --depth_override_pattern.",
        nutch="scoring.depth.max.override",
        minimum=1,
    )
    goldstandard_file: str = option(
        "",
        "Scoring similarity: file with the text that pages are compared with.",
        nutch="cosine.goldstandard.file",
    )
    stopword_file: str = option(
        "",
        "Scoring similarity: file of words that do not count, one per line.",
        nutch="scoring.similarity.stopword.file",
    )
    metadata_to_links: tuple[str, ...] = option(
        (),
        "Scoring metadata: names in the metadata of a page that its links get, too.",
        nutch="scoring.parse.md, urlmeta.tags",
    )
    parsemeta_to_crawldb: tuple[str, ...] = option(
        (),
        "Names in the metadata of documents that updatedb copies to the metadata of their rows.",
        nutch="db.parsemeta.to.crawldb",
    )
    url_boost_file: str = option(
        "",
        "Scoring urlboost: file of lines FACTOR PATTERN; the first pattern that "
        "matches a URL gives its factor.",
    )
    url_boost_of: str = option(
        "choice",
        "Scoring urlboost: what is multiplied. choice: the value by which generate chooses URLs. "
        "new: the score of a new URL, once; then urlboost must come after scorings that change "
        "scores.",
        choices=("choice", "new"),
    )

    def __post_init__(self) -> None:
        OrphanOptions.__post_init__(self)
        if not self.scoring:
            raise ValueError("--scoring must name at least one scoring, got ''")
        for name in self.scoring:
            if self.scoring.count(name) > 1:
                raise ValueError(f"--scoring may name a scoring once, got {name!r} twice")
        if all(name in self.scoring for name in _EITHER):
            raise ValueError("--scoring must have one of opic and opic_cash, got both")
        if "metadata" in self.scoring and not self.metadata_to_links:
            raise ValueError("--scoring metadata needs names: give --metadata_to_links")
        if self.url_boost_of == "new" and "urlboost" in self.scoring:
            # Before a scoring that may give scores, a new URL has none that could be multiplied.
            later = self.scoring[self.scoring.index("urlboost") + 1 :]
            if giving := [name for name in later if name not in _WITHOUT_SCORES]:
                raise ValueError(
                    f"--scoring must have urlboost after {giving[0]} with --url_boost_of new, "
                    f"got {','.join(self.scoring)!r}"
                )


@dataclasses.dataclass(frozen=True)
class BoostOptions:
    """Options of the factor that the score of a page has in an index."""

    GROUP = "scoring"

    score_power: float = option(
        0.5,
        "Scoring opic: the boost of a page in an index is its score to this power.",
        nutch="indexer.score.power",
    )
    normalize_score: float = option(
        1.0,
        "Scoring link: the boost of a page in an index is its score times this.",
        nutch="link.analyze.normalize.score",
    )
