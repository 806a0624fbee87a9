from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.protocol.journal import SUMMARY
from tests.unit.cli.conftest import Penstock
from tests.unit.inspection.conftest import History

Ask = Callable[..., dict[str, Any]]


def test_repair(ask: Ask, run: Penstock, shop: History) -> None:
    shop.land()
    shop.run()
    shop.run()
    assert "fits its log" in run("repair", "bronze.events").output
    (shop.table / SUMMARY).unlink()
    assert "`--yes` repairs it" in run("repair", "bronze.events", exits=1).output
    (one,) = ask("repair", "bronze.events", "--yes")["findings"]
    assert one["repaired"]
    assert ask("repair", "bronze.events")["findings"] == []
