"""The rescued column in the model's SELECT: no rescued value may be lost."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import PenstockError
from penstock.sql.quoting import literal, quote


def check_selected(column: str | None, columns: Sequence[str], where: str) -> None:
    """Raise if the SELECT leaves the rescued column out."""
    if column is not None and column.lower() not in (name.lower() for name in columns):
        raise PenstockError(
            f"`rescued_data_column` is {column}, but the model does not return it: values that do not fit their columns "
            "would be lost",
            where=where,
            fix=f"Select {quote(column)} from @data under that name.",
        )


def inside_or_raise(inside: str, time: str, column: str) -> str:
    """A condition: a row is inside a window. It raises in Spark for a row whose event time was rescued.

    Such a row is in no window, so it would be lost.
    """
    message = literal(f"A record has no {time} that can be read, so it is in no window: ")
    raised = f"raise_error(concat({message}, {quote(column)}))"
    return f"case when {quote(time)} is null and {quote(column)} is not null then {raised} else {inside} end"
