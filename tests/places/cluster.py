"""Spark on a cluster of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.places.place import Compute


class Cluster(Compute):
    """One master and workers on loopback."""

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[Cluster]:
        raise pytest.UsageError("There is no cluster for tests yet: use --on local or --on s3")
        yield cls()
