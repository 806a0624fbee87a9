"""Compactions and retention: whatever is removed, the ledger reads the same."""

from __future__ import annotations

import pytest

from penstock.files import tidying
from penstock.files.compaction import NumberRange
from penstock.files.ledger import Ledger
from penstock.files.tidying import Tidier
from penstock.steps import no_step

NO_TIDYING = {"max_files_per_trigger": 1, "source_compaction_interval": 1000}


def tidied(shop, interval: int, keep: int) -> tuple[Tidier, Ledger]:
    """A tidier of the shop's ledger, as another process has it."""
    journal = shop.work().journal
    ledger = Ledger(journal)
    ledger.follow(journal.state())
    return Tidier(journal, ledger, interval, keep, no_step), ledger


def present(shop) -> list[str]:
    """The files of the ledger, their numbers counted from its beginning."""
    files = shop.sources.iterdir()
    found = sorted((int(file.name.split(".")[0]) - shop.generation, file.suffix) for file in files)
    return [f"{number}{suffix}" for number, suffix in found]


def paths(shop) -> list[str]:
    journal = shop.work().journal
    ledger = Ledger(journal)
    return sorted(ledger.follow(journal.state())["path"].to_pylist())


@pytest.fixture
def full(shop):
    for _ in range(12):
        shop.land()
    shop.run(**NO_TIDYING)
    assert present(shop) == [str(number) for number in range(12)]
    return shop


def test_a_compaction_is_written_at_the_interval_and_covered_plans_are_removed(full):
    before = paths(full)
    tidier, _ = tidied(full, 5, 4)
    tidier.tidy(full.work().journal.state())
    # 10 is the newest multiple of the interval; it covers its own tier only.
    assert "9.parquet" in present(full)
    assert "5" not in present(full)
    assert "11" in present(full)
    assert paths(full) == before


@pytest.mark.parametrize("keep", [1, 3, 100])
def test_the_ledger_reads_the_same_after_tidying(full, keep):
    before = paths(full)
    for interval in (2, 3, 4, 12):
        tidier, _ = tidied(full, interval, keep)
        tidier.tidy(full.work().journal.state())
        assert paths(full) == before
    assert full.run(**NO_TIDYING).nothing_new


def test_a_large_plan_is_compacted_alone(full, monkeypatch):
    monkeypatch.setattr(tidying, "_LARGE", 0)
    tidier, _ = tidied(full, 1000, 1000)
    tidier.tidy(full.work().journal.state())
    assert "11.parquet" in present(full)


def test_a_compaction_that_another_run_has_widened_is_not_lost(full):
    """This process knows a compaction as one of a few numbers; another run has replaced it by one of all numbers."""
    state = full.work().journal.state()
    first = full.generation
    tidier, _ = tidied(full, 4, 1)
    tidier._compact(NumberRange(first + 9, first + 9), state)
    other, _ = tidied(full, 4, 1)
    other._compact(NumberRange(first, first + 9), state, whole=True)
    for number in range(10):
        full.plan(number).unlink()
    before = paths(full)
    tidier.tidy(state)
    assert paths(full) == before
