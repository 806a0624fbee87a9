"""Foreign commits: those that changed rows are named, and those that removed rows of ours are errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.delta.commits import base_of, edits, foreign_commits, is_ours, note_of
from penstock.errors import PenstockError


class Table:
    """A table with these commits, the oldest first: its own are numbers, the version of their base."""

    location = "/lake/silver/orders"

    def __init__(self, *commits: int | dict[str, Any]) -> None:
        self._commits = [
            {"operation": "WRITE", "userMetadata": note_of(version, commit)} if isinstance(commit, int) else commit
            for version, commit in enumerate(commits)
        ]
        self.version = len(commits) - 1

    def commits(self) -> Iterator[dict[str, Any]]:
        for version in range(self.version, -1, -1):
            yield {**self._commits[version], "version": version}


def restore(version: int | None) -> dict[str, Any]:
    return {"operation": "RESTORE", "operationParameters": {"version": version}}


def write(**parameters: Any) -> dict[str, Any]:
    return {"operation": "WRITE", "operationParameters": parameters}


DELETE, OPTIMIZE = {"operation": "DELETE"}, {"operation": "OPTIMIZE"}
OVERWRITE = write(mode="Overwrite")


def test_a_note_names_its_base_and_is_unique() -> None:
    assert note_of(7, 12) != note_of(7, 12)
    assert base_of({"userMetadata": note_of(7, 12), "version": 20}) == 12
    assert base_of({"userMetadata": f"{note_of(7, 12)} void: why", "version": 20}) == 12
    assert base_of({"userMetadata": "penstock 7 of 0.1.0", "version": 20}) == 19
    assert is_ours({"userMetadata": note_of(7, 12)})
    assert not is_ours({"userMetadata": None})


@pytest.mark.parametrize(
    ("commits", "versions"),
    [
        ((-1, 0), []),
        ((-1, DELETE, OPTIMIZE), [2, 1]),
        ((-1, DELETE, 1), []),
        ((-1, DELETE, 0), [1]),
        ((-1, DELETE, restore(0)), [2, 1]),
        ((-1, 0, write(mode="Overwrite", predicate='["day = 1"]')), [2]),
        ((-1, 0, write(mode="Overwrite", partitionBy='["d"]', isDynamicPartitionOverwrite=True)), [2]),
    ],
)
def test_foreign_commits_that_no_writer_of_ours_has_seen(commits: tuple[Any, ...], versions: list[int]) -> None:
    table: Any = Table(*commits)
    assert [commit["version"] for commit in foreign_commits(table)] == versions


@pytest.mark.parametrize(
    ("commits", "message"),
    [
        ((-1, 0, OVERWRITE), r"overwritten by another writer in version 2 \(WRITE\).*RESTORE the table to version 1"),
        ((-1, 0, write(mode="Overwrite", predicate="[true]")), "overwritten by another writer in version 2"),
        ((-1, 0, {"operation": "CREATE OR REPLACE TABLE AS SELECT"}), "replaced by another writer in version 2"),
        ((-1, 0, restore(0)), r"restored to an older version, 0,.* in version 2"),
        ((-1, 0, restore(None)), "restored to the version of a timestamp"),
        ((-1, OVERWRITE, 0), r"overwritten by another writer in version 1.*\(/lake/silver/orders\)\. Run with --full"),
        ((-1, 0, restore(0), DELETE, 1), "restored to an older version, 0"),
    ],
)
def test_lost_rows_are_an_error_with_the_way_out(commits: tuple[Any, ...], message: str) -> None:
    table: Any = Table(*commits)
    with pytest.raises(PenstockError, match=message):
        foreign_commits(table)


def test_edits_are_named_oldest_first() -> None:
    table: Any = Table(-1, DELETE, OPTIMIZE, write(mode="Append"))
    found = foreign_commits(table)
    assert edits(found) == ["DELETE (version 1)"]
    assert edits(found, appends=True) == ["DELETE (version 1)", "WRITE (version 3)"]
