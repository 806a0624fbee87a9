from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.changes.plan import ChangePlan
from penstock.changes.version_range import VersionRange
from penstock.delta.table import Table
from penstock.protocol.journal import Journal
from penstock.protocol.plan import new_ledger
from penstock.protocol.run import run_job
from tests.unit.files.conftest import Shop


class History(Shop):
    """A table of files with a history: batches, two lives, quarantined files, cancelled plans, commits of others."""

    def quarantine(self, path: Path, reason: str = "it is no JSON") -> None:
        """A run that can't read a file."""
        job = self.work()
        job._landing.quarantine.add({str(path): reason}, job._landing.roots)
        run_job(job)
        self.expected.subtract(range(self._next - 1, self._next))
        self.expected = +self.expected

    def cancel(self, path: Path) -> None:
        """A run whose first plan can't run, because its file is written again after it was planned."""
        done: list[str] = []

        def step(name: str) -> None:
            if name == "planned" and not done:
                done.append(name)
                path.write_text(path.read_text() + "\n")

        self.run(step=step)

    def begin_again(self) -> None:
        """The table is dropped; records of this life are left behind."""
        kept = {plan.name: plan.read_bytes() for plan in self.sources.iterdir()}
        self.lake.drop(self.name)
        self.sources.mkdir(parents=True)
        for name, data in kept.items():
            (self.sources / name).write_bytes(data)

    def write_beside(self) -> None:
        """Another writer appends a row."""
        write_deltalake(str(self.table), pa.table({"id": pa.array([-1], pa.int64())}), mode="append")
        self.expected[-1] += 1


@pytest.fixture
def shop(tmp_path: Path) -> History:
    return History(tmp_path)


@pytest.fixture
def follower(shop: History) -> None:
    """silver.copy follows bronze.events up to version 1, and bronze.events is at version 3."""
    for _ in range(3):
        shop.land()
        shop.run()
    source = Table.open(str(shop.table))
    versions = VersionRange("bronze.events", str(shop.table), source.id, None, 1, "")
    plan = ChangePlan(1, 1, (versions,), replace=True, ledger=new_ledger())
    copy = shop.table.parent.parent / "silver" / "copy"
    write_deltalake(str(copy), pa.table({"id": [0]}))
    journal: Journal[ChangePlan] = Journal(str(copy))
    assert journal.write_ahead(plan)
    journal.claim(plan, journal.state())
