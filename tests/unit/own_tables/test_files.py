"""`penstock.files` and `penstock.batches`: lakes with two lives, quarantined, skipped and waiting files, cancelled plans."""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.errors import PenstockError
from penstock.files.release import release
from penstock.lake.lookup import Lookup
from penstock.lake.reserved import TABLES
from penstock.protocol.journal import Journal
from penstock.sql.names import Name
from penstock.sql.wanted import EVERYTHING, Wanted, wanted_by
from tests.unit.inspection.conftest import History


class Killed(BaseException):
    pass


@pytest.fixture
def shop(tmp_path: Path) -> History:
    return History(tmp_path)


def rows(shop: History, name: str, wanted: Wanted = EVERYTHING) -> list[dict[str, Any]]:
    found: pa.Table = shop.lake.own_rows.rows(Name("penstock", name), wanted)
    assert found.column_names == [column.name for column in TABLES[Name("penstock", name)]]
    return found.to_pylist()


def seen(shop: History, *columns: str, of: str = "files", wanted: Wanted = EVERYTHING) -> list[tuple[Any, ...]]:
    found = rows(shop, of, wanted)
    for row in found:
        if "path" in row:
            row["path"] = Path(row["path"]).name
    return [tuple(row[column] for column in columns) for row in found]


def test_every_file_with_its_batch_and_its_reason(shop: History) -> None:
    moment = time.time() - 3600
    shop.land("a.json", at=moment)
    (shop.landing / "empty.json").write_text("")
    shop.run(safety_buffer_seconds=60, max_files_per_trigger=1)
    os.utime(shop.landing / "empty.json", (moment, moment))
    shop.run(safety_buffer_seconds=60)
    shop.quarantine(shop.land("bad.json"), "it is no JSON")
    shop.run(safety_buffer_seconds=600)
    shop.land("late.json", at=moment)
    shop.run(safety_buffer_seconds=600)
    shop.land("young.json")
    shop.land("ready.json", at=moment)
    assert seen(shop, "path", "status", "reason", "batch_id") == [
        ("a.json", "ingested", None, 0),
        ("empty.json", "skipped", "empty", 1),
        ("bad.json", "quarantined", "it is no JSON", 2),
        ("late.json", "ingested", None, 3),
        ("ready.json", "waiting", None, None),
        ("young.json", "waiting", "younger than the safety buffer", None),
    ]
    first = rows(shop, "files")[0]
    assert (first["table_schema"], first["table_name"]) == ("bronze", "events")
    assert first["path"] == str(shop.landing / "a.json")
    assert first["size"] == (shop.landing / "a.json").stat().st_size
    assert first["modified_at"] == datetime.fromtimestamp(int(moment * 1000) / 1000, tz=timezone.utc)
    assert abs(first["planned_at"].timestamp() - time.time()) < 600


def test_a_file_that_waits_longer_than_an_hour(shop: History) -> None:
    shop.land()
    shop.run()
    shop.land("old.json", at=time.time() - 7200)
    shop.land("new.json")
    hour_ago = datetime.fromtimestamp(time.time() - 3600, tz=timezone.utc)
    late = [row for row in rows(shop, "files", wanted_by("select * from penstock.files where status = 'waiting'", "penstock", "files")) if row["modified_at"] < hour_ago]  # fmt: skip
    assert [Path(row["path"]).name for row in late] == ["old.json"]


def test_released_and_replaced_files(shop: History) -> None:
    shop.land()
    shop.run()
    bad = shop.land("bad.json")
    shop.quarantine(bad)
    release(Journal(str(shop.table)), [str(bad)])
    assert seen(shop, "path", "status", "batch_id")[1:] == [
        ("bad.json", "quarantined", 1),
        ("bad.json", "released", 2),
        ("bad.json", "waiting", None),
    ]


def test_only_the_current_life_counts(shop: History) -> None:
    for _ in range(3):
        shop.land()
        shop.run()
    shop.begin_again()
    shop.run()
    assert seen(shop, "path", "status", "batch_id") == [
        ("file-00000.json", "ingested", 0),
        ("file-00001.json", "ingested", 0),
        ("file-00002.json", "ingested", 0),
    ]
    assert seen(shop, "batch_id", "files", of="batches") == [(0, 3)]
    shop.run(full_refresh=True)
    assert seen(shop, "batch_id", "files", of="batches") == [(0, 3)]


def test_what_is_not_wanted_is_not_read(shop: History, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.land()
    shop.run()
    shop.land()
    assert len(seen(shop, "path", wanted=Wanted.only(table_name="events"))) == 2
    assert seen(shop, "path", wanted=Wanted.only(table_name="orders")) == []
    assert seen(shop, "path", wanted=Wanted.only(table_schema="silver")) == []
    recorded = wanted_by("select * from penstock.files where status <> 'waiting'", "penstock", "files")
    for path in shop.landing.iterdir():
        path.unlink()
    shop.landing.rmdir()
    # The roots are not listed.
    assert seen(shop, "path", "status", wanted=recorded) == [("file-00000.json", "ingested")]
    with pytest.raises(
        PenstockError, match=r"files that wait for bronze.events are not known: .*WHERE status <> 'waiting'"
    ):
        rows(shop, "files")
    assert rows(shop, "files", Wanted.only(table_name="other")) == []

    def fail(*args: object) -> None:
        raise AssertionError("the relations of this schema were listed")

    monkeypatch.setattr(Lookup, "relations", fail)
    assert rows(shop, "files", Wanted.only(table_schema="silver")) == []


def test_the_rows_of_several_tables_are_in_one_chunk(shop: History) -> None:
    """PySpark's createDataFrame stops at an empty chunk: a table without files that wait would end the rows."""
    for name in ("events", "more", "other"):
        shop.name, shop.table = Name("bronze", name), shop.table.parent / name
        shop.land(f"{name}.json")
        shop.run(source_patterns=[f"{name}.json"])
    found = shop.lake.own_rows.rows(Name("penstock", "files"))
    assert found["table_name"].to_pylist() == ["events", "more", "other"]
    assert {len(column.chunks) for column in found.columns} == {1}


def test_a_rewritten_file_that_the_next_run_fails_for_is_an_error(shop: History) -> None:
    path = shop.land()
    shop.run()
    os.utime(path, (1, 1))
    with pytest.raises(PenstockError, match="changed after the ingestion"):
        rows(shop, "files")


def test_tables_that_others_made_have_no_files(shop: History) -> None:
    write_deltalake(str(shop.table.parent / "plain"), pa.table({"id": [1]}))
    assert rows(shop, "files") == []
    assert rows(shop, "batches") == []


def test_a_restore_by_others_does_not_hide_the_files(shop: History) -> None:
    for _ in range(2):
        shop.land()
        shop.run()
    DeltaTable(str(shop.table)).restore(1)
    # The marks stay: the ledger still has both. `penstock.relations` has the error.
    assert seen(shop, "status", "batch_id") == [("ingested", 0), ("ingested", 1)]
    assert "restored to an older version" in rows(shop, "relations")[0]["error"]


def test_a_ledger_without_its_plan_is_an_error(shop: History) -> None:
    shop.land()
    shop.run()
    shop.plan(0).unlink()
    with pytest.raises(PenstockError, match="lacks plan"):
        rows(shop, "files")
    assert "lacks plan" in rows(shop, "relations")[0]["error"]


def test_batches_with_their_commits(shop: History) -> None:
    shop.land(rows=2)
    (shop.landing / "empty.json").write_text("")
    shop.run()
    shop.write_beside()
    shop.cancel(shop.land(rows=3))
    shop.quarantine(shop.land("bad.json"))
    columns = ("batch_id", "status", "files", "files_skipped", "files_quarantined", "rows_inserted", "version")
    assert seen(shop, *columns, of="batches") == [
        (0, "committed", 1, 1, 0, 2, 1),
        (1, "cancelled", 1, 0, 0, 0, 3),
        (2, "committed", 1, 0, 0, 3, 4),
        (3, "committed", 0, 0, 1, 0, 5),
    ]
    found = rows(shop, "batches")
    assert [row["number"] - shop.generation for row in found] == [0, 1, 2, 3]
    assert "changed after it was planned" in found[1]["reason"]
    assert [row["reason"] for row in found if row["status"] == "committed"] == [None, None, None]
    for row in found:
        assert row["planned_at"] <= row["committed_at"]
        assert row["seconds"] == pytest.approx((row["committed_at"] - row["planned_at"]).total_seconds(), abs=0.01)
    sizes = [path.stat().st_size for path in (shop.landing / "file-00000.json", shop.landing / "file-00002.json")]
    assert [found[0]["size"], found[2]["size"]] == sizes


def test_an_unfinished_batch(shop: History) -> None:
    shop.land()
    shop.run()
    shop.land()

    def kill(name: str) -> None:
        if name == "planned":
            raise Killed

    with pytest.raises(Killed):
        shop.run(step=kill)
    last = rows(shop, "batches")[-1]
    assert (last["batch_id"], last["status"], last["files"], last["committed_at"]) == (1, "unfinished", 1, None)
    assert last["planned_at"] is not None
    assert [row["status"] for row in rows(shop, "files")] == ["ingested", "waiting"]


def test_batches_whose_plans_are_compacted_and_whose_commits_are_gone(shop: History) -> None:
    for _ in range(25):
        shop.land()
        shop.run(source_compaction_interval=5, source_retention_files=3)
    for version in range(8):
        (shop.table / "_delta_log" / f"{version:020}.json").unlink()
    found = rows(shop, "batches")
    assert [(row["batch_id"], row["status"], row["files"]) for row in found] == [(n, "committed", 1) for n in range(25)]
    assert found[0]["version"] is None
    assert found[0]["planned_at"] is not None
    assert (found[24]["version"], found[24]["rows_inserted"]) == (25, 1)


def test_files_and_history_of_one_table(shop: History) -> None:
    shop.land()
    shop.run()
    shop.write_beside()
    shop.land()
    files, history = shop.lake.files("Bronze.Events"), shop.lake.history("bronze.events")
    assert files["status"].to_pylist() == ["ingested", "waiting"]
    assert history["kind"].to_pylist()[0] == "other"
    assert history["batch"].to_pylist()[1:] == [0, 0]
    write_deltalake(str(shop.table.parent / "plain"), pa.table({"id": [1]}))
    with pytest.raises(PenstockError, match=r"bronze\.plain is not built from files"):
        shop.lake.files("bronze.plain")
    assert shop.lake.history("bronze.plain")["kind"].to_pylist() == ["other"]
    with pytest.raises(PenstockError, match=r"There is no relation bronze\.gone"):
        shop.lake.files("bronze.gone")
