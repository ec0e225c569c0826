"""Names in stores: Cloud Storage, S3, HDFS."""

import dataclasses
from pathlib import PurePosixPath
from typing import Self

# Each kind of store: its name, and the extra of nutbeam that installs its client.
STORES = {"gs": ("Google Cloud Storage", "gcp"), "s3": ("S3", "s3"), "hdfs": ("HDFS", "hdfs")}


@dataclasses.dataclass(frozen=True, order=True)
class StoreName:
    """A name in a store, with the methods of ``pathlib`` that need no request.

    Attributes:
        store: The store: ``gs://BUCKET``, ``s3://BUCKET`` or ``hdfs://HOST:PORT``.
        key: The name in the store.

    >>> name = StoreName("gs://bucket", PurePosixPath("table")) / "manifest"
    >>> str(name), name.scheme, name.parent.name
    ('gs://bucket/table/manifest', 'gs', 'table')
    """

    store: str
    key: PurePosixPath

    def __truediv__(self, name: str | PurePosixPath) -> Self:
        return dataclasses.replace(self, key=self.key / name)

    def __str__(self) -> str:
        return f"{self.store}/{self.key}" if self.key.parts else self.store

    @property
    def scheme(self) -> str:
        return self.store.partition("://")[0]

    @property
    def netloc(self) -> str:
        """The bucket, or host and port."""
        return self.store.partition("://")[2]

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def stem(self) -> str:
        return self.key.stem

    @property
    def suffix(self) -> str:
        return self.key.suffix

    @property
    def parent(self) -> Self:
        return dataclasses.replace(self, key=self.key.parent)

    @property
    def parents(self) -> tuple[Self, ...]:
        return tuple(dataclasses.replace(self, key=key) for key in self.key.parents)

    def with_name(self, name: str) -> Self:
        return dataclasses.replace(self, key=self.key.with_name(name))

    def with_suffix(self, suffix: str) -> Self:
        return dataclasses.replace(self, key=self.key.with_suffix(suffix))

    def relative_to(self, other: object, /) -> PurePosixPath:
        name, above = str(self), str(other)
        if not name.startswith(f"{above}/"):
            raise ValueError(f"{self} is not in {other}")
        return PurePosixPath(name.removeprefix(above).lstrip("/"))
