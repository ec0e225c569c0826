"""A table in memory whose pages are fetched and updated with scorings, round by round."""

import random

import polars as pl
from file_changes import Earlier, changes_of, update_state
from frames import frame_of

from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.host_rows import Seeds
from nutbeam.policy.components.page_facts import BatchOrigin
from nutbeam.policy.components.schema import PAGES, SEEDS, STATE, empty
from nutbeam.policy.links import LinkOptions
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.policy.scoring.scorings import chosen_scorings
from nutbeam.policy.seeding import SeedOptions, SeedRules, inject_seeds
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.exchange.status import FETCH_SUCCESS, SUCCESS

NOW = 20_500 * DAY_MS
INTERVAL = 30 * DAY_MS
_NOTHING = Earlier()


def key(name):
    return f"com.example:http/{name}"


def scorings(*names, **options):
    """The scorings with these names."""
    return chosen_scorings(ScoringOptions(scoring=names or ("opic",), **options))


class ScoredWeb:
    """Applies inject and update to rows in memory.

    Args:
        names: Names of the scorings.
        options: Options of scorings, links and update.
    """

    def __init__(self, *names, **options):
        own = {field: options.pop(field) for field in list(options)
               if field in ScoringOptions.__dataclass_fields__}  # fmt: skip
        self.scorings = scorings(*names, **own)
        self.links = LinkOptions(**{"scope": "any", "depth": -1, **options})
        self.rows, self.now, self.counts = empty(STATE), NOW, {}

    def inject(self, *seeds, **options):
        lines = [{"order": n, **({"key": key(seed)} if isinstance(seed, str) else seed)}
                 for n, seed in enumerate(seeds)]  # fmt: skip
        self.rows, self.counts = inject_seeds(
            self.rows,
            frame_of(SEEDS, *lines),
            SeedRules(self.now, SeedOptions(**options), self.scorings),
        )

    def changes(self, pages, order=0, before=_NOTHING, **columns):
        """The changes of a file with pages: names, and the names that they link to."""
        known = {row["key"]: row for row in self.rows.to_dicts()}
        fetched, documents = [], []
        for name, targets in pages.items():
            row = known.get(key(name), {})
            page = {"key": key(name), "score": row.get("score"), "distance": row.get("distance"),
                    "fetch_time": self.now}  # fmt: skip
            fetched.append({**page, "fetch_status": FETCH_SUCCESS, "protocol_status": SUCCESS})
            if isinstance(targets, str):
                fetched[-1] |= {"redirect": targets}
                continue
            outlinks = [{"key": key(target)} for target in targets]
            given = {column: values.get(name) for column, values in columns.items()}
            documents.append({**page, "outlinks": outlinks or None, "parse_status": 1, **given})
        origin = BatchOrigin(order, "b", "d")
        changes, self.counts = changes_of(
            frame_of(PAGES, *fetched), frame_of(DOCUMENTS, *documents), origin, Seeds(),
            self.links, self.scorings, before._replace(state_rows=self.rows),
        )  # fmt: skip
        return changes

    def update(self, *changes):
        """Applies changes; a chunk may lack columns without values."""
        self.rows, _, counts, _ = update_state(
            self.rows, pl.concat(changes, how="diagonal"), self.now, UpdateOptions(),
            self.scorings,
        )  # fmt: skip
        self.counts |= counts

    def fetch(self, pages, **columns):
        """One round: the pages are fetched and link to others."""
        self.update(self.changes(pages, **columns))
        self.now += INTERVAL

    def column(self, name):
        """The values of a column by the names of pages."""
        names = self.rows.get_column("key").str.strip_prefix(key(""))
        return dict(zip(names, self.rows.get_column(name).to_list(), strict=True))


def random_pages(dice: random.Random, pages: int):
    """Pages that link to others at random; some have no link."""
    names = [f"p{n}" for n in range(pages)]
    some = dice.sample(names, dice.randint(1, pages))
    return {name: [other for other in dice.choices(names, k=dice.randint(0, 5)) if other != name]
            for name in some}  # fmt: skip
