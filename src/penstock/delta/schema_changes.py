"""How a query's columns differ from a table's, and which values the difference may lose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.config.keys import POLICIES
from penstock.delta.table import Column
from penstock.errors import PenstockError
from penstock.sql import casts
from penstock.sql.casts import Change, Verdict

IGNORE, FAIL, APPEND, SYNC = POLICIES
_FIX = "Cast it in the SELECT, or take the model's type by `on_schema_change: sync_all_columns` or --full-refresh."


class Difference:
    """What sets the columns that a query makes apart from those that a table has; letter case does not.

    >>> Difference([Column("id", "int"), Column("new", "date")], [Column("ID", "bigint"), Column("old", "date")])
    new: new; missing: old; of another type: ID (int, in the table bigint)
    """

    def __init__(self, made: Iterable[Column], have: Iterable[Column]) -> None:
        made_by_name = {column.name.lower(): column for column in made}
        have_by_name = {column.name.lower(): column for column in have}
        self.new = [column for key, column in made_by_name.items() if key not in have_by_name]
        self.gone = [column.name for key, column in have_by_name.items() if key not in made_by_name]
        self.changes = {
            column.name: found
            for key, column in have_by_name.items()
            if key in made_by_name and (found := _changes(made_by_name[key], column))
        }
        """The places where a column that both have differs, by the table's name of the column."""
        self.retyped = {name: made_by_name[name.lower()].type for name in self.changes}

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changes)

    def __repr__(self) -> str:
        found = [change for changes in self.changes.values() for change in changes]
        parts = {
            "new": [column.name for column in self.new] + [change.name for change in found if change.have is None],
            "missing": self.gone + [change.name for change in found if change.made is None],
            "of another type": [
                f"{change.name} ({change.made}, in the table {change.have})"
                for change in found
                if change.made is not None and change.have is not None
            ],
        }
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)

    @property
    def new_fields(self) -> list[Change]:
        """The fields that the query has in structs of columns that the table has."""
        return [change for changes in self.changes.values() for change in changes if change.have is None]

    @property
    def other_than_new(self) -> list[str]:
        """The columns that differ by more than fields that are new."""
        return [name for name, changes in self.changes.items() if any(change.have is not None for change in changes)]

    def refuse(self, where: str) -> None:
        """An error, where there is a difference: `on_schema_change: fail`."""
        if self:
            raise PenstockError(
                f"The model's columns are not the table's ({self})",
                where=where,
                fix="Set `on_schema_change`, or run with --full-refresh.",
            )


def _changes(made: Column, have: Column) -> list[Change]:
    if made.type == have.type:
        return []
    return list(casts.changes(casts.parse(made.type), casts.parse(have.type), have.name))


@dataclass(frozen=True)
class Fitted(Column):
    """A column of the table that a query fills, with the type that the query makes it of."""

    made: str = ""

    def value(self, of: str, *, leaves: bool = True) -> str:
        """The SQL of this column, out of the query's."""
        return casts.convert(of, casts.parse(self.made), casts.parse(self.type), leaves=leaves)


def fitted(
    made: Sequence[Column], have: Sequence[Column], where: str, policy: str, warn: Callable[[str], None]
) -> list[Fitted]:
    """The table's columns that a query fills, in the query's order; a value that may be lost on the way is warned about."""
    difference = Difference(made, have)
    warn_of_casts(difference, where, policy, warn)
    by_name = {column.name.lower(): column for column in have}
    return [
        Fitted(**vars(by_name[column.name.lower()]), made=column.type)
        for column in made
        if column.name.lower() in by_name
    ]


def with_new_fields(made: Iterable[Column], have: Iterable[Column]) -> list[Column]:
    """The table's columns with the fields that the query has and their structs have not."""
    types = {column.name.lower(): column.type for column in made}
    return [
        replace(column, type=str(casts.merged(casts.parse(column.type), casts.parse(types[column.name.lower()]))))
        if types.get(column.name.lower(), column.type) != column.type
        else column
        for column in have
    ]


def warn_of_casts(difference: Difference, where: str, policy: str, warn: Callable[[str], None]) -> None:
    """Warn of values that may be stored other than the query makes them; an error where Spark can't store them."""
    found = [change for changes in difference.changes.values() for change in changes]
    refused = [str(change) for change in found if change.verdict is Verdict.REFUSED]
    if refused:
        raise PenstockError(
            f"{'; '.join(refused)}, and one can't be stored as the other",
            where=where,
            fix=f"No row was changed. {_FIX}",
        )
    said = []
    for change in found:
        if change.made is None:
            if policy == IGNORE:
                said.append(f"{change}: it is null in new rows")
        elif change.have is None:
            said.append(f"{change}: its values are not stored")
        elif change.verdict is not Verdict.LOSSLESS:
            said.append(f"{change}: {casts.effect(change.made, change.have)}")
    if said:
        warn(f"{where}: {'; '.join(said)}. {_FIX}")


def warn_of_rewrite(
    difference: Difference, retyped: Mapping[str, str], where: str, warn: Callable[[str], None]
) -> None:
    """Warn of values of the table that a rewrite by `sync_all_columns` may change; an error where it can't be done."""
    said, refused = [], []
    for change in (change for name in retyped for change in difference.changes[name]):
        if change.made is None or change.have is None:
            continue
        back = casts.verdict(change.have, change.made)
        if back is Verdict.REFUSED:
            refused.append(str(change))
        elif back is Verdict.LOSSY:
            effect = casts.effect(change.have, change.made)
            said.append(f"{change.name} was {change.have} and becomes {change.made}: {effect}")
    if refused:
        raise PenstockError(
            f"{'; '.join(refused)}, and `on_schema_change: {SYNC}` can't make the one out of the other",
            where=where,
            fix="No row was changed. Run with --full-refresh.",
        )
    if said:
        warn(f"{where}: `on_schema_change: {SYNC}` writes the rows that are there anew: {'; '.join(said)}")
