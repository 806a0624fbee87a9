"""The marks for places are checked when tests are collected."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.places import PLACES
from tests.places.marks import skip_elsewhere


class Item:
    nodeid = "test_a"

    def __init__(self, *marks: pytest.MarkDecorator) -> None:
        self.marks = [mark.mark for mark in marks]

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark for mark in self.marks if mark.name == name]

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.mark)

    @property
    def skipped(self) -> str | None:
        return next((mark.kwargs["reason"] for mark in self.marks if mark.name == "skip"), None)


def marked(name: str, *args: Any, **kwargs: Any) -> Item:
    return Item(SimpleNamespace(mark=pytest.Mark(name, args, kwargs, _ispytest=True)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("item", "skipped_on"),
    [
        (marked("local_disk", "links"), {"s3", "cluster-s3"}),
        (marked("not_on", "cluster", "cluster-s3", reason="slow"), {"cluster", "cluster-s3"}),
        (marked("slow"), set()),
    ],
    ids=["local_disk", "not_on", "another mark"],
)
def test_a_test_is_skipped_where_its_mark_says(item: Item, skipped_on: set[str]) -> None:
    for name, (_, store) in PLACES.items():
        one = Item()
        one.marks = list(item.marks)
        skip_elsewhere([one], name, on_disk=store.on_disk)  # type: ignore[list-item]
        assert (one.skipped is not None) == (name in skipped_on)


@pytest.mark.parametrize(
    "item",
    [
        marked("local_disk"),
        marked("local_disk", reason="links"),
        marked("not_on", "s4", reason="slow"),
        marked("not_on", "s3"),
        marked("not_on", reason="slow"),
    ],
)
def test_a_mark_that_says_nothing_is_an_error(item: Item) -> None:
    with pytest.raises(pytest.UsageError, match="test_a: "):
        skip_elsewhere([item], "local", on_disk=True)  # type: ignore[list-item]
