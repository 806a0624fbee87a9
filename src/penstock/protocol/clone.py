"""Shallow clones of tables. A clone gets the ledger and the marks of its source, so its next run continues from there."""

from __future__ import annotations

from penstock.delta.commits import note_of
from penstock.delta.table import MARK, VOID, Table
from penstock.errors import CommitConflict, NotFound, PenstockError
from penstock.lake import disk, leftovers, locations, object_store
from penstock.lake.folder import LakeFolder
from penstock.lake.relations import LEDGER_FOLDER, Relation
from penstock.protocol.empty_commit import commit_marks
from penstock.protocol.journal import SUMMARY, Journal
from penstock.protocol.plan import Plan
from penstock.spark.backend import Backend
from penstock.sql.names import Name, check_for_spark
from penstock.sql.quoting import quote
from penstock.steps import Step, no_step
from penstock.storage import Storage, join, normalize

_ATTEMPTS = 5


def clone(lake: LakeFolder, source: Name, target: Name, runner: Backend, step: Step = no_step) -> None:
    """Make a shallow clone of one version of a table, under the target's name.

    The clone is made beside the target and then replaces it. On a disk this is one step. On an object store the old
    target is dropped first, so for a moment there may be none.
    """
    lake.check_writable()
    lake.check_name(target)
    check_for_spark(target.schema, target.identifier)
    relation = lake.get(source)
    if source == target:
        raise PenstockError(f"{source} cannot be cloned to itself", fix="Give the clone another name.")
    if relation.kind != "table":
        raise PenstockError(f"{source} is a {relation.kind}, and only tables can be cloned")
    location = normalize(_free_location(lake, target))
    lake.create_schema(target.schema)
    for _ in range(_ATTEMPTS):
        made = _to_disk if Storage(location).local else _to_store
        if made(lake, relation, target, location, runner, step):
            runner.forget(target)
            lake.table_made(target, lake.links.get(target))
            return
    raise PenstockError(
        f"{source} was changed {_ATTEMPTS} times during the clone",
        where=relation.location,
        fix=f"{target} was not changed. Clone again when the runs that write {source} have ended.",
    )


def _free_location(lake: LakeFolder, target: Name) -> str:
    """The location of the clone; PenstockError if the clone would replace something that is no relation of the lake."""
    if target in lake.links:
        location = lake.location_of(target)
        if lake.find(target) is not None:
            raise PenstockError(
                f"The location of {target} already holds a table, and a clone replaces no table outside of the lake",
                where=location,
                fix="Give the clone a location of its own, or drop that table.",
            )
        locations.check(lake, target, normalize(location))
        return location
    folder = lake.folder_of(target)
    if lake.find(target) is None and lake.kept_link(target) is None:
        locations.check_free(target, Storage(folder, lake.storage_options))
    return folder


def _to_disk(lake: LakeFolder, source: Relation, target: Name, location: str, runner: Backend, step: Step) -> bool:
    with disk.Staging(location) as staging:
        if not _make(lake, source, staging.path, runner, step):
            return False
        disk.replace_folder(staging.path, location, step)
    return True


def _to_store(lake: LakeFolder, source: Relation, target: Name, location: str, runner: Backend, step: Step) -> bool:
    inside = location.startswith(f"{lake.root}/")
    root = lake.root if inside else location.rpartition("/")[0]
    storage = lake.storage if inside else Storage(root, lake.storage_options)
    folder = location[len(root) + 1 :]
    parent = folder.rpartition("/")[0]
    leftovers.sweep_objects(storage, parent)
    staged = f"{parent}/{leftovers.staged_name()}".lstrip("/")
    try:
        made = _make(lake, source, join(root, staged), runner, step)
        if made:
            lake.drop(target, missing_ok=True)
    except BaseException:
        storage.delete_folder(staged)
        raise
    if made:
        object_store.move_objects(storage, staged, folder, step)
    else:
        storage.delete_folder(staged)
    return made


def _make(lake: LakeFolder, source: Relation, made_at: str, runner: Backend, step: Step) -> bool:
    """Make the clone in a hidden folder; False if the source was changed meanwhile."""
    options = lake.storage_options
    # With the check for rows that others have removed: the clone's own log would not show it.
    table = _journal(source, options).state().table
    if table is None:
        raise lake.missing(source.name)
    version, marks = table.version, _marks(table)
    step("clone")
    if MARK in marks:
        copied = _copy_ledger(Storage(source.location, options), Storage(made_at, options))
        # The ledger was read after the marks: they fit only if nothing was committed in between.
        if not copied or _marks(Table.open(source.location, options, files=False)) != marks:
            return False
    step("copied")
    runner.run(
        f"create or replace table delta.{quote(runner.spark_location(made_at))} "
        f"shallow clone delta.{quote(runner.spark_location(source.location))} version as of {version}"
    )
    step("cloned")
    if marks:
        _commit(Table.open(made_at, options, files=False), marks, runner)
    step("marked")
    # Later commits do no harm. A table that was created again has other versions.
    return Table.open(source.location, options, files=False).id == table.id


def _journal(source: Relation, options: dict[str, str]) -> Journal[Plan]:
    return Journal(source.location, options)


def _marks(table: Table) -> dict[str, int]:
    numbers = {MARK: table.mark, VOID: table.void}
    return {application: number for application, number in numbers.items() if number is not None}


def _copy_ledger(source: Storage, clone: Storage) -> bool:
    """Copy the ledger's files; False if some were added or removed meanwhile."""
    before = _ledger(source)
    try:
        for path in before:
            clone.write(path, source.read(path))
    except NotFound:
        return False
    return _ledger(source) == before


def _ledger(storage: Storage) -> list[str]:
    # Every run writes the summary again.
    return sorted(entry.path for entry in storage.list(LEDGER_FOLDER) if entry.path != SUMMARY)


def _commit(cloned: Table, marks: dict[str, int], runner: Backend) -> None:
    """One commit without data that carries the source's marks."""
    try:
        commit_marks(cloned, marks, note_of("clone", cloned.version), runner.commit_marks)
    except CommitConflict as conflict:
        raise PenstockError(
            f"The marks of the source could not be committed to the clone: {conflict}",
            where=cloned.location,
            fix="The target was not changed. Clone again.",
        ) from conflict
