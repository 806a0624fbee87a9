from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from deltalake import DeltaTable

from penstock.files.release import release
from penstock.inspection.history import Event, history
from penstock.inspection.table_ledger import TableLedger
from penstock.protocol.journal import Journal
from tests.unit.inspection.conftest import History
from tests.unit.windows.world import DAY, FIRST, World


def told(shop: History, **options: object) -> list[Event]:
    return history(TableLedger.open(shop.lake, "bronze.events", check=False), **options)  # type: ignore[arg-type]


def seen(shop: History) -> list[tuple[str, int | None, str]]:
    return [(event.kind, event.batch, event.what) for event in told(shop)]


def test_batches_cancelled_plans_releases_and_others(shop: History) -> None:
    shop.land()
    (shop.landing / "empty.json").write_text("")
    shop.run()
    shop.write_beside()
    shop.cancel(shop.land())
    bad = shop.land("bad.json")
    shop.quarantine(bad)
    release(Journal(str(shop.table)), [str(bad)])
    shop.run()
    events = seen(shop)
    assert [(kind, batch) for kind, batch, _ in events] == [
        ("batch", 5),
        ("release", 4),
        ("batch", 3),
        ("batch", 2),
        ("cancelled", 1),
        ("other", None),
        # delta-rs creates the table and fills it in two commits.
        ("refresh", 0),
        ("refresh", 0),
    ]
    whats = [what for _, _, what in events]
    assert whats[0] == "1 file"
    assert whats[1] == "1 released"
    assert whats[2] == "1 quarantined"
    assert "changed after it was planned" in whats[4]
    assert whats[6] == "1 file, 1 skipped"


def test_rows_and_times(shop: History) -> None:
    shop.land(rows=3)
    shop.run()
    shop.land(rows=4)
    shop.run()
    newest = told(shop, limit=1)[0]
    assert (newest.rows_inserted, newest.version) == (4, 2)
    assert newest.seconds is not None
    assert newest.time is not None
    assert (datetime.now(timezone.utc) - newest.time).total_seconds() < 60


def test_since_and_limit(shop: History) -> None:
    for _ in range(4):
        shop.land()
        shop.run()
    assert len(told(shop, limit=2)) == 2
    assert len(told(shop)) == 5
    assert told(shop, since=datetime(2999, 1, 1, tzinfo=timezone.utc)) == []


def test_a_generation_before_a_refresh_has_no_number_any_more(shop: History) -> None:
    for _ in range(2):
        shop.land()
        shop.run()
    shop.run(full_refresh=True)
    kinds = [(event.kind, event.batch) for event in told(shop)]
    assert kinds[0] == ("refresh", 0)
    assert kinds[-1][1] is None


def test_a_table_whose_newest_plan_is_gone_still_has_its_log(shop: History) -> None:
    shop.land()
    shop.run()
    shop.plan(0).unlink()
    assert told(shop)[0].rows_inserted == 1


def test_windows(tmp_path: Path) -> None:
    world = World(tmp_path)
    for day in range(3):
        world.happen(day)
    world.run(FIRST + 2 * DAY, delete_before_insert=False)
    world.run(FIRST + 3 * DAY, delete_before_insert=False)
    ledger = TableLedger.open(world.lake, "silver.events")
    newest = history(ledger, 1)[0]
    assert (newest.kind, newest.what, newest.rows_inserted) == ("window", "2026-04-03 … 2026-04-04", 1)
    DeltaTable(str(world.table)).delete("id = 0")
    newest = history(TableLedger.open(world.lake, "silver.events"), 1)[0]
    assert (newest.kind, newest.operation, newest.rows_deleted) == ("other", "DELETE", 1)
    assert "id = 0" in newest.what
