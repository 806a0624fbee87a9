"""A lake of 0.1.0 goes on under the current code: nothing comes in again, nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.compatibility.lake_0_1_0 import OldLake, Row

EVENTS = "bronze.events"


def same(have: list[Row], want: list[Row]) -> bool:
    """Whether both have the same rows, each as often."""
    return _counted(have) == _counted(want)


def _counted(rows: list[Row]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def event(id: int) -> Row:
    return {"id": id, "kind": "new", "amount": id}


def test_the_unfinished_plan_is_run_as_it_stands_and_new_files_come_in_once(old: OldLake) -> None:
    in_plan = [line["path"] for line in _lines(old, EVENTS, 25)]
    assert [Path(path).name for path in in_plan] == ["042.json", "043.json"]
    before = old.rows(EVENTS)
    old.land("events/100.json", event(2000), event(2001))
    report = old.ingest(EVENTS)
    assert (report.files, report.rows, report.quarantined, report.skipped) == (4, 8, {}, 0)
    finished = old.rows(EVENTS, old.marks(EVENTS)[25])
    assert same(finished, before + old.landed("events", "04[23].json"))
    assert same(old.rows(EVENTS), old.landed("events"))
    assert old.ingest(EVENTS).nothing_new


def test_compactions_of_both_versions_are_read_together(old: OldLake) -> None:
    """The folder may hold three files, so that each run compacts what 0.1.0 has compacted."""
    for number in range(4):
        old.land(f"events/{200 + 2 * number}.json", event(3000 + 2 * number))
        old.land(f"events/{201 + 2 * number}.json", event(3001 + 2 * number))
        old.ingest(EVENTS)
        assert same(old.rows(EVENTS), old.landed("events"))
        assert old.ingest(EVENTS).nothing_new
    assert not (old.table(EVENTS) / "_checkpoint" / "sources" / "22.parquet").exists()


def test_a_full_refresh_builds_the_same_rows(old: OldLake) -> None:
    report = old.ingest(EVENTS, full_refresh=True, max_files_per_trigger=100)
    assert [Path(path).name for path in report.quarantined] == ["bad.json"]
    assert same(old.rows(EVENTS), old.landed("events"))
    assert old.ingest(EVENTS).nothing_new
    old.land("events/300.json", event(4000))
    assert old.ingest(EVENTS).rows == 1
    assert same(old.rows(EVENTS), old.landed("events"))


@pytest.mark.parametrize("name", ["bronze.orders", "bronze.payments"])
def test_a_root_by_a_link_or_a_uri_goes_on(old: OldLake, name: str) -> None:
    folder = name.split(".")[1]
    version = DeltaTable(str(old.table(name))).version()
    assert old.ingest(name).nothing_new
    old.land(f"{folder}/100.json", event(5000))
    assert old.ingest(name).rows == 1
    assert same(old.rows(name), old.landed(folder))
    assert old.ingest(name).nothing_new
    assert DeltaTable(str(old.table(name))).version() == version + 1


@pytest.mark.parametrize(
    ("name", "root"),
    [
        ("bronze.orders", "{place}/landing/orders"),
        ("bronze.orders", "file://{place}/landing/./orders_link/"),
        ("bronze.payments", "{place}/landing/payments"),
        ("bronze.payments", "{place}/landing/payments_link"),
    ],
)
def test_a_root_by_another_spelling_is_the_same_root(old: OldLake, name: str, root: str) -> None:
    folder = name.split(".")[1]
    (old.place / "landing" / "payments_link").symlink_to("payments")
    old.land(f"{folder}/100.json", event(5000))
    report = old.ingest(name, source_roots=[root.format(place=old.place)])
    if report.files > 1 and old.plan(name)["format_version"] == 1:
        pytest.skip("plans of format 1 tell files by the spelling of their root")
    assert report.files == 1
    assert same(old.rows(name), old.landed(folder))
    assert old.ingest(name).nothing_new


def test_changes_of_a_join_are_followed_from_where_they_were(old: OldLake) -> None:
    name = "gold.customers"
    assert not same(old.rows(name), customers(old))
    report = old.merge_changes(name)
    assert (report.rows_inserted, report.rows_updated, report.rows_deleted) == (1, 1, 1)
    assert same(old.rows(name), customers(old))
    change(old)
    old.merge_changes(name)
    assert same(old.rows(name), customers(old))
    assert old.merge_changes(name).nothing_new
    assert DeltaTable(str(old.table(name))).metadata().configuration["penstock.generation"] == "0"


def test_changes_of_an_aggregate_go_on_after_the_unfinished_plan(old: OldLake) -> None:
    name = "gold.balances"
    assert old.plan(name)["number"] == 2
    change(old)
    report = old.merge_changes(name)
    assert len(report.windows) == 2
    assert old.marks(name).keys() >= {2, 3}
    assert same(old.rows(name, old.marks(name)[2]), balances(old, 4))
    assert same(old.rows(name), balances(old))
    assert old.merge_changes(name).nothing_new
    assert DeltaTable(str(old.table(name))).metadata().configuration["penstock.generation"] == "0"


def test_windows_that_are_added_go_on_after_the_unfinished_plan(old: OldLake) -> None:
    name = "silver.added_readings"
    before = old.rows(name)
    old.land_day(8)
    old.run_windows(name, "2026-04-07", "2026-04-09")
    assert same(old.rows(name, old.marks(name)[5]), before + old.landed("readings/2026/04/06"))
    assert same(old.rows(name), old.landed("readings"))
    assert set(old.run_windows(name, "2026-04-07", "2026-04-09")) == {"OK nothing new"}
    assert same(old.rows(name), old.landed("readings"))


def test_windows_that_replace_go_on_and_tell_the_one_without_a_record(old: OldLake) -> None:
    name = "silver.readings"
    old.land_day(8)
    old.run_windows(name, "2026-04-07", "2026-04-09")
    assert len(old.warnings) == 1
    assert "--event-time-start 2026-04-06 --event-time-end 2026-04-07" in old.warnings[0]
    old.run_windows(name, "2026-04-06", "2026-04-07", named=True)
    assert same(old.rows(name), old.landed("readings"))
    old.run_windows(name, "2026-04-07", "2026-04-09")
    assert old.warnings == []
    assert same(old.rows(name), old.landed("readings"))


def test_a_run_that_finds_nothing_starts_no_spark(gone_on: OldLake) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.compatibility.lake_0_1_0 import OldLake\n"
        "old = OldLake(Path(sys.argv[1]))\n"
        "assert all(old.ingest(name).nothing_new for name in old.models['files'])\n"
        "assert all(old.merge_changes(name).nothing_new for name in old.models['changes'])\n"
        "said = old.run_windows('silver.added_readings', '2026-04-07', '2026-04-09')\n"
        "assert set(said) == {'OK nothing new'}, said\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    place = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    subprocess.run([sys.executable, "-c", code, str(gone_on.place)], check=True, env=place)


def _lines(old: OldLake, name: str, number: int) -> list[Row]:
    """The files of a plan."""
    text = (old.table(name) / "_checkpoint" / "sources" / str(number)).read_text()
    return [json.loads(line) for line in text.splitlines()[1:]]


def change(old: OldLake) -> None:
    """Another change of each kind, after those that 0.1.0 has not merged."""
    lake = old.lake
    lake.sql("update silver.customers set balance = balance * 2, country = 'it' where id in (2, 4)")
    lake.sql("delete from silver.customers where id = 8")
    lake.sql("insert into silver.customers values (30, 'name 30', 'fr', 9, true), (31, 'name 31', 'de', 9, false)")
    lake.sql("update silver.countries set region = 'far south' where code = 'it'")


def customers(old: OldLake) -> list[Row]:
    """The rows of gold.customers, computed from its sources."""
    regions = {row["code"]: row["region"] for row in old.rows("silver.countries")}
    return [
        {"id": row["id"], "name": row["name"], "region": regions[row["country"]], "balance": row["balance"]}
        for row in old.rows("silver.customers")
        if row["active"]
    ]


def balances(old: OldLake, version: int | None = None) -> list[Row]:
    """The rows of gold.balances, computed from its source at a version."""
    found: dict[str, list[int]] = {}
    for row in old.rows("silver.customers", version):
        found.setdefault(row["country"], []).append(row["balance"])
    return [{"country": country, "customers": len(values), "balance": sum(values)} for country, values in found.items()]
