"""The protocol with delta-rs in Spark's place: crashes at every step of every batch, and the cases that peers lose."""

from __future__ import annotations

import json
import os
import re
import time

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock import PenstockError
from penstock.delta.table import Table
from penstock.errors import StatementError
from penstock.protocol.run import run_job


class Crash(BaseException):
    """What no handler in the engine may swallow."""


def crash_at(count: int):
    seen = 0

    def step(name: str) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            raise Crash(name)

    return step


def test_a_crash_at_any_step_loses_and_doubles_nothing(shop):
    """Crash at the first step, run again; at the second, run again; … with new files in between."""
    config = {"max_files_per_trigger": 2, "source_compaction_interval": 2, "source_retention_files": 3}
    crashes = 0
    for count in range(1, 40):
        shop.land()
        shop.land()
        try:
            shop.run(step=crash_at(count), **config)
        except Crash:
            crashes += 1
        rows = shop.rows()
        assert set(rows.values()) <= {1}
    shop.run(**config)
    shop.check()
    assert crashes > 8


def test_nothing_new_changes_nothing(shop):
    shop.land()
    shop.run()
    version = Table.open(str(shop.table)).version
    report = shop.run()
    assert report.nothing_new
    assert report.version == version
    assert Table.open(str(shop.table)).version == version


def test_equal_timestamps_across_a_batch_cut(shop):
    for _ in range(7):
        shop.land(at=1_700_000_000)
    assert len(shop.run(max_files_per_trigger=3).batches) == 3
    shop.land(at=1_700_000_000)
    shop.run(max_files_per_trigger=3)
    shop.check()


def test_a_late_file_with_an_old_timestamp(shop):
    shop.land(at=1_700_000_000)
    shop.run()
    shop.land(at=1_500_000_000)
    assert shop.run().files == 1
    shop.check()


def test_a_root_and_a_pattern_added_later(shop, tmp_path):
    shop.land("a.json", at=1_700_000_000)
    shop.land("b.jsonl", at=1_600_000_000)
    shop.run(source_patterns=[r"\.json$"])
    assert sum(shop.rows().values()) == 1
    shop.run(source_patterns=[r"\.json$", r"\.jsonl$"])
    shop.check()
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.json").write_text(json.dumps({"id": 1000}))
    os.utime(other / "c.json", (1_400_000_000, 1_400_000_000))
    shop.expected[1000] += 1
    assert shop.run(source_roots=[str(shop.landing), str(other), str(other)]).files == 1
    shop.check()


def test_a_clock_ahead_of_the_stores_and_behind_it(shop):
    shop.land(at=time.time() + 3600)
    assert shop.run(safety_buffer_seconds=30).waiting == 1
    shop.run(safety_buffer_seconds=0)
    shop.check()
    shop.land(at=time.time() - 7200)
    shop.run(safety_buffer_seconds=30)
    shop.check()


def test_young_files_wait(shop):
    shop.land(at=time.time() - 5)
    report = shop.run(safety_buffer_seconds=30)
    assert report.nothing_new
    assert report.waiting == 1
    assert not shop.table.exists()


def test_a_renamed_file_is_a_new_file(shop):
    path = shop.land("a.json")
    shop.run()
    path.rename(path.with_name("b.json"))
    shop.expected[0] += 1
    shop.run()
    shop.check()


@pytest.mark.slow
def test_1200_batches_in_one_run(shop):
    for _ in range(1200):
        shop.land()
    report = shop.run(max_files_per_trigger=1)
    assert len(report.batches) == 1200
    shop.check()
    assert len(list(shop.sources.iterdir())) <= 100
    assert shop.run(max_files_per_trigger=1).nothing_new


def test_interval_1_with_retention_3_over_50_batches(shop):
    config = {"max_files_per_trigger": 1, "source_compaction_interval": 1, "source_retention_files": 3}
    for _ in range(50):
        shop.land()
        shop.run(**config)
    shop.check()
    assert len(list(shop.sources.iterdir())) <= 3
    assert shop.run(**config).nothing_new


def test_odd_names(shop):
    for name in (
        "a b.json",
        "ünïcode 文.json",
        "50%.json",
        "%41.json",
        "#x.json",
        "o'brien.json",
        "new\nline.json",
        "*[a]{b}?.json",
    ):
        shop.land(name)
    shop.run(max_files_per_trigger=3)
    shop.check()
    assert shop.run().nothing_new


def test_a_symlink_loop_ends(shop):
    shop.land("below/a.json")
    (shop.landing / "below" / "up").symlink_to(shop.landing, target_is_directory=True)
    shop.run()
    shop.check()
    assert shop.run().nothing_new


def test_empty_files_are_recorded_and_skipped(shop):
    shop.land()
    (shop.landing / "empty.json").touch()
    assert shop.run().skipped == 1
    assert shop.run().nothing_new
    (shop.landing / "empty too.json").touch()
    version = Table.open(str(shop.table)).version
    report = shop.run()
    assert (report.skipped, report.nothing_new) == (1, True)
    assert Table.open(str(shop.table)).version == version + 1
    assert shop.run().skipped == 0
    # An empty file that is filled later was never in.
    shop.land("empty.json")
    shop.run()
    shop.check()


def test_starting_timestamp_skips_on_the_first_run_only(shop):
    shop.land(at=1_600_000_000)
    shop.expected.clear()
    shop.land(at=1_700_000_000)
    config = {"starting_timestamp": "2023-01-01T00:00:00Z"}
    assert shop.run(**config).skipped == 1
    shop.check()
    shop.land(at=1_500_000_000)
    shop.run(**config)
    shop.check()


def test_batches_are_cut_oldest_first_by_files_and_bytes(shop):
    for at in (5, 3, 4, 1, 2):
        shop.land(f"{at}.json", at=1_700_000_000 + at, rows=10)
    report = shop.run(max_files_per_trigger=4, max_bytes_per_trigger=250)
    assert [batch.files for batch in report.batches] == [2, 2, 1]
    first = [json.loads(line)["path"] for line in shop.plan(0).read_text().splitlines()[1:]]
    assert [path.rsplit("/", 1)[1] for path in first] == ["1.json", "2.json"]
    one = shop.land(rows=100)
    assert one.stat().st_size > 250
    assert shop.run(max_bytes_per_trigger=250).files == 1


@pytest.mark.parametrize("policy", ["fail", "skip", "ingest"])
def test_a_rewritten_file(shop, policy):
    shop.land("a.json")
    shop.run()
    before = shop.expected.copy()
    shop.land("a.json", at=1_700_000_000)
    if policy == "fail":
        with pytest.raises(PenstockError, match=r"a\.json.*on_rewritten_file"):
            shop.run(on_rewritten_file=policy)
        return
    shop.run(on_rewritten_file=policy)
    if policy == "skip":
        shop.expected = before
    shop.check()
    assert shop.run(on_rewritten_file=policy).nothing_new


@pytest.mark.parametrize("damage", ["vanished", "changed"])
def test_a_file_that_goes_or_changes_after_its_plan(shop, damage):
    shop.land()
    shop.run()
    shop.land("gone.json")
    shop.land("stays.json")
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"))
    if damage == "vanished":
        (shop.landing / "gone.json").unlink()
    else:
        shop.land("gone.json", rows=3)
    del shop.expected[1]
    report = shop.run()
    shop.check()
    assert len(report.batches) == 1
    plan = json.loads(shop.plan(2).read_text().splitlines()[0])
    assert plan["voided"]["number"] == shop.generation + 1
    assert re.search(rf"gone\.json {damage}", plan["voided"]["reason"])
    assert shop.run().nothing_new


def test_a_void_is_known_though_the_run_died_right_after_it(shop):
    shop.land()
    shop.run()
    gone = shop.land("gone.json")
    shop.land("stays.json")
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"))
    gone.unlink()
    del shop.expected[1]
    with pytest.raises(Crash):
        shop.run(step=at_step("plan"))
    assert Table.open(str(shop.table)).mark == Table.open(str(shop.table)).void == shop.generation + 1
    assert not shop.plan(2).exists()
    shop.run()
    shop.check()


def test_a_void_at_the_edge_of_a_compaction_stays_a_void(shop):
    config = {"max_files_per_trigger": 1, "source_compaction_interval": 2, "source_retention_files": 1}
    shop.land(at=1)
    shop.run(**config)
    gone = shop.land("gone.json", at=2)
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"), **config)
    kept = gone.read_text()
    gone.unlink()
    for at in range(3, 9):
        shop.land(at=at)
    shop.run(**config)
    gone.write_text(kept)
    shop.run(**config)
    shop.check()


def test_the_first_plan_of_a_table_whose_file_vanished(shop):
    gone = shop.land("gone.json")
    shop.land("stays.json")
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"))
    gone.unlink()
    del shop.expected[0]
    shop.run()
    shop.check()
    assert shop.run().nothing_new


def test_a_full_refresh_starts_a_generation(shop):
    for _ in range(3):
        shop.land()
    shop.run(max_files_per_trigger=1)
    before = shop.generation
    report = shop.run(full_refresh=True, max_files_per_trigger=2)
    assert [batch.number for batch in report.batches] == [0, 1]
    shop.check()
    assert shop.generation == before + 3
    shop.land()
    assert shop.run().batches[0].number == 2
    shop.check()


def test_the_summary_is_never_read(shop):
    shop.land()
    shop.run()
    summary = shop.table / "_checkpoint" / "watermark.json"
    assert json.loads(summary.read_text())["batchId"] == 0
    summary.write_text("{ garbage")
    shop.land()
    shop.run()
    assert json.loads(summary.read_text())["batchId"] == 1
    summary.unlink()
    shop.run()
    assert json.loads(summary.read_text())["files"] == 2
    shop.check()


def test_a_missing_compaction_is_read_from_its_plans(shop):
    config = {"max_files_per_trigger": 1, "source_compaction_interval": 2}
    for _ in range(5):
        shop.land()
    shop.run(**config)
    shop.compaction(1).unlink()
    assert shop.run(**config).nothing_new
    shop.land()
    shop.run(**config)
    shop.check()


def test_a_missing_record_is_an_error_with_a_way_out(shop):
    shop.land()
    shop.run()
    shop.plan(0).unlink()
    with pytest.raises(
        PenstockError, match=rf"(?s)lacks batch {shop.generation}.*sources/{shop.generation}.*--full-refresh"
    ):
        shop.run()
    shop.run(full_refresh=True)
    shop.check()


@pytest.mark.parametrize("damage", [b"", b"garbage", b'{"format_version": 1}\n', b'{"format_version": 99}\n'])
def test_a_damaged_plan_is_an_error_that_names_it(shop, damage):
    shop.land()
    shop.run()
    shop.plan(0).write_bytes(damage)
    with pytest.raises(PenstockError, match=f"sources/{shop.generation}"):
        shop.run()
    assert sum(shop.rows().values()) == 1


def test_a_damaged_compaction_is_an_error_that_names_it(shop):
    config = {"max_files_per_trigger": 1, "source_compaction_interval": 2}
    for _ in range(2):
        shop.land()
    shop.run(**config)
    shop.compaction(1).write_bytes(b"garbage")
    with pytest.raises(PenstockError, match=rf"{shop.generation + 1}\.parquet"):
        shop.run(**config)


def test_a_table_of_another_is_refused(shop):
    write_deltalake(str(shop.table), pa.table({"id": pa.array([7], pa.int64())}))
    shop.land()
    with pytest.raises(PenstockError, match="rows that penstock did not write"):
        shop.run()
    shop.run(full_refresh=True)
    shop.check()


def test_an_expiring_mark_is_refused(shop):
    shop.land()
    shop.run()
    DeltaTable(str(shop.table)).alter.set_table_properties(
        {"delta.setTransactionRetentionDuration": "interval 1 days"}, raise_if_not_exists=False
    )
    with pytest.raises(PenstockError, match="setTransactionRetentionDuration"):
        shop.run()


def test_a_restore_past_our_last_commit_is_refused(shop):
    shop.land()
    shop.run()
    version = Table.open(str(shop.table)).version
    shop.land()
    shop.run()
    DeltaTable(str(shop.table)).restore(version)
    with pytest.raises(PenstockError, match=r"restored.*RESTORE the table to version"):
        shop.run()


def test_a_root_that_is_not_there_stops_the_run(shop):
    shop.land()
    with pytest.raises(PenstockError, match="source root does not exist"):
        shop.run(source_roots=[str(shop.landing), "/not/there"])
    assert not shop.table.exists()


def test_a_listing_that_fails_half_way_stops_the_run(shop, monkeypatch):
    shop.land("a.json")
    shop.land("below/b.json")
    whole = os.scandir

    def scandir(path):
        if str(path).endswith("below"):
            raise PermissionError(13, "Permission denied", path)
        return whole(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PenstockError, match=r"could not be listed.*below"):
        shop.run()
    assert not shop.table.exists()


def at_step(wanted: str):
    def step(name: str) -> None:
        if name == wanted:
            raise Crash(name)

    return step


def test_an_error_under_anothers_commit_is_a_lost_race(shop):
    """Whatever Delta calls it: the log says that the plan is in, and that is what counts."""
    shop.land()
    work = shop.work()
    write = work._write

    def fail_after(plan, reading, note, state):
        write(plan, reading, "penstock of another", state)
        raise StatementError("[DELTA_METADATA_MISMATCH] a mismatch", condition="DELTA_METADATA_MISMATCH")

    work._write = fail_after
    run_job(work)
    shop.check()
    shop.land()

    def fail(plan, reading, note, state):
        raise StatementError("[DELTA_METADATA_MISMATCH] a mismatch", condition="DELTA_METADATA_MISMATCH")

    work = shop.work()
    work._write = fail
    with pytest.raises(StatementError):
        run_job(work)
