from __future__ import annotations

import os
import time

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from penstock.inspection.relations_status import RelationStatus, relations_status, totals
from penstock.lake.relations import View
from tests.unit.inspection.conftest import History
from tests.unit.windows.world import DAY, FIRST, World


def status(shop: History, name: str = "bronze.events") -> RelationStatus:
    return {one.name: one for one in relations_status(shop.lake)}[name]


def test_a_table_of_files(shop: History) -> None:
    for _ in range(3):
        shop.land()
        shop.run()
    found = status(shop)
    assert (found.kind, found.rows, found.files, found.waiting, found.quarantined) == ("files", 3, 3, 0, 0)
    assert (found.urgency, found.attention, found.error) == (0, (), None)
    assert found.last_run is not None


def test_files_that_wait_are_counted_as_the_last_run_selected_them(shop: History) -> None:
    shop.land()
    shop.run(source_exclude=["skip"], safety_buffer_seconds=0)
    shop.land("skip.json")
    shop.land()
    assert status(shop).waiting == 1
    assert status(shop).attention == ("1 file to come in",)


def test_files_younger_than_the_safety_buffer_wait_too(shop: History) -> None:
    shop.land(at=time.time() - 100)
    shop.run(safety_buffer_seconds=60)
    shop.land()
    assert status(shop).attention == ("1 file younger than the safety buffer",)


def test_quarantined_files_need_attention_until_they_are_released(shop: History) -> None:
    shop.land()
    shop.run()
    shop.quarantine(shop.land("bad.json"))
    found = status(shop)
    assert (found.quarantined, found.urgency, found.attention[0]) == (1, 2, "1 file in quarantine")


def test_a_second_life_has_its_own_numbers(shop: History) -> None:
    for _ in range(3):
        shop.land()
        shop.run()
    shop.begin_again()
    shop.run()
    found = status(shop)
    assert (found.rows, found.waiting, found.error) == (3, 0, None)


def test_a_rewritten_file_stops_the_next_run(shop: History) -> None:
    path = shop.land()
    shop.run()
    os.utime(path, (1, 1))
    found = status(shop)
    assert found.urgency == 3
    assert "changed after the ingestion" in (found.error or "")


def test_a_ledger_without_its_plan_is_an_error(shop: History) -> None:
    shop.land()
    shop.run()
    shop.plan(0).unlink()
    assert "lacks plan" in (status(shop).error or "")


def test_a_restore_by_others_is_an_error(shop: History) -> None:
    for _ in range(2):
        shop.land()
        shop.run()
    DeltaTable(str(shop.table)).restore(1)
    assert "restored to an older version" in (status(shop).error or "")


def test_a_log_that_cannot_be_read_is_an_error_of_this_relation_alone(shop: History) -> None:
    shop.land()
    shop.run()
    log = shop.table.parent / "broken" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("{")
    found = relations_status(shop.lake)
    assert [(one.name, one.urgency) for one in found] == [("bronze.broken", 3), ("bronze.events", 0)]
    assert totals(found) == {"relations": 2, "errors": 1, "attention": 0}


def test_views_and_plain_tables(shop: History) -> None:
    write_deltalake(str(shop.table.parent / "plain"), pa.table({"id": [1]}))
    shop.lake.storage.write("bronze/v/_view.json", View("select 1", ()).to_bytes())
    assert (status(shop, "bronze.plain").kind, status(shop, "bronze.plain").rows) == ("table", 1)
    assert status(shop, "bronze.v") == RelationStatus("bronze.v", "view")


def test_many_small_files_need_attention(shop: History) -> None:
    for number in range(60):
        write_deltalake(str(shop.table), pa.table({"id": [number]}), mode="append")
    assert status(shop).attention == ("60 small files",)


def test_a_small_file_alone_in_its_partition_is_not_counted(shop: History) -> None:
    write_deltalake(str(shop.table), pa.table({"id": [1, 2, 3], "p": [1, 2, 3]}), partition_by=["p"])
    assert status(shop).small_files == 0
    write_deltalake(str(shop.table), pa.table({"id": [1], "p": [1]}), mode="append")
    assert status(shop).small_files == 2


def test_holes_between_windows(tmp_path) -> None:  # type: ignore[no-untyped-def]
    world = World(tmp_path)
    for day in range(6):
        world.happen(day)
    world.run(FIRST + 2 * DAY)
    world.run(FIRST + 6 * DAY, named=(4, 6))
    (found,) = relations_status(world.lake)
    assert (found.kind, found.holes, found.urgency) == ("windows", 1, 2)
    assert found.attention == ("never built: 2026-04-03 … 2026-04-05",)


def test_versions_behind_a_followed_table(shop: History, follower: None) -> None:
    found = status(shop, "silver.copy")
    assert (found.kind, found.behind, found.attention) == ("changes", 2, ("2 versions behind",))
