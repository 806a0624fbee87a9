"""What the docs name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "guarantees.md").read_text())))


@pytest.mark.parametrize("path", NAMED)
def test_every_test_that_holds_a_guarantee_is_there(path: str) -> None:
    assert (ROOT / path).exists()
