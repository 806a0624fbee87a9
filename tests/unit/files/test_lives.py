"""A plan, a ledger and a folder belong to one life of one table: what is left of another is neither run nor read."""

from __future__ import annotations

import json
import shutil
import time

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock import PenstockError
from penstock.delta.table import MARK, Table
from penstock.files import tidying
from penstock.protocol.plan import FORMAT
from penstock.protocol.run import run_job
from tests.unit.files.test_protocol import Crash, at_step


def header(path) -> dict:
    return json.loads(path.read_text().splitlines()[0])


def test_plans_of_an_earlier_life_are_not_run(shop):
    """A drop removes the log first; killed there, the plans stay."""
    for _ in range(6):
        shop.land()
    shop.run(max_files_per_trigger=2)
    shutil.rmtree(shop.table / "_delta_log")
    shop.run(max_files_per_trigger=3)
    shop.check()
    assert shop.run().nothing_new


def test_an_unfinished_plan_of_an_earlier_life_is_not_run(shop):
    shop.land()
    shop.run()
    shop.land()
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"))
    shutil.rmtree(shop.table / "_delta_log")
    shop.run(max_files_per_trigger=1)
    shop.check()


def test_compactions_of_an_earlier_life_are_not_read(shop):
    config = {"max_files_per_trigger": 1, "source_compaction_interval": 2}
    for _ in range(4):
        shop.land()
    shop.run(**config)
    shutil.rmtree(shop.table / "_delta_log")
    shop.run(max_files_per_trigger=1, source_compaction_interval=100)
    shop.check()
    assert shop.run().nothing_new


def test_a_table_that_is_dropped_between_planning_and_writing_the_plan(shop):
    for _ in range(3):
        shop.land()
    shop.run()
    shop.land()

    def drop(name: str) -> None:
        if name == "plan" and shop.table.exists():
            shutil.rmtree(shop.table)

    shop.run(step=drop)
    shop.check()
    assert shop.run().nothing_new


def test_the_first_number_is_above_those_of_earlier_lives(shop):
    shop.land()
    before = int(time.time() * 1000)
    shop.run()
    assert before <= shop.generation <= time.time() * 1000
    first = shop.generation
    later = (
        shop.plan(0).read_text().replace('"replace": true', '"replace": false').replace(str(first), str(first + 10**12))
    )
    shop.sources.joinpath(str(first + 10**12)).write_text(later)
    shutil.rmtree(shop.table / "_delta_log")
    shop.run()
    assert shop.generation == first + 10**12 + 1
    shop.check()


def test_a_plan_that_begins_a_life_is_continued(shop):
    """Two first runs share it."""
    shop.land()
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"))
    planned = next(shop.sources.iterdir())
    shop.land()
    shop.run()
    shop.check()
    assert shop.plan(0) == planned
    assert Table.open(str(shop.table)).properties["penstock.ledger"] == header(planned)["ledger"]


@pytest.mark.parametrize("now", [{"source_patterns": ["file-0"]}, {"source_roots": ["other"]}])
def test_a_plan_that_begins_a_life_and_was_made_by_another_config(shop, now):
    shop.land("unwanted.json")
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"))
    shop.expected.clear()
    if "source_roots" in now:
        shop.landing = shop.landing.with_name("other")
        now = {"source_roots": [str(shop.landing)]}
    shop.land()
    shop.run(**now)
    shop.check()


def test_every_record_of_a_life_carries_its_ledger(shop):
    config = {"max_files_per_trigger": 1, "source_compaction_interval": 2}
    for _ in range(3):
        shop.land()
    shop.run(**config)
    ledger = Table.open(str(shop.table)).properties["penstock.ledger"]
    for batch in range(3):
        assert header(shop.plan(batch))["ledger"] == ledger
        assert header(shop.plan(batch))["format_version"] == FORMAT == 2
    metadata = json.loads(pa.parquet.read_schema(shop.compaction(1)).metadata[b"penstock"])
    assert (metadata["ledger"], metadata["format_version"]) == (ledger, 2)
    shop.run(full_refresh=True, **config)
    assert Table.open(str(shop.table)).properties["penstock.ledger"] != ledger


def test_a_plan_copied_from_another_life_is_an_error(shop):
    shop.land()
    shop.run()
    shop.land()
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"))
    plan = shop.plan(1)
    plan.write_text(plan.read_text().replace(header(plan)["ledger"], "someone else's", 1))
    with pytest.raises(PenstockError, match=r"another life.*move the file away"):
        shop.run()
    assert sum(shop.rows().values()) == 1


def test_a_ledger_of_0_1_0_goes_on(shop):
    """It has neither the table property nor format 2, until it is refreshed."""
    config = {"max_files_per_trigger": 1, "source_compaction_interval": 2}
    for _ in range(3):
        shop.land()
    shop.run(**config)
    generation = shop.generation
    for number in (0, 1, 2):
        first, *lines = shop.plan(number).read_text().splitlines()
        old = {key: value for key, value in json.loads(first).items() if key not in ("ledger", "aliases", "written")}
        shop.plan(number).write_text("\n".join([json.dumps(old | {"format_version": 1}), *lines]) + "\n")
    compaction = shop.compaction(1)
    table = pa.parquet.read_table(compaction)
    old = json.loads(table.schema.metadata[b"penstock"]) | {"format_version": 1}
    old = {key: value for key, value in old.items() if key not in ("ledger", "aliases", "written", "roots")}
    pa.parquet.write_table(table.replace_schema_metadata({b"penstock": json.dumps(old).encode()}), compaction)
    for log in (shop.table / "_delta_log").glob("*.json"):
        kept = [json.loads(line) for line in log.read_text().splitlines()]
        for action in kept:
            action.get("metaData", {}).get("configuration", {}).pop("penstock.ledger", None)
        log.write_text("\n".join(map(json.dumps, kept)))
    assert shop.run(**config).nothing_new
    shop.land()
    shop.run(**config)
    shop.check()
    assert shop.generation == generation
    assert header(shop.plan(3))["format_version"] == 2
    assert header(shop.plan(3))["ledger"] is None
    shop.run(full_refresh=True, **config)
    shop.check()
    assert Table.open(str(shop.table)).properties["penstock.ledger"]


# What others do between two batches


def between_batches(shop, action):
    """Runs `action` once, after the first batch of a run was committed and before the second is planned."""
    done = []

    def step(name: str) -> None:
        if name == "summary" and not done:
            done.append(name)
            action()

    return step


@pytest.fixture
def restored(shop):
    for _ in range(2):
        shop.land()
        shop.run()
    before = Table.open(str(shop.table)).version - 1
    for _ in range(3):
        shop.land()
    return lambda: DeltaTable(str(shop.table)).restore(before)


def test_a_restore_between_two_batches_is_noticed(shop, restored):
    with pytest.raises(PenstockError, match=r"restored.*full-refresh"):
        shop.run(step=between_batches(shop, restored), max_files_per_trigger=1)
    with pytest.raises(PenstockError, match=r"restored.*full-refresh"):
        shop.run(max_files_per_trigger=1)
    shop.run(full_refresh=True)
    shop.check()


def test_a_restore_between_reading_the_state_and_the_commit_is_noticed(shop, restored):
    """The commit that follows is ours, and stands above it in the log."""

    def step(name: str) -> None:
        if name == "planned":
            restored()

    with pytest.raises(PenstockError, match=r"restored.*full-refresh"):
        shop.run(step=step, max_files_per_trigger=1)
    with pytest.raises(PenstockError, match="restored"):
        shop.run()


def test_a_restore_of_a_restore_is_resolved(shop, restored):
    whole = DeltaTable(str(shop.table)).version()
    restored()
    write_deltalake(str(shop.table), pa.table({"id": pa.array([], pa.int64())}), mode="append")
    DeltaTable(str(shop.table)).restore(whole + 1)
    with pytest.raises(PenstockError, match="restored"):
        shop.run()
    DeltaTable(str(shop.table)).restore(whole)
    shop.run()
    shop.check()


@pytest.mark.parametrize("moment", ["planned", "summary"])
def test_an_overwrite_by_others_is_an_error_for_good(shop, moment):
    for _ in range(3):
        shop.land()
    done = []

    def step(name: str) -> None:
        if name == moment and not done and (shop.table / "_delta_log").exists():
            done.append(name)
            write_deltalake(str(shop.table), pa.table({"id": pa.array([7], pa.int64())}), mode="overwrite")

    with pytest.raises(PenstockError, match="overwritten by another writer"):
        shop.run(step=step, max_files_per_trigger=1)
    with pytest.raises(PenstockError, match="overwritten by another writer"):
        shop.run()
    shop.run(full_refresh=True)
    shop.check()


def test_an_overwrite_that_was_undone_is_no_error(shop):
    shop.land()
    shop.run()
    write_deltalake(str(shop.table), pa.table({"id": pa.array([7], pa.int64())}), mode="overwrite")
    with pytest.raises(PenstockError, match=r"RESTORE the table to version"):
        shop.run()
    table = DeltaTable(str(shop.table))
    table.restore(table.version() - 1)
    shop.land()
    shop.run()
    shop.check()


def test_a_table_that_others_replaced_is_an_error(shop):
    shop.land()
    shop.run()
    DeltaTable.create(str(shop.table), schema=pa.schema([("id", pa.int64())]), mode="overwrite")
    with pytest.raises(PenstockError, match="replaced by another writer"):
        shop.run()
    shop.run(full_refresh=True)
    shop.check()


def test_many_commits_of_others_are_read_down_to_ours_and_no_further(shop, monkeypatch):
    for _ in range(20):
        shop.land()
    shop.run(max_files_per_trigger=1)
    for number in range(3):
        DeltaTable(str(shop.table)).delete(f"id = -{number + 1}")
        write_deltalake(str(shop.table), pa.table({"id": pa.array([], pa.int64())}), mode="append")
    read = []
    commits = Table._commits

    def counted(table):
        for version, actions in commits(table):
            read.append(version)
            yield version, actions

    monkeypatch.setattr(Table, "_commits", counted)
    assert shop.run().nothing_new
    assert len(read) <= 8


# A refresh that was asked for


def test_a_refresh_happens_though_another_run_plans_first(shop):
    for _ in range(2):
        shop.land()
    shop.run()
    before = shop.generation
    shop.land()
    others = []

    def step(name: str) -> None:
        if name == "plan" and not others:
            others.append(shop.work(max_files_per_trigger=1))
            run_job(others[0])

    shop.run(full_refresh=True, step=step)
    assert shop.generation > before
    shop.check()


def test_a_refresh_happens_though_another_run_plans_between_the_number_and_the_plan(shop, monkeypatch):
    for _ in range(2):
        shop.land()
    shop.run()
    before = shop.generation
    shop.land()
    work = shop.work()
    first_free = type(work.journal).first_free
    others = []

    def and_then(journal, state):
        number = first_free(journal, state)
        if journal is work.journal and not others:
            others.append(shop.work(step=at_step("planned")))
            with pytest.raises(Crash):
                run_job(others[0])
        return number

    monkeypatch.setattr(type(work.journal), "first_free", and_then)
    run_job(work, replace=True)
    assert shop.generation > before
    shop.check()


# Plans that can't run


def test_a_file_that_keeps_growing_ends_the_run(shop):
    shop.land()
    shop.run()
    growing = shop.land("growing.json")

    def step(name: str) -> None:
        if name == "planned":
            with growing.open("a") as file:
                file.write("\n")

    version = Table.open(str(shop.table)).version
    with pytest.raises(PenstockError, match=r"5 plans of this run.*growing\.json changed"):
        shop.run(step=step)
    assert Table.open(str(shop.table)).version == version + 5
    shop.run()
    shop.check()


def test_retention_covers_cancelled_plans(shop):
    config = {"source_compaction_interval": 2, "source_retention_files": 3}
    shop.land()
    shop.run(**config)
    growing = shop.land("growing.json")

    def step(name: str) -> None:
        if name == "planned":
            with growing.open("a") as file:
                file.write("\n")

    for _ in range(4):
        with pytest.raises(PenstockError, match="plans of this run"):
            shop.run(step=step, **config)
    assert len(list(shop.sources.iterdir())) <= 6
    shop.run(**config)
    shop.check()
    assert len(list(shop.sources.iterdir())) <= 3
    assert shop.run(**config).nothing_new


def test_a_first_plan_that_can_never_run_ends_the_run(shop):
    growing = shop.land("growing.json")

    def step(name: str) -> None:
        if name == "planned":
            with growing.open("a") as file:
                file.write("\n")

    with pytest.raises(PenstockError, match=r"5 plans of this run.*growing\.json changed"):
        shop.run(step=step)
    shop.run()
    shop.check()


# Tables that others made


@pytest.mark.parametrize("files", [0, 3])
def test_an_empty_table_of_others_becomes_ours_as_it_is(shop, files):
    DeltaTable.create(
        str(shop.table), schema=pa.schema([("id", pa.int64())]), description="by hand", storage_options=None
    )
    for _ in range(files):
        shop.land()
    shop.run(max_files_per_trigger=1)
    shop.check()
    table = Table.open(str(shop.table))
    assert table.description == "by hand"
    assert table.properties["penstock.ledger"]
    version = table.version
    assert shop.run().nothing_new
    assert Table.open(str(shop.table)).version == version
    shop.land()
    shop.run()
    shop.check()


def test_rows_that_others_add_while_a_table_becomes_ours_are_an_error(shop):
    DeltaTable.create(str(shop.table), schema=pa.schema([("id", pa.int64())]))
    shop.land()

    def step(name: str) -> None:
        if name == "planned":
            write_deltalake(str(shop.table), pa.table({"id": pa.array([7], pa.int64())}), mode="append")

    with pytest.raises(PenstockError, match="rows that penstock did not write"):
        shop.run(step=step)
    assert Table.open(str(shop.table)).mark is None


def test_a_killed_claim_is_finished(shop):
    DeltaTable.create(str(shop.table), schema=pa.schema([("id", pa.int64())]))
    shop.land()
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"))
    shop.run()
    shop.check()
    shutil.rmtree(shop.table / "_delta_log")
    shop.run()
    shop.check()
    assert DeltaTable(str(shop.table)).transaction_version(MARK) == shop.generation


def test_a_large_plan_is_compacted_by_itself(shop, monkeypatch):
    """A first run may record a million files that came before `starting_timestamp`: in one plan, so that none is lost."""
    monkeypatch.setattr(tidying, "_LARGE", 3)
    for _ in range(5):
        shop.land(at=1_600_000_000)
    shop.expected.clear()
    shop.land(at=1_700_000_000)
    assert shop.run(starting_timestamp="2023-01-01T00:00:00Z").skipped == 5
    assert shop.compaction(0).exists()
    shop.plan(0).write_bytes(b"is not read any more")
    assert shop.run().nothing_new
    shop.check()


def by_hand(shop, **keys):
    DeltaTable.create(str(shop.table), schema=pa.schema([("id", pa.int64())]), description="by hand", **keys)


def test_starting_timestamp_after_empty(shop):
    """`--empty`, then a run: files from before `starting_timestamp` come in, since the claim was the first plan."""
    shop.land(at=1_600_000_000)
    shop.expected.clear()
    shop.land(at=1_700_000_000)
    by_hand(shop)
    shop.run(starting_timestamp="2023-01-01T00:00:00Z")
    shop.check()


def test_a_table_made_by_hand_after_a_first_run_that_failed(shop):
    """docs/files.md: "it becomes ours as it is, by one commit without data"; and "nothing is dropped that is not ours"."""
    shop.land()
    with pytest.raises(Crash):
        shop.run(step=at_step("planned"))
    by_hand(shop)
    shop.run()
    shop.check()
    assert Table.open(str(shop.table)).description == "by hand"


@pytest.mark.parametrize("at", [0.3, 0.5, 0.7])
def test_a_damaged_compaction_is_one_clear_error(shop, at):
    for _ in range(40):
        shop.land()
    shop.run(max_files_per_trigger=10, source_compaction_interval=2)
    path = shop.compaction(3)
    data = bytearray(path.read_bytes())
    start = int(len(data) * at)
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)
    with pytest.raises(PenstockError):
        shop.run()
