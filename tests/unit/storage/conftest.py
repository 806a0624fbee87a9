"""A server of S3."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.s3_server import S3, serve


@pytest.fixture
def s3() -> Iterator[S3]:
    with serve() as server:
        yield server
