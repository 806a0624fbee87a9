from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.cli.conftest import Penstock
from tests.unit.inspection.conftest import History

Ask = Callable[..., dict[str, Any]]


def test_an_empty_lake(ask: Ask, run: Penstock, shop: History) -> None:
    shop.lake.create_schema("bronze")
    assert ask("status")["relations"] == []
    assert "0 relations" in run("status").output


def test_what_needs_attention_comes_first(ask: Ask, run: Penstock, shop: History, follower: None) -> None:
    shop.land()
    shop.run()
    document = ask("status")
    assert [one["name"] for one in document["relations"]] == ["silver.copy", "bronze.events"]
    assert document["totals"] == {"relations": 2, "errors": 0, "attention": 1}
    lines = run("status").output.splitlines()
    assert lines[1].split()[:2] == ["silver.copy", "changes"]
    assert "3 versions behind" in lines[1]


def test_one_table(ask: Ask, shop: History, follower: None) -> None:
    assert [one["name"] for one in ask("status", "bronze.events")["relations"]] == ["bronze.events"]


def test_a_broken_table_exits_with_1(ask: Ask, run: Penstock, shop: History) -> None:
    shop.land()
    shop.run()
    shop.plan(0).unlink()
    assert ask("status", exits=1)["totals"]["errors"] == 1
    assert "lacks plan" in " ".join(run("status", exits=1).output.split())
