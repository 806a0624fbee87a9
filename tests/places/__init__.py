"""Where the functional tests run: `pytest --on local|s3|cluster|cluster-s3`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.places.cluster import Cluster
from tests.places.place import Compute, Disk, Place, Store
from tests.places.s3 import S3

PLACES: dict[str, tuple[type[Compute], type[Store]]] = {
    "local": (Compute, Disk),
    "s3": (Compute, S3),
    "cluster": (Cluster, Disk),
    "cluster-s3": (Cluster, S3),
}
"""Each place by its name: where Spark computes, and where the lakes are."""


@contextmanager
def open_place(name: str, folder: Path) -> Iterator[Place]:
    """The place of a test run, its servers running until the block ends. `folder` is above every test's own folder."""
    compute, store = PLACES[name]
    with store.open(folder) as opened, compute.open(folder) as computing:
        yield Place(name, computing, opened)


__all__ = ["PLACES", "Place", "open_place"]
