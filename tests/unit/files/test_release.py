from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.files.release import release
from penstock.protocol.journal import Journal
from penstock.protocol.run import run_job
from tests.unit.files.conftest import Shop


class Killed(BaseException):
    pass


def quarantine(shop: Shop, path: Path) -> None:
    job = shop.work()
    job._landing.quarantine.add({str(path): "it is no JSON"}, job._landing.roots)
    run_job(job)


def journal(shop: Shop) -> Journal:
    return Journal(str(shop.table))


@pytest.fixture
def bad(shop: Shop) -> Path:
    shop.land()
    shop.run()
    path = shop.land("bad.json")
    quarantine(shop, path)
    assert sum(shop.rows().values()) == 1
    return path


def test_the_next_run_reads_a_released_file_once(shop: Shop, bad: Path) -> None:
    done = release(journal(shop), [str(bad)])
    assert done.paths == (str(bad),)
    assert sum(shop.rows().values()) == 1
    assert shop.run().files == 1
    shop.check()
    assert shop.run().nothing_new
    shop.check()


def test_a_released_file_that_is_still_bad_goes_back(shop: Shop, bad: Path) -> None:
    release(journal(shop), [str(bad)])
    quarantine(shop, bad)
    assert shop.run().nothing_new
    release(journal(shop), [str(bad)])
    shop.run()
    shop.check()


def test_a_compaction_keeps_what_was_released(shop: Shop, bad: Path) -> None:
    release(journal(shop), [str(bad)])
    for _ in range(12):
        shop.land()
        shop.run(source_compaction_interval=3, source_retention_files=4)
    shop.check()
    assert shop.run().nothing_new


def test_all_or_none(shop: Shop, bad: Path) -> None:
    with pytest.raises(PenstockError, match="not in quarantine"):
        release(journal(shop), [str(bad), str(shop.landing / "file-00000.json")])
    assert shop.run().nothing_new


@pytest.mark.parametrize("at", ["plan", "planned"])
def test_a_kill_leaves_it_undone_or_to_the_next_run(shop: Shop, bad: Path, at: str) -> None:
    def step(name: str) -> None:
        if name == at:
            raise Killed(name)

    with pytest.raises(Killed):
        release(journal(shop), [str(bad)], step)
    shop.run()
    if at == "plan":
        assert sum(shop.rows().values()) == 1
        release(journal(shop), [str(bad)])
        shop.run()
    shop.check()


def test_another_run_that_commits_the_plan_first_is_no_failure(shop: Shop, bad: Path) -> None:
    def step(name: str) -> None:
        if name == "planned":
            shop.run()

    done = release(journal(shop), [str(bad)], step)
    assert done.paths == (str(bad),)
    shop.check()


def test_an_unfinished_plan_comes_first(shop: Shop, bad: Path) -> None:
    shop.land()

    def step(name: str) -> None:
        if name == "planned":
            raise Killed(name)

    with pytest.raises(Killed):
        shop.run(step=step)
    with pytest.raises(PenstockError, match="written and not committed"):
        release(journal(shop), [str(bad)])
    shop.run()
    release(journal(shop), [str(bad)])
    shop.run()
    shop.check()
