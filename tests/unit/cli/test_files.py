from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.cli.conftest import Penstock
from tests.unit.inspection.conftest import History

Ask = Callable[..., dict[str, Any]]


def test_the_files_of_a_table(ask: Ask, run: Penstock, shop: History) -> None:
    for _ in range(3):
        shop.land()
        shop.run()
    shop.quarantine(shop.land("bad.json"))
    shop.land("late.json")
    document = ask("files", "bronze.events")
    assert [file["status"] for file in document["files"]] == ["ingested"] * 3 + ["quarantined", "waiting"]
    assert document["total"] == 5
    assert [file["status"] for file in ask("files", "bronze.events", "--status", "waiting")["files"]] == ["waiting"]
    assert len(ask("files", "bronze.events", "--limit", "2")["files"]) == 2
    assert ask("files", "bronze.events", "--since", "2999-01-01")["files"] == []
    assert len(ask("files", "bronze.events", "--since", "1d", "--limit", "0")["files"]) == 5
    assert "it is no JSON" in run("files", "bronze.events").output


def test_why(ask: Ask, run: Penstock, shop: History) -> None:
    path = shop.land()
    shop.run()
    bad = shop.land("bad.json")
    shop.quarantine(bad)
    assert ask("files", "bronze.events", "--why", path)["outcome"] == "in the table"
    assert ask("files", "bronze.events", "--why", bad, exits=1)["outcome"] == "quarantined"
    assert "penstock files release bronze.events" in run("files", "bronze.events", "--why", bad, exits=1).output


def test_release(ask: Ask, run: Penstock, shop: History) -> None:
    shop.land()
    shop.run()
    bad = shop.land("bad.json")
    shop.quarantine(bad)
    assert ask("files", "release", "bronze.events", bad)["paths"] == [str(bad)]
    shop.run()
    assert ask("files", "bronze.events", "--why", bad)["outcome"] == "in the table"
    assert sum(shop.rows().values()) == 2
    assert "not in quarantine" in run("files", "release", "bronze.events", bad, exits=1).stderr
