"""The ledger in memory follows the table's log."""

from __future__ import annotations

from penstock.files.ledger import Ledger

CONFIG = {"max_files_per_trigger": 1, "source_compaction_interval": 3, "source_retention_files": 3}


def names(records) -> list[str]:
    return sorted(path.rsplit("/", 1)[1] for path in records["path"].to_pylist())


def test_nothing_is_in_a_table_that_does_not_exist(shop):
    job = shop.work()
    assert job._ledger.follow(job.journal.state()).num_rows == 0
    assert job._ledger.schema is None


def test_the_first_call_reads_all_and_the_next_call_what_was_added(shop):
    for name in ("a", "b", "c", "d"):
        shop.land(f"{name}.json")
    shop.run(**CONFIG)
    journal = shop.work().journal
    ledger = Ledger(journal)
    assert names(ledger.follow(journal.state())) == ["a.json", "b.json", "c.json", "d.json"]
    assert ledger.format == "json"
    assert ledger.schema.names == ["id"]
    assert ledger.roots.roots == (str(shop.landing),)
    shop.land("e.json")
    shop.run(**CONFIG)
    assert names(ledger.follow(journal.state())) == ["e.json"]
    assert ledger.follow(journal.state()).num_rows == 0
    assert ledger.records.num_rows == 5


def test_a_refresh_is_another_generation(shop):
    shop.land("a.json")
    shop.run()
    journal = shop.work().journal
    ledger = Ledger(journal)
    ledger.follow(journal.state())
    shop.run(full_refresh=True)
    state = journal.state()
    assert not ledger.covers(state)
    assert names(ledger.follow(state)) == ["a.json"]
    assert ledger.covers(state)
    assert ledger.records.num_rows == 1
