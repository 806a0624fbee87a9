"""Who acts on a table: runs of the engine, drops and clones as the lake makes them, and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import NotFound
from penstock.protocol.journal import FOLDER
from penstock.protocol.run import run_job
from tests.exploration.process import ROOT, Actor, Process, location_of, source_of, work_of

TABLE = "events"
Config = Mapping[str, Any]
Step = Callable[[Config], Actor]
"""An actor, once the config of the model is known."""


# The engine


def run(table: str = TABLE) -> Step:
    """An ordinary run."""
    return lambda config: _drive(table, config, replace=False)


def refresh(table: str = TABLE) -> Step:
    """A run with --full-refresh."""
    return lambda config: _drive(table, config, replace=True)


def _drive(table: str, config: Config, *, replace: bool) -> Actor:
    source = source_of(config)

    def actor() -> None:
        work = work_of(table, source)
        run_job(work, replace=replace)
        work.close()

    return actor


def drop_log_first(config: Config) -> Actor:
    """A drop that removes `_delta_log`, then the rest object by object."""

    def actor() -> None:
        location = location_of(TABLE)
        Process.ask("break log", location)
        Process.ask("remove log", location)
        _delete_all(location)

    return actor


def drop_ledger_first(config: Config) -> Actor:
    """A drop on a store: `_checkpoint` object by object, then the commits, oldest first."""

    def actor() -> None:
        location = location_of(TABLE)
        _delete_all(location)
        Process.ask("break log", location)
        Process.ask("remove log", location)

    return actor


def drop_by_rename(config: Config) -> Actor:
    """A drop on a disk: all of it takes a hidden name at once. What becomes of that name is nobody's business."""

    def actor() -> None:
        process = Process.current
        assert process is not None
        process.door.ask("rename", location_of(TABLE), location_of(f".dropped-{process.number}"))

    return actor


def _delete_all(location: str) -> None:
    for key in Process.ask("list", f"{location}/{FOLDER}"):
        Process.ask("delete", key)


def clone(config: Config) -> Actor:
    """A clone of the table into `copy`: one version with its marks and its ledger, which then takes the name at once."""

    def actor() -> None:
        source, hidden = location_of(TABLE), location_of(".copy")
        while True:
            log = Process.ask("open", source)
            try:
                for key in Process.ask("list", f"{source}/{FOLDER}"):
                    Process.ask("put", hidden + key[len(source) :], Process.ask("get", key))
            except NotFound:
                continue  # another run has tidied up meanwhile
            # A compaction of later numbers may be all that is left of those up to the mark.
            if Process.ask("open", source).last.mark == log.last.mark:
                break
        Process.ask("clone", hidden, log, log.last.version, "penstock clone base 0")
        Process.ask("rename", hidden, location_of("copy"))

    return actor


# Others


def does(*request: Any) -> Step:
    """An actor with one request."""

    def actor() -> None:
        Process.ask(*request)

    return lambda config: actor


def land(name: str, size: int = 10) -> Step:
    """A file appears; a name that is there already changes."""
    return does("land", f"{ROOT}/{name}", size)


def vanish(name: str) -> Step:
    return does("vanish", f"{ROOT}/{name}")


def grow(name: str) -> Step:
    """A file appears that is another each time that it is looked at."""
    return does("grow", f"{ROOT}/{name}")


def restore(back: int) -> Step:
    """RESTORE to so many versions before the newest."""
    return does("restore", location_of(TABLE), back)


foreign_replace = does("foreign replace", location_of(TABLE))
foreign_overwrite = does("foreign overwrite", location_of(TABLE))
foreign_append = does("foreign append", location_of(TABLE))
foreign_create = does("foreign create", location_of(TABLE))
