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
    if not _dbt("build"):
        return 1
    lake = penstock.connect(str(LAKE))
    console = Console()
    console.print(_relations(lake))
    console.print(_shown(lake, "shop_marts.customer_value", "amount desc"))
    console.print(_shown(lake, "shop_gold.sales_by_country", "country"))
    console.print("An order is deleted upstream, and leaves silver and gold by its change alone:")
    lake.sql("delete from shop_raw.orders where order_id = 104")
    if not _dbt("run", "-s", "silver", "gold"):
        return 1
    console.print(_shown(lake, "shop_gold.sales_by_country", "country"))
    console.print(
        f"The lake is {LAKE}. `dbt run -s bronze staging silver gold` has nothing to do now, and starts no JVM."
    )
    return 0


def _dbt(*command: str) -> bool:
    return bool(dbtRunner().invoke([*command, "--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)]).success)


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


def _shown(lake: penstock.Lake, name: str, order: str) -> Table:
    frame = lake.sql(f"select * from {name} order by {order}")
    table = Table(title=f"{name} (read by Spark)")
    for column in frame.columns:
        table.add_column(column)
    for row in frame.collect():
        table.add_row(*(str(value) for value in row))
    return table


if __name__ == "__main__":
    sys.exit(main())
