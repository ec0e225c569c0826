"""What the writers of an index get: which documents, and which of their fields."""

from collections.abc import Collection, Mapping

from ...web.base.dataclass import dataclass
from ...web.base.wording import quote_value

_ID = "id"


@dataclass(frozen=True)
class FieldMapping:
    """Changes of the fields of documents before a writer gets them, in this order.

    Attributes:
        copy: (field, fields that get its values, too).
        rename: (field, its new name).
        remove: Fields that are left out.

    Raises:
        ValueError: It changes ``id``, by which documents are replaced and deleted.
    """

    copy: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        copied = [(source, target) for source, targets in self.copy for target in targets]
        changes = [
            *(f"copy {source} to {target}" for source, target in copied if target == _ID != source),
            *(
                f"rename {old} to {new}"
                for old, new in self.rename
                if _ID in (old, new) and old != new
            ),
            *(f"remove {name}" for name in self.remove if name == _ID),
        ]
        if changes:
            raise ValueError(
                f"a mapping must not change {_ID}, which names a document: got {quote_value(changes[0])}"
            )


@dataclass(frozen=True)
class WriterRule:
    """A writer, with what it gets.

    Attributes:
        name: Its name.
        kind: Kind of the writer: ``solr``.
        parameters: What the kind needs, such as an address.
        mapping: Changes of fields.
    """

    name: str
    kind: str
    parameters: Mapping[str, str]
    mapping: FieldMapping = FieldMapping()


@dataclass(frozen=True)
class IndexRoute:
    """Documents that go to some writers.

    Attributes:
        expr: Expression that is true of them; empty: those that no other route takes.
        writers: Names of the writers.
    """

    expr: str
    writers: tuple[str, ...]


@dataclass(frozen=True)
class IndexRoutes:
    """Writers, and which documents each gets.

    Attributes:
        writers: The writers.
        routes: Where documents go; if there are none, every writer gets every document.

    Raises:
        ValueError: Two writers have one name, or a route names a writer that is not there.
    """

    writers: tuple[WriterRule, ...]
    routes: tuple[IndexRoute, ...] = ()

    def __post_init__(self) -> None:
        names = [writer.name for writer in self.writers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two index writers are called {quote_value(name)}")
        for route in self.routes:
            for name in route.writers:
                if name not in names:
                    defined = ", ".join(names) or "none"
                    raise ValueError(f"no index writer {quote_value(name)}: there are {defined}")

    def drop_writers(self, names: Collection[str]) -> "IndexRoutes":
        """Returns the routes without some writers.

        Raises:
            ValueError: A route names one of them, or no writer is left.
        """
        for route in self.routes:
            for name in route.writers:
                if name in names:
                    raise ValueError(
                        f"a route names index writer {quote_value(name)}, which cannot be used"
                    )
        writers = tuple(writer for writer in self.writers if writer.name not in names)
        if not writers:
            raise ValueError("no index writer can be used")
        return IndexRoutes(writers, self.routes)
