"""Plans of changes: what is read back, and what is not run."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from penstock.api import connect
from penstock.changes.config import ChangeSource
from penstock.changes.job import ChangeJob
from penstock.changes.plan import ChangePlan
from penstock.changes.version_range import VersionRange
from penstock.delta.layout import Layout
from penstock.errors import PenstockError
from penstock.protocol.plan import InvalidPlan
from penstock.sql.names import Name

RANGE = VersionRange("s.a", "/lake/s/a", "id", 1, 2, "commit", "before")


@pytest.fixture
def work(tmp_path) -> ChangeJob:
    properties = {"delta.enableChangeDataFeed": "true"}
    DeltaTable.create(str(tmp_path / "s" / "a"), pa.schema([("id", pa.int64())]), configuration=properties)
    source = ChangeSource.from_mapping({"unique_key": "id"})
    return ChangeJob(
        connect(str(tmp_path)),
        Name("gold", "t"),
        source,
        "select id from s.a",
        SimpleNamespace(commit_marks=None, check_commits=lambda location: None),
        Layout(),
        warn=print,
    )


@pytest.mark.parametrize("kind", [{"replace": True}, {"whole": "it has a window function"}])
def test_a_plan_that_computes_all_rows_by_other_sql_is_not_run(work, kind):
    """It would write down that the table is what the other SQL makes."""
    plan = ChangePlan(7, 5, (RANGE,), model="of another SQL", **kind)
    invalid = work.run(plan, work.journal.state())
    assert isinstance(invalid, InvalidPlan)
    assert "SQL" in invalid.reason


def test_a_plan_is_read_back():
    plan = ChangePlan(7, 5, (RANGE,), model="a", built="b", key=("id",), ledger="l")
    assert ChangePlan.from_bytes(7, plan.to_bytes(), "here") == plan


def test_a_plan_of_0_1_0_has_no_ledger():
    content = json.loads(ChangePlan(7, 5, (RANGE,), model="a").to_bytes()) | {"format_version": 1}
    del content["ledger"]
    assert ChangePlan.from_bytes(7, json.dumps(content).encode(), "here").ledger is None


def test_a_plan_of_a_later_version_is_refused():
    content = json.loads(ChangePlan(7, 5, (RANGE,), model="a").to_bytes()) | {"format_version": 3}
    with pytest.raises(PenstockError, match=r"format 3.*Upgrade"):
        ChangePlan.from_bytes(7, json.dumps(content).encode(), "here")


def test_a_plan_comes_back_as_it_was():
    versions = VersionRange("s.a", "/x", "t", 3, 7, "c7", "c3")
    plan = ChangePlan(4, 2, (versions,), rows=False, model="m")
    assert ChangePlan.from_bytes(4, plan.to_bytes(), "here") == plan
    assert plan.position(void=False)["s.a"].end == 7
    assert (plan.made_by(void=False), replace(plan, whole="w", built="b").made_by(void=False)) == ("", "m")
    assert replace(plan, whole="w", built="b").made_by(void=True) == "b"
    assert (plan.position(void=True)["s.a"].end, plan.position(void=True)["s.a"].commit) == (3, "c3")
    with pytest.raises(PenstockError, match="records files, not changes"):
        ChangePlan.from_bytes(4, plan.to_bytes().replace(b'"changes"', b'"files"'), "here")
    for data in (b"{", plan.to_bytes()[:-9]):
        with pytest.raises(PenstockError, match=r"This plan can't be read.*Move the plan's file away"):
            ChangePlan.from_bytes(4, data, "here")
        with pytest.raises(PenstockError, match=r"This plan can't be read.*--full-refresh"):
            ChangePlan.from_bytes(4, data, "here", committed=True)
