"""A place: where Spark computes, and the store where the tests' lakes and landing folders are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class Compute:
    """Spark in the process of the tests."""

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[Compute]:
        """With its servers running until the block ends; `folder` is above every test's own folder."""
        yield cls()

    @property
    def session(self) -> dict[str, Any]:
        """The keys of `session:` that Spark needs here; `spark_config` is merged key by key."""
        return {}


class Store:
    """A store. Whatever it is, its objects are files on this machine as well, so that a test can write and look."""

    on_disk = True
    """Whether Penstock sees the files on this machine, and no store."""

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[Store]:
        """With its servers running until the block ends; it serves what is below `folder`."""
        yield cls()

    @property
    def storage_options(self) -> dict[str, str]:
        """`storage_options` for the lakes here; none for a disk."""
        return {}

    def location(self, path: Path) -> str:
        """A path below the folder, as Penstock is given it."""
        return str(path)

    def path(self, location: str) -> Path:
        """The path of a location."""
        return Path(location)


class Disk(Store):
    """The local disk."""


@dataclass(frozen=True)
class Place:
    """Where the tests of one run are.

    A test works with paths of this machine, below pytest's temporary folder. `location` says how Penstock is given such
    a path: on S3 as `s3://…`, and the server serves this very folder.
    """

    name: str
    compute: Compute = field(default_factory=Compute)
    store: Store = field(default_factory=Disk)

    @property
    def on_disk(self) -> bool:
        return self.store.on_disk

    @property
    def storage_options(self) -> dict[str, str]:
        return self.store.storage_options

    def location(self, path: Path | str) -> str:
        """A path below pytest's temporary folder, as a root, a source or a table's location.

        >>> Place("local").location("/tmp/pytest-0/lake")
        '/tmp/pytest-0/lake'
        """
        return self.store.location(Path(path))

    def path(self, location: str) -> Path:
        """Where the files of a location are on this machine."""
        return self.store.path(location)

    def session(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A test's `session:` with what this place needs; what the place needs wins."""
        ours = self.compute.session
        config = {**given.get("spark_config", {}), **ours.get("spark_config", {})}
        return {**given, **ours, **({"spark_config": config} if config else {})}

    def connection(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `penstock.connect`, and the keys of a profile, but for the root."""
        options = self.storage_options
        return {"session": self.session(given), **({"storage_options": options} if options else {})}
