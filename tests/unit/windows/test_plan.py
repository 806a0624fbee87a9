"""The plan of a pack of windows, as bytes."""

from __future__ import annotations

import json

import pytest

from penstock.errors import PenstockError
from penstock.windows import Window
from penstock.windows.plan import APPEND, WindowPlan
from penstock.windows.window import Ranges


def window(start: str, end: str) -> Window:
    return Window.of(start, end)


PLAN = WindowPlan(
    number=7,
    generation=3,
    windows=(window("2026-04-02", "2026-04-03"),),
    mode=APPEND,
    before=Ranges.of([window("2026-04-01", "2026-04-02")]),
    whole=window("2026-04-01", "2026-04-10"),
    schema={"format": "json", "schema": {}, "folders": []},
)


def test_it_is_read_as_it_was_written() -> None:
    assert WindowPlan.from_bytes(7, PLAN.to_bytes(), "here") == PLAN


def test_its_keys_on_disk_are_those_of_earlier_versions() -> None:
    content = json.loads(PLAN.to_bytes())
    assert content["shape"] == PLAN.schema
    assert set(content) == {
        "format_version", "kind", "ledger", "number", "generation", "batchId", "replace", "mode", "time", "windows",
        "before", "whole", "shape",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "can't be read"),
        (b'{"kind": "files", "format_version": 1}', "records files, not windows"),
        (b'{"kind": "windows", "format_version": 9}', "format 9"),
        (b'{"kind": "windows", "format_version": 1, "number": 8}', "can't be read"),
    ],
)
def test_what_is_no_plan_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        WindowPlan.from_bytes(7, data, "here")
