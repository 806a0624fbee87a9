from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.inspection.repair import Finding, repair
from penstock.protocol.journal import SUMMARY
from tests.unit.inspection.conftest import History
from tests.unit.inspection.test_planned import everything
from tests.unit.windows.world import DAY, FIRST, World


class Killed(BaseException):
    pass


def found(shop: History, *, yes: bool = False, name: str = "bronze.events") -> list[Finding]:
    before = everything(shop.lake.root)
    findings = repair(shop.lake, shop.lake.get(name), yes=yes)
    if not yes:
        assert everything(shop.lake.root) == before
    return findings


def repaired(shop: History) -> list[str]:
    """What was repaired; afterwards nothing is wrong, the next run finds nothing, and the rows are right."""
    wrong = [one.what for one in found(shop) if one.severity != "note"]
    done = [one for one in found(shop, yes=True) if one.severity != "note"]
    assert [one.what for one in done] == wrong
    assert all(one.repaired for one in done)
    assert [one for one in found(shop) if one.severity != "note"] == []
    assert shop.run().nothing_new
    shop.check()
    return wrong


def fill(shop: History, batches: int = 12, **config: object) -> None:
    for _ in range(batches):
        shop.land()
        shop.run(**config)


def test_a_ledger_that_fits_its_log(shop: History) -> None:
    fill(shop)
    shop.run()
    assert found(shop) == []
    shop.cancel(shop.land())
    shop.quarantine(shop.land("bad.json"))
    shop.run()
    assert found(shop) == []


@pytest.mark.parametrize("damage", ["", "{", '{"number": 3}'])
def test_the_summary(shop: History, damage: str) -> None:
    fill(shop, 3)
    shop.run()
    path = shop.table / SUMMARY
    before = json.loads(path.read_text())
    if damage:
        path.write_text(damage)
    else:
        path.unlink()
    assert len(repaired(shop)) == 1
    after = json.loads(path.read_text())
    assert {**after, "updated": ""} == {**before, "updated": ""}


def test_a_damaged_compaction_whose_plans_are_there(shop: History) -> None:
    fill(shop)
    shop.run()
    good = shop.compaction(9).read_bytes()
    shop.compaction(9).write_bytes(good[:-20])
    assert repaired(shop) == [f"the compaction up to {shop.generation + 9} can't be read; its plans are there"]
    assert shop.compaction(9).exists()


def test_a_compaction_that_says_something_else_than_its_plans(shop: History) -> None:
    fill(shop, 22)
    shop.run()
    # That of the next ten batches, under the number of the first ten.
    from penstock.files.compaction import Compaction, NumberRange

    second = Compaction.from_bytes(shop.compaction(19).read_bytes(), "")
    first = Compaction.from_bytes(shop.compaction(9).read_bytes(), "")
    wrong = Compaction(
        NumberRange(shop.generation, shop.generation + 9), second.records, first.schema, first.format, None,
        first.ledger, first.roots,
    )  # fmt: skip
    shop.compaction(9).write_bytes(wrong.to_bytes(shop.generation))
    assert repaired(shop) == [f"the compaction up to {shop.generation + 9} has other files than its plans"]


def test_a_compaction_over_a_cancelled_plan_is_right(shop: History) -> None:
    fill(shop, 3)
    shop.cancel(shop.land())
    fill(shop, 9)
    assert shop.compaction(9).exists()
    assert found(shop) == []


def test_records_of_an_earlier_life(shop: History) -> None:
    fill(shop, 12)
    shop.begin_again()
    shop.run()
    assert len(repaired(shop)) == 13
    assert {path.name for path in shop.sources.iterdir()} == {str(shop.generation)}


def test_a_missing_plan_is_never_invented(shop: History) -> None:
    fill(shop, 5)
    shop.run()
    shop.plan(2).unlink()
    (one,) = found(shop, yes=True)
    assert (one.severity, one.repaired) == ("broken", False)
    assert one.what.endswith(f"are missing: {shop.generation + 2}")
    assert "--full-refresh" in (one.fix or "")
    assert not shop.plan(2).exists()


def test_a_damaged_compaction_without_its_plans_is_left_alone(shop: History) -> None:
    fill(shop, 25, source_retention_files=3)
    compaction = sorted(shop.sources.glob("*.parquet"))[0]
    compaction.write_bytes(b"damaged")
    before = everything(shop.lake.root)
    assert [one.severity for one in found(shop, yes=True)] == ["broken", "broken"]
    assert everything(shop.lake.root) == before


def test_an_unfinished_plan_stays(shop: History) -> None:
    fill(shop, 2)
    shop.land()

    def step(name: str) -> None:
        if name == "planned":
            raise Killed(name)

    with pytest.raises(Killed):
        shop.run(step=step)
    (one,) = found(shop, yes=True)
    assert (one.severity, "unfinished" in one.what) == ("note", True)
    shop.run()
    shop.check()


def test_a_refresh_that_is_at_work_stays(shop: History) -> None:
    fill(shop, 2)

    def step(name: str) -> None:
        if name == "planned":
            raise Killed(name)

    with pytest.raises(Killed):
        shop.run(full_refresh=True, step=step)
    (one,) = found(shop, yes=True)
    assert (one.severity, "builds the table anew" in one.what) == ("note", True)
    shop.run()
    shop.check()


def test_changes_and_windows(shop: History, follower: None, tmp_path: Path) -> None:
    (one,) = found(shop, name="silver.copy", yes=True)
    assert one.what == "there is no summary"
    assert found(shop, name="silver.copy") == []
    world = World(tmp_path / "windows")
    for day in range(3):
        world.happen(day)
    world.run(FIRST + 3 * DAY)
    world.run(FIRST + 3 * DAY, full_refresh=True)
    relation = world.lake.get("silver.events")
    repair(world.lake, relation, yes=True)
    assert repair(world.lake, relation, yes=False) == []
