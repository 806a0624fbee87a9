"""The job of a window by the protocol: what `prepare` leaves behind, and what is reported."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable

from penstock.windows import job
from tests.unit.windows.test_meeting import ADDED, at, fill, go
from tests.unit.windows.world import Killed, World


def plans(world: World) -> int:
    return len(list((world.table / "_checkpoint" / "sources").iterdir()))


def test_a_table_that_was_changed_to_fit_the_model_is_planned_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is changed before the plan is written, so the plan is of the table as it is now."""
    fill(world, 3)
    go(world, at(2), **ADDED)
    fit, seen = job.fit, []

    def fit_and_change(*given: Any) -> Any:
        seen.append(plans(world))
        if len(seen) == 1:
            DeltaTable(str(world.table)).alter.set_column_metadata("id", {"comment": "changed"})
        return fit(*given)

    monkeypatch.setattr(job, "fit", fit_and_change)
    before = plans(world)
    go(world, at(3), **ADDED)
    assert seen == [before, before, before + 1], "prepared, prepared again, and run"
    world.check(at(3))


@pytest.mark.parametrize("config", [{}, ADDED])
def test_a_query_that_spark_rejects_leaves_no_plan_behind(
    world: World, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world, 2)
    monkeypatch.setattr("tests.unit.windows.world.RustRunner.columns_of", lambda self, text: [])
    results = go(world, at(2), **config)
    assert "`event_time` names at, which the model does not select" in str(next(iter(results.values())))
    assert not world.table.exists()


def test_the_plan_of_a_killed_run_is_reported_with_its_own_windows(world: World) -> None:
    fill(world, 4)
    go(world, at(2), **ADDED)
    with pytest.raises(Killed):
        go(world, at(4), kill=("planned", 1), days_per_batch=2, **ADDED)
    results = go(world, at(4), **ADDED)
    # delta-rs, in Spark's place, does not count rows as Spark does.
    messages = [outcome.message for outcome in results.values()]
    assert messages == ["OK 4 rows of 2026-04-03 … 2026-04-05", "OK nothing new"]
    world.check(at(4))
