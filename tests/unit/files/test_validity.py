"""Why a plan can never run."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.files import FileSource
from penstock.files.plan import FilePlan
from penstock.files.records import INGESTED, lines
from penstock.files.roots import Roots
from penstock.files.source import list_root
from penstock.files.validity import changed_files, unlike_config


@pytest.fixture
def plan(tmp_path: Path) -> FilePlan:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("x")
    listed = list_root(str(tmp_path)).sort_by("path")
    return FilePlan(1, 1, lines(listed, INGESTED), replace=True, roots=Roots((str(tmp_path),)))


def source(root: object, **config) -> FileSource:
    return FileSource.from_mapping({"source_roots": [str(root)], **config})


def test_a_plan_of_this_config_may_run(plan, tmp_path):
    assert unlike_config(plan, source(tmp_path)) is None
    assert changed_files(plan, {}) == {}


def test_a_plan_of_other_roots_or_patterns_creates_another_table(plan, tmp_path):
    assert "below none of the roots" in (unlike_config(plan, source(tmp_path / "elsewhere")) or "")
    assert "patterns" in (unlike_config(plan, source(tmp_path, source_patterns=["^a"])) or "")


def test_an_append_does_not_depend_on_the_config(plan, tmp_path):
    append = dataclasses.replace(plan, replace=False)
    assert unlike_config(append, source(tmp_path / "elsewhere")) is None


def test_files_that_vanished_or_changed(plan, tmp_path):
    (tmp_path / "a.json").unlink()
    os.utime(tmp_path / "b.json", (1, 1))
    found = changed_files(plan, {})
    assert found == {str(tmp_path / "a.json"): "vanished", str(tmp_path / "b.json"): "changed"}


def test_files_that_are_not_read_may_change(plan, tmp_path):
    (tmp_path / "a.json").unlink()
    assert changed_files(dataclasses.replace(plan, lines=plan.lines.slice(1)), {}) == {}
    assert isinstance(plan.lines, pa.Table)
