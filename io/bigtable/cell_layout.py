"""Derives the layout of cells in Bigtable from the declaration of a component.

A row is one cell; ``cells.py`` packs it. ``policy/components/kinds.py`` declares the columns in
their order, the versions of the schema, and the column family. So the layouts of all versions
follow: columns of fixed size in the order of the schema, then the others in that order.
"""

import functools
import re
from collections.abc import Sequence

import pyarrow as pa

from ...policy.components.declaration import Kind, RowLayout
from ...policy.components.kinds import KINDS, kinds_in_rows
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from .packed_values import can_pack, is_number

# The column family of nutbeam's internal rows.
OWN_FAMILY = "m"
_FAMILY = re.compile(r"[-_.a-zA-Z0-9]{1,64}")
_MOST_COLUMNS = 64  # bits of ``present``
# Components whose column families the oldest tables have. Tables may be older than other components
# in rows; an operation that begins adds their families.
_IN_FIRST_TABLES = ("state", "hosts")


@dataclass(frozen=True)
class Layout:
    """One version of the layout of a cell.

    Attributes:
        version: Its number, 1 to 255.
        fixed: Columns of fixed size, in the header.
        variable: Columns of variable size, after the header.
        due: Column at the start of the cell; empty if there is none.
    """

    version: int
    fixed: tuple[str, ...]
    variable: tuple[str, ...]
    due: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names in the order of the bits of ``present``."""
        return (*((self.due,) if self.due else ()), *self.fixed, *self.variable)


@dataclass(frozen=True)
class CellKind:
    """A component of the web table whose rows are packed cells.

    Attributes:
        component: Its name.
        family: Column family.
        qualifier: Column.
        schema: The columns of a row; the row key is the column ``key``.
        layouts: The layouts of all versions; the last one is written now.
    """

    component: str
    family: str
    qualifier: bytes
    schema: pa.Schema
    layouts: tuple[Layout, ...]

    @property
    def newest(self) -> Layout:
        return self.layouts[-1]


def cell_kind(component: str) -> CellKind:
    """Returns the kind of the cells of a component.

    Raises:
        UserError: This nutbeam has no such component in rows.

    >>> cell_kind("hosts").family, [layout.version for layout in cell_kind("hosts").layouts]
    ('h', [1, 2, 3, 4, 5])
    """
    kind = KINDS.get(component)
    if kind is None or kind.layout is not RowLayout.ROWS:
        raise UserError(f"component {component!r} is of a newer nutbeam: upgrade nutbeam")
    return derive_cells(kind)


def later_families() -> dict[str, str]:
    """Returns the components whose column families a table may lack, by family.

    >>> later_families()
    {'l': 'links'}
    """
    later = (name for name in kinds_in_rows() if name not in _IN_FIRST_TABLES)
    return {cell_kind(name).family: name for name in later}


@functools.lru_cache(maxsize=64)
def derive_cells(kind: Kind) -> CellKind:
    """Derives the cells of a component.

    Raises:
        ValueError: Its declaration is not possible in rows.
    """
    names = kind.schema.names
    family, _, column = (kind.cell or f"{kind.name}:row").partition(":")
    cells = (other.cell or other.name for other in KINDS.values() if other.name != kind.name)
    others = {cell.partition(":")[0] for cell in cells}
    if not _FAMILY.fullmatch(family) or family in {*others, OWN_FAMILY}:
        raise ValueError(
            f"component {kind.name!r} needs a column family of its own, got {family!r}"
        )
    if names[0] != "key" or len(names) > _MOST_COLUMNS + 1:
        raise ValueError(
            f"rows of component {kind.name!r} must have a key first, then up to {_MOST_COLUMNS} "
            f"columns, got {len(names)} with {names[0]!r} first"
        )
    if kind.due and kind.schema.field(kind.due).type != pa.int64():
        raise ValueError(
            f"column {kind.due!r} of component {kind.name!r} must be an int64 to be due"
        )
    for field in kind.schema:
        if not can_pack(field.type):
            raise ValueError(
                f"column {field.name!r} of component {kind.name!r} has a type that rows in "
                f"Bigtable cannot have: {field.type}"
            )
    ends = [*map(names.index, kind.later_versions), len(names)]
    layouts = (_layout(number, kind, names[:end]) for number, end in enumerate(ends, 1))
    return CellKind(kind.name, family, column.encode(), kind.schema, tuple(layouts))


def _layout(version: int, kind: Kind, names: Sequence[str]) -> Layout:
    rest = [name for name in names if name not in ("key", kind.due)]
    fixed = tuple(name for name in rest if is_number(kind.schema.field(name).type))
    variable = tuple(name for name in rest if name not in fixed)
    return Layout(version, fixed, variable, kind.due)
