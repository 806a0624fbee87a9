from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.cli.conftest import Penstock
from tests.unit.inspection.conftest import History

Ask = Callable[..., dict[str, Any]]


def test_history(ask: Ask, run: Penstock, shop: History) -> None:
    for _ in range(3):
        shop.land()
        shop.run()
    shop.write_beside()
    assert [event["kind"] for event in ask("history", "bronze.events", "--limit", "3")["commits"]] == [
        "other",
        "batch",
        "batch",
    ]
    lines = run("history", "bronze.events").output.splitlines()
    assert lines[2].split()[0] == "3"
    assert lines[2].rstrip().endswith("1 file")
    assert ask("history", "bronze.events", "--since", "2999-01-01")["commits"] == []
