"""What the docs name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.config import keys
from penstock.config.reference import page
from penstock.lake.reserved import DESCRIPTIONS, TABLES

ROOT = Path(__file__).parents[2]
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "guarantees.md").read_text())))


@pytest.mark.parametrize("path", NAMED)
def test_every_test_that_holds_a_guarantee_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_reference_is_that_of_the_table_of_keys() -> None:
    assert (ROOT / "docs" / "reference.md").read_text() == page(), (
        "docs/reference.md is out of date: run `make reference`"
    )


@pytest.mark.parametrize("guide", ["files.md", "changes.md", "microbatch.md"])
def test_every_key_of_a_guide_is_one(guide: str) -> None:
    section = (ROOT / "docs" / guide).read_text().split("## Configuration", 1)[1].split("\n## ", 1)[0]
    named = re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE)
    assert named
    assert [name for name in named if name not in keys.BY_NAME] == []


def test_the_page_of_own_tables_has_every_column() -> None:
    text = (ROOT / "docs" / "own-tables.md").read_text()
    found = dict(re.findall(r"<!-- columns: (\S+) -->\n(.*?)<!-- end -->", text, re.DOTALL))
    assert found == {
        str(name): f"`{name}`: {DESCRIPTIONS[name]}\n\n| column | type | content |\n|---|---|---|\n"
        + "".join(f"| `{column.name}` | {column.type} | {column.comment} |\n" for column in columns)
        for name, columns in TABLES.items()
    }
