"""What is planned, from the logs of the sources and of the table alone: no Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock import PenstockError
from penstock.api import connect
from penstock.changes.config import ChangeSource
from penstock.changes.job import ChangeJob
from penstock.changes.plan import ChangePlan
from penstock.changes.version_range import Gap
from penstock.delta.layout import Layout
from penstock.delta.table import MARK
from penstock.protocol.plan import properties_of
from penstock.sql.names import Name

ROW = pa.table({"id": pa.array([1], pa.int64()), "n": pa.array([1], pa.int64())})
Start = Callable[..., ChangeJob]


def table(root: Path, name: str, properties: dict[str, str]) -> str:
    folder = str(root.joinpath(*name.split(".")))
    DeltaTable.create(folder, ROW.schema, configuration=properties, raise_if_key_not_exists=False)
    return folder


def add(folder: str, times: int = 1) -> None:
    for _ in range(times):
        write_deltalake(folder, ROW, mode="append")


@pytest.fixture
def source(tmp_path: Path) -> str:
    return table(tmp_path, "s.a", {"delta.enableChangeDataFeed": "true"})


@pytest.fixture
def start(tmp_path: Path, source: str) -> Start:
    def job(select: str = "select id, n from s.a", **config: object) -> ChangeJob:
        followed = ChangeSource.from_mapping({"unique_key": "id", **config})
        spark = SimpleNamespace(commit_marks=None, check_commits=lambda location: None)
        lake = connect(str(tmp_path))
        return ChangeJob(lake, Name("gold", "t"), followed, select, spark, Layout(), warn=lambda text: None)

    return job


def built(job: ChangeJob, root: Path, source: str) -> ChangePlan:
    """The plan that builds the table, committed as Spark would commit it, without rows."""
    plan = job.plan(3, job.journal.state(), replace=False)
    assert plan is not None
    assert plan.replace
    assert job.journal.write_ahead(plan)
    table(root, "gold.t", properties_of(plan))
    state = job.journal.state(check=False)
    assert state.table is not None
    state.table.commit_marks({MARK: plan.number}, state.note(plan.number))
    return plan


def next_plan(job: ChangeJob, number: int = 4) -> ChangePlan | None:
    return job.plan(number, job.journal.state(), replace=False)


def test_nothing_is_planned_if_no_source_has_moved(start: Start, tmp_path: Path, source: str) -> None:
    built(start(), tmp_path, source)
    assert next_plan(start()) is None


def test_version_ranges_of_so_many_versions(start: Start, tmp_path: Path, source: str) -> None:
    first = built(start(), tmp_path, source)
    add(source, 3)
    plan = next_plan(start())
    assert plan is not None
    assert (str(plan), plan.rows, plan.whole, plan.ledger) == ("s.a 1 to 3", True, "", first.ledger)
    limited = next_plan(start(cdf_max_versions=2))
    assert str(limited) == "s.a 1 to 2"


def test_the_table_may_be_changed_for_a_plan_that_is_then_planned_again(
    start: Start, tmp_path: Path, source: str
) -> None:
    built(start(), tmp_path, source)
    add(source)
    job = start()
    plan = next_plan(job)
    assert plan is not None
    job._planner.repeat(plan)
    assert next_plan(job) is plan
    job._planner.repeat(plan)
    assert next_plan(job, 5) is not plan, "another run has committed this number"


def test_what_fails_is_tried_once_with_all_versions(start: Start, tmp_path: Path, source: str) -> None:
    built(start(), tmp_path, source)
    add(source, 3)
    job = start(cdf_max_versions=1)
    plan = next_plan(job)
    assert plan is not None
    assert job._planner.skip_ahead(plan)
    assert str(next_plan(job)) == "s.a 1 to 3"
    assert not job._planner.skip_ahead(plan)


def test_another_key_is_a_gap(start: Start, tmp_path: Path, source: str) -> None:
    built(start(), tmp_path, source)
    with pytest.raises(Gap, match=r"`unique_key` is \(n\) now, and the table was built by \(id\)"):
        next_plan(start(unique_key="n"))
    job = start(unique_key="n", on_cdf_gap="full_refresh")
    plan = next_plan(job)
    assert plan is not None
    assert plan.replace
    assert any("is rebuilt" in text for text in job.report.warnings)


def test_other_sql_is_told(start: Start, tmp_path: Path, source: str) -> None:
    built(start(), tmp_path, source)
    job = start("select id, n + 1 as n from s.a")
    assert next_plan(job) is None
    assert "has changed since the table was built" in job.report.warnings[0]
    appending = start("select id, n + 1 as n from s.a", on_schema_change="append_new_columns")
    plan = next_plan(appending)
    assert plan is not None
    assert (plan.rows, plan.columns) == (False, True)


def test_a_plan_whose_file_is_gone_is_an_error(start: Start, tmp_path: Path, source: str) -> None:
    job = start()
    plan = built(job, tmp_path, source)
    job.journal.storage.delete(job.journal.path_of(plan.number))
    with pytest.raises(PenstockError, match="Plan 3 is committed to the table, and its file is gone"):
        next_plan(start())


def test_old_plans_are_forgotten(start: Start, tmp_path: Path, source: str) -> None:
    job = start()
    built(job, tmp_path, source)
    for number in (1, 2):
        job.journal.storage.write(job.journal.path_of(number), b"{}")
    job._ledger.forget_old_plans(job.journal.state())
    assert job.journal.records().plans == {3}
