"""The scenarios that are explored."""

from __future__ import annotations

from tests.exploration.actors import (
    clone,
    drop_by_rename,
    drop_ledger_first,
    drop_log_first,
    foreign_append,
    foreign_create,
    foreign_overwrite,
    foreign_replace,
    grow,
    land,
    refresh,
    restore,
    run,
    vanish,
)
from tests.exploration.scenario import Scenario

_TIDY = {"source_compaction_interval": 1, "source_retention_files": 1}
_AGAIN = {"on_rewritten_file": "ingest"}
_WAY_OUT = "--full-refresh"
"""In the error of each table that others changed."""
_GONE = "no Delta table|can't be read|was removed|lacks batch|another life"
_PLAN_TAKEN = "lacks batch|another life"
"""A drop takes the plan of a refresh with it, and the refresh is killed right after it has made the table all the same."""
_LOST_ANSWER = "503|answer to the commit"

_one = (land("a"), run())
_two = (land("a"), run(), land("b"), run())
_one_and_one = (*_one, land("b"))
_one_and_two = (*_one, land("b"), land("c"))
_two_and_two = (*_two, land("c"), land("d"))

_scenarios = [
    # Runs at once
    Scenario("first runs", (land("a"), land("b")), {"run": run(), "other": run()}),
    Scenario("runs", _one_and_two, {"run": run(), "other": run()}),
    Scenario("three runs", _one_and_one, {"run": run(), "other": run(), "third": run()}),
    Scenario("tidying runs", _one_and_two, {"run": run(), "other": run()}, config=_TIDY),
    Scenario("run after a long absence", _two, {"run": run(), "other": run(), "file": land("c")}, config=_TIDY),
    Scenario(
        "lost answers", _one_and_one, {"run": run(), "other": run()}, errors=1, config=_TIDY, may_fail=_LOST_ANSWER
    ),
    Scenario(
        "lost answers of a first run",
        (land("a"), land("b")),
        {"run": run(), "other": run()},
        errors=1,
        may_fail=_LOST_ANSWER,
    ),
    # Refreshes
    Scenario("refresh and run", _one_and_one, {"refresh": refresh(), "run": run()}),
    Scenario("refresh and tidying run", _one_and_one, {"refresh": refresh(), "run": run()}, config=_TIDY),
    Scenario("two refreshes", _one_and_one, {"refresh": refresh(), "refresh too": refresh()}),
    Scenario("first run and refresh", (land("a"),), {"refresh": refresh(), "run": run()}),
    Scenario("refresh and two runs", _one_and_one, {"refresh": refresh(), "run": run(), "other": run()}, kills=0),
    Scenario(
        "lost answers of a refresh",
        _one_and_one,
        {"refresh": refresh(), "run": run()},
        errors=1,
        kills=0,
        may_fail=_LOST_ANSWER,
    ),
    # Files
    Scenario("a file appears", _one_and_one, {"run": run(), "file": land("c"), "other": run()}, kills=0),
    Scenario("a file changes", _one_and_two, {"run": run(), "file": land("b", 11)}, config=_AGAIN),
    Scenario(
        "a file changes under two runs",
        _one_and_one,
        {"run": run(), "other": run(), "file": land("b", 11)},
        config=_AGAIN,
    ),
    Scenario(
        "a file vanishes", _one_and_two, {"run": run(), "file": vanish("b"), "other": run()}, config=_TIDY, kills=0
    ),
    Scenario(
        "a file vanishes under a first run", (land("a"), land("b")), {"run": run(), "file": vanish("a"), "other": run()}
    ),
    Scenario(
        "a file vanishes under a refresh",
        _one_and_one,
        {"refresh": refresh(), "file": vanish("a"), "run": run()},
        kills=0,
    ),
    Scenario("a file grows without end", (*_one, grow("b")), {"run": run()}, may_fail="/b", may_end="/b"),
    # Drops
    Scenario(
        "killed drop, log first",
        _two,
        {"drop": drop_log_first, "file": land("c")},
        config={**_TIDY, "max_files_per_trigger": 2},
        drop=drop_log_first,
    ),
    *(
        scenario
        for how, drop in (
            ("ledger first", drop_ledger_first),
            ("by rename", drop_by_rename),
            ("log first", drop_log_first),
        )
        for scenario in (
            Scenario(
                f"drop {how} and run",
                (land("a"), land("b"), run(), land("c")),
                {"drop": drop, "run": run()},
                may_fail=_GONE,
                # In the last order, which only 0.1.0 has, a run that begins meanwhile may lose its plan.
                may_end=_PLAN_TAKEN if drop is drop_log_first else None,
                drop=drop,
            ),
            Scenario(
                f"drop {how} and two runs",
                _one_and_one,
                {"drop": drop, "run": run(), "other": run()},
                may_fail=_GONE,
                may_end=_PLAN_TAKEN if drop is drop_log_first else None,
                kills=0 if drop is drop_log_first else 1,
                drop=drop,
            ),
            Scenario(
                f"drop {how} and refresh",
                _one_and_one,
                {"drop": drop, "refresh": refresh()},
                may_fail=_GONE,
                may_end=_PLAN_TAKEN,
                drop=drop,
            ),
        )
    ),
    Scenario(
        "drop by rename and tidying runs",
        _two_and_two,
        {"drop": drop_by_rename, "run": run()},
        config=_TIDY,
        may_fail=_GONE,
        drop=drop_by_rename,
    ),
    Scenario(
        "drop by rename, refresh and run",
        _one_and_one,
        {"drop": drop_by_rename, "refresh": refresh(), "run": run()},
        kills=0,
        may_fail=_GONE,
        may_end=_PLAN_TAKEN,
    ),
    # Clones
    Scenario("clone and run", _one_and_one, {"clone": clone, "run": run()}, tables=("events", "copy")),
    Scenario(
        "clone and tidying run", _one_and_two, {"clone": clone, "run": run()}, config=_TIDY, tables=("events", "copy")
    ),
    Scenario("clone and refresh", _one_and_one, {"clone": clone, "refresh": refresh()}, tables=("events", "copy")),
    Scenario(
        "clone of a cancelled batch",
        _one_and_one,
        {"clone": clone, "run": run(), "file": vanish("b")},
        tables=("events", "copy"),
    ),
    # Commits of others
    *(
        Scenario(
            f"{what} and {name}", _two_and_two, {name: actor(), "another": other}, may_fail=_WAY_OUT, may_end=_WAY_OUT
        )
        for what, other in (
            ("restore by one", restore(1)),
            ("restore by two", restore(2)),
            ("foreign replace", foreign_replace),
            ("foreign overwrite", foreign_overwrite),
        )
        for name, actor in (("run", run), ("refresh", refresh))
    ),
    *(
        Scenario(
            f"{what} and two runs",
            _two_and_two,
            {"run": run(), "other": run(), "another": other},
            kills=0,
            may_fail=_WAY_OUT,
            may_end=_WAY_OUT,
        )
        for what, other in (("restore", restore(1)), ("foreign overwrite", foreign_overwrite))
    ),
    Scenario(
        "restore, refresh and run",
        _one_and_one,
        {"refresh": refresh(), "run": run(), "another": restore(1)},
        kills=0,
        may_fail=_WAY_OUT,
        may_end=_WAY_OUT,
    ),
    Scenario(
        "restore to a restore",
        (*_two, restore(1)),
        {"another": restore(0), "run": run()},
        may_fail=_WAY_OUT,
        may_end=_WAY_OUT,
    ),
    Scenario("foreign append and two runs", _one_and_two, {"run": run(), "other": run(), "another": foreign_append}),
    Scenario("a table without rows", (foreign_create,), {"run": run(), "other": run(), "file": land("a")}),
]
SCENARIOS = {scenario.name: scenario for scenario in _scenarios}
