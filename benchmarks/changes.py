"""Changes of a big table: against a full refresh of the same model, and against dbt's `merge` over the whole source.

python -m benchmarks changes; or, smaller, python benchmarks/changes.py --rows 1000000
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from penstock.lake import Lake, connect

SHARES = ((100, "1 %", True), (1000, "0.1 %", True), (100, "1 %", False), (1000, "0.1 %", False))
MODEL = "select id, upper(name) as name, amount, day from silver.orders where amount >= 0"
COLUMNS = ("id", "name", "amount", "day")
# What dbt's own strategy does without `is_incremental()`: the whole source against the whole target.
MERGE = f"""
merge into gold.plain as t using ({MODEL}) as s on s.id <=> t.id
when matched then update set {", ".join(f"t.{column} = s.{column}" for column in COLUMNS)}
when not matched then insert ({", ".join(COLUMNS)}) values ({", ".join(f"s.{column}" for column in COLUMNS)})
"""


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def change(lake: Lake, rows: int, every: int, turn: int, *, newest: bool) -> None:
    """Half of the rows that change are updated, a quarter is deleted, a quarter is new."""
    changed = f"id between {rows - rows // every} and {rows}" if newest else f"id % {every} = {turn}"
    lake.sql(
        f"""
merge into silver.orders as t using (
  select id as key, pmod(hash(id, {turn}), 4) as kind from silver.orders where {changed}
) as s on t.id = s.key
when matched and s.kind = 0 then delete
when matched and s.kind < 3 then update set amount = t.amount + 1
"""
    )
    lake.sql(
        f"""
insert into silver.orders
select id + 1000000000L * {turn + 1}, name, amount, day from silver.orders version as of 0
where {changed} and pmod(hash(id, {turn}), 4) = 3
"""
    )


def measure(folder: Path, rows: int):  # type: ignore[no-untyped-def]
    from benchmarks.report import Measurement

    lake = connect(str(folder / "lake"))
    lake.sql(
        f"""
create table silver.orders tblproperties ('delta.enableChangeDataFeed' = 'true') as
select id, concat('customer ', id % 100000) as name, cast(id % 1000 as double) as amount,
       date_add(date '2026-01-01', cast(id % 365 as int)) as day
from range({rows})
"""
    )

    def incremental(full_refresh: bool = False):  # type: ignore[no-untyped-def]
        return lake.merge_changes("gold.orders", key="id", select=MODEL, full_refresh=full_refresh)

    # Each once, so that none pays for the JVM's first time.
    first = timed(incremental)
    print(f"  first run, cold: {first:.1f} s", flush=True)
    lake.sql(f"create table gold.plain as {MODEL}")
    change(lake, rows, 10_000, 7, newest=False)
    incremental()
    lake.sql(MERGE)
    refresh = timed(lambda: incremental(full_refresh=True))
    found = []
    for turn, (every, share, newest) in enumerate(SHARES):
        change(lake, rows, every, turn, newest=newest)
        ours = timed(incremental)
        changed = lake.sql("describe history gold.orders limit 1").first()["operationMetrics"]
        print(f"  {share}: {ours:.1f} s, {changed.get('numTargetRowsUpdated')} updated", flush=True)
        theirs = timed(lambda: lake.sql(MERGE))
        again = timed(lambda: incremental(full_refresh=True))
        work = f"{share} changed of {rows:,} rows, {'the newest' if newest else 'all over the table'}"
        target = 0.2 if every == 100 else None
        found.append(Measurement(work, ours, "full refresh of the same model", again, target))
        found.append(Measurement(work, ours, "dbt's `merge`, the whole source (leaves deleted rows)", theirs))
        assert lake.sql(f"select count(*) from (({MODEL}) except all (select * from gold.orders))").first()[0] == 0
    code = (
        "import sys, time, penstock\n"
        f"lake = penstock.connect({lake.root!r})\n"
        "began = time.perf_counter()\n"
        f"assert lake.merge_changes('gold.orders', key='id', select={MODEL!r}).nothing_new\n"
        "assert 'pyspark' not in sys.modules\n"
        "print(time.perf_counter() - began)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found.append(
        Measurement(f"nothing changed of {rows:,} rows", float(done.stdout), "full refresh", refresh, None, "no JVM")
    )
    return found


def main() -> None:
    from benchmarks.report import show

    show("changes", "Changes of a table", _measured(10_000_000))


def _measured(rows: int):  # type: ignore[no-untyped-def]
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        return measure(folder, rows)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    for measured in _measured(parser.parse_args().rows):
        print(" | ".join(measured.row))
