from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.files.release import release
from penstock.files.source import Listings
from penstock.inspection.file_story import FileStory, files_of, records_of, since, why
from penstock.inspection.table_ledger import TableLedger
from penstock.protocol.journal import Journal
from tests.unit.inspection.conftest import History


class Killed(BaseException):
    pass


def told(shop: History, path: Path | str) -> FileStory:
    return why(TableLedger.open(shop.lake, "bronze.events", check=False), str(path), Listings())


def listed(shop: History) -> list[tuple[str, str, int | None]]:
    found, error = files_of(TableLedger.open(shop.lake, "bronze.events"), Listings())
    assert error is None
    return [(Path(record.path).name, record.status, record.batch) for record in records_of(found)]


def test_the_batch_that_took_a_file(shop: History) -> None:
    shop.land()
    shop.run()
    path = shop.land()
    shop.run()
    shop.write_beside()
    found = told(shop, path)
    assert (found.outcome, found.version) == ("in the table", 2)
    assert found.text.startswith("It was taken by batch 1 (plan ")
    assert told(shop, path.name).path == str(path)


def test_the_list_has_the_ledger_and_the_files_that_wait(shop: History) -> None:
    shop.land()
    (shop.landing / "empty.json").write_text("")
    shop.run()
    shop.quarantine(shop.land("bad.json"))
    shop.land("late.json")
    assert listed(shop) == [
        ("empty.json", "skipped", 0),
        ("file-00000.json", "ingested", 0),
        ("bad.json", "quarantined", 1),
        ("late.json", "waiting", None),
    ]


def test_a_long_history_is_read_from_compactions(shop: History) -> None:
    paths = []
    for _ in range(25):
        paths.append(shop.land())
        shop.run(source_compaction_interval=5, source_retention_files=6)
    assert len(listed(shop)) == 25
    found = told(shop, paths[0])
    assert (found.outcome, found.version, found.records[0].batch) == ("in the table", 1, 0)


def test_files_since_a_moment(shop: History) -> None:
    shop.land()
    shop.run()
    found, _ = files_of(TableLedger.open(shop.lake, "bronze.events"), Listings())
    assert since(found, datetime(2020, 1, 1, tzinfo=timezone.utc)).num_rows == 1
    assert since(found, datetime(2999, 1, 1, tzinfo=timezone.utc)).num_rows == 0


def test_a_new_file_waits_for_its_turn(shop: History) -> None:
    shop.land()
    shop.run()
    shop.land(at=time.time() - 50)
    path = shop.land(at=time.time() - 40)
    found = told(shop, path)
    assert (found.outcome, found.fix) == ("waiting", "Run the model.")
    assert found.text == "It is new. It is number 2 of 2 files that the next run takes"


def test_a_young_file_waits(shop: History) -> None:
    shop.land(at=time.time() - 100)
    shop.run(safety_buffer_seconds=60)
    found = told(shop, shop.land())
    assert found.outcome == "waiting"
    assert "`safety_buffer_seconds` is 60" in found.text


def test_a_quarantined_and_then_released_file(shop: History) -> None:
    shop.land()
    shop.run()
    path = shop.land("bad.json")
    shop.quarantine(path)
    found = told(shop, path)
    assert found.outcome == "quarantined"
    assert found.text.endswith(": it is no JSON")
    assert f"penstock files release bronze.events {path}" in (found.fix or "")
    release(Journal(str(shop.table)), [str(path)])
    found = told(shop, path)
    assert found.outcome == "waiting"
    assert found.text.startswith("It was released from quarantine by batch 2")
    shop.run()
    found = told(shop, path)
    assert (found.outcome, [record.status for record in found.records]) == (
        "in the table",
        ["quarantined", "released", "ingested"],
    )


def test_skipped_files(shop: History) -> None:
    early = shop.land(at=1_000_000_000)
    (shop.landing / "empty.json").write_text("")
    shop.land()
    shop.run(starting_timestamp="2020-01-01T00:00:00Z")
    found = told(shop, early)
    assert (found.outcome, found.text.rsplit(": ")[-1]) == ("skipped", "before starting_timestamp")
    assert told(shop, shop.landing / "empty.json").text.endswith(": empty")


@pytest.mark.parametrize(
    ("name", "config", "text"),
    [
        ("a.tmp", {"source_patterns": [r"\.json$"]}, r"none of \.json$ matches a.tmp"),
        ("bad/a.json", {"source_exclude": ["^bad/"]}, "`source_exclude` leaves it out: ^bad/ matches bad/a.json"),
        ("_hidden/a.json", {}, "Names such as _hidden are hidden"),
    ],
)
def test_files_that_the_rules_leave_out(shop: History, name: str, config: dict[str, object], text: str) -> None:
    shop.land()
    shop.run(**config)
    found = told(shop, shop.land(name))
    assert found.outcome == "left out"
    assert text in found.text


def test_a_file_elsewhere_and_a_file_that_is_not_there(shop: History) -> None:
    shop.land()
    shop.run()
    assert told(shop, "/elsewhere/a.json").outcome == "left out"
    assert told(shop, shop.landing / "no.json").outcome == "not there"


def test_a_file_that_is_gone_is_in_the_table_all_the_same(shop: History) -> None:
    path = shop.land()
    shop.run()
    path.unlink()
    assert told(shop, path).text.endswith("The file itself is not there any more")


def test_a_file_that_was_written_again(shop: History) -> None:
    path = shop.land()
    shop.run()
    os.utime(path, (1, 1))
    found = told(shop, path)
    assert found.outcome == "changed"
    assert "The next run fails" in (found.fix or "")
    _, error = files_of(TableLedger.open(shop.lake, "bronze.events"), Listings())
    assert "changed after the ingestion" in (error or "")


def test_a_file_of_an_unfinished_plan(shop: History) -> None:
    shop.land()
    shop.run()
    path = shop.land()

    def step(name: str) -> None:
        if name == "planned":
            raise Killed(name)

    with pytest.raises(Killed):
        shop.run(step=step)
    found = told(shop, path)
    assert found.outcome == "waiting"
    assert "written and not committed" in found.text


def test_a_file_of_a_cancelled_plan(shop: History) -> None:
    shop.land()
    shop.run()
    path = shop.land()
    shop.cancel(path)
    assert told(shop, path).outcome == "in the table"
    assert [batch for name, _, batch in listed(shop) if name == path.name] == [2]


def test_an_earlier_life_is_not_told(shop: History) -> None:
    path = shop.land()
    shop.run()
    shop.begin_again()
    other = shop.land()
    shop.run()
    assert [record.batch for record in told(shop, path).records] == [0]
    assert told(shop, other).outcome == "in the table"


def test_a_table_that_is_not_built_from_files(shop: History, follower: None) -> None:
    with pytest.raises(PenstockError, match="not built from files"):
        files_of(TableLedger.open(shop.lake, "silver.copy"), Listings())
