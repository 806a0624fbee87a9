"""Build the example project into ./lake, and show what is in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dbt.cli.main import dbtRunner
from rich.console import Console
from rich.table import Table

import penstock

PROJECT = Path(__file__).parent
LAKE = Path(os.environ.get("PENSTOCK_LAKE") or PROJECT.parent.parent / "lake").resolve()


def main() -> int:
    os.environ["PENSTOCK_LAKE"] = str(LAKE)
    built = dbtRunner().invoke(["build", "--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)])
    if not built.success:
        return 1
    lake = penstock.connect(str(LAKE))
    console = Console()
    console.print(_relations(lake))
    console.print(_customers(lake))
    console.print(f"The lake is {LAKE}. `dbt run -s bronze staging` has nothing to do now, and starts no JVM.")
    return 0


def _relations(lake: penstock.Lake) -> Table:
    table = Table(title="What is in the lake (read from disk)")
    for heading in ("relation", "kind", "rows", "files", "version"):
        table.add_column(heading, justify="left" if heading in ("relation", "kind") else "right")
    for relation in lake.tables():
        if relation.kind == "table":
            log = lake.log_of(relation.name)
            numbers = log.statistics()
            table.add_row(str(relation), relation.kind, str(numbers.rows), str(numbers.files), str(log.version))
        else:
            table.add_row(str(relation), relation.kind)
    return table


def _customers(lake: penstock.Lake) -> Table:
    frame = lake.sql("select * from shop_marts.customer_value order by amount desc")
    table = Table(title="shop_marts.customer_value (read by Spark)")
    for column in frame.columns:
        table.add_column(column)
    for row in frame.collect():
        table.add_row(*(str(value) for value in row))
    return table


if __name__ == "__main__":
    sys.exit(main())
