"""Changes as rows with weights: +1 for each new image of a row, -1 for each old one, summed per whole row.

Images that cancel each other out disappear, whatever their order. The net change remains.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.spark.comparison import FLOATING, identity, is_negative_zero
from penstock.sql.quoting import quote

WEIGHT = "penstock_weight"


def net(signed: str, columns: Sequence[tuple[str, str]]) -> str:
    """The SQL that groups equal rows, sums their weights, and drops groups whose sum is 0."""
    by, shown = [], []
    for name, type in columns:
        column = quote(name)
        if type.lower() in FLOATING:
            # Grouping turns both zeros into 0.0; the sign is put back, so no aggregate has to keep the value.
            negative = is_negative_zero(column)
            by += [column, negative]
            shown.append(f"if({negative}, -{column}, {column}) as {column}")
        else:
            by.append(identity(column, type))
            shown.append(column if by[-1] == column else f"any_value({column}) as {column}")
    weight = f"sum({WEIGHT})"
    return (
        f"select {', '.join([*shown, f'{weight} as {WEIGHT}'])} from {signed} group by {', '.join(by)} "
        f"having {weight} <> 0"
    )
