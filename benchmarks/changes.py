"""Changes of a big table: against a full refresh of the same model, and against dbt's `merge` over the whole source.

python -m benchmarks changes; or, smaller, python -m benchmarks.changes --rows 1000000
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
from statistics import median

from penstock.api import Lake, connect

SHARES = ((100, "1 %", True), (1000, "0.1 %", True), (100, "1 %", False), (1000, "0.1 %", False))
_ROUNDS = 3
# An order as shops have them: some 150 bytes a row, not just a key and a number.
ORDER = """
  id, id % 1000000 as customer_id, concat('customer ', id % 1000000) as name,
  concat('customer.', id % 1000000, '@example.com') as email, concat(id % 9973, ' Long Street') as street,
  concat('City ', id % 4999) as city, substr('DEFRITESPTNLBEAT', 1 + 2 * cast(id % 8 as int), 2) as country,
  case id % 4 when 0 then 'open' when 1 then 'paid' when 2 then 'shipped' else 'closed' end as status,
  cast(id % 1000 as double) as amount, cast((id % 1000) * 0.19 as decimal(10, 2)) as tax,
  date_add(date '2026-01-01', cast(id % 365 as int)) as day,
  timestamp '2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id % 31536000) as changed_at,
  sha1(cast(id as string)) as reference
"""
COLUMNS = (
    "id", "customer_id", "name", "email", "street", "city", "country", "status", "amount", "tax", "day", "changed_at",
    "reference",
)  # fmt: skip
MODEL = f"select {', '.join(COLUMNS).replace('name', 'upper(name) as name')} from silver.orders where amount >= 0"
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


def digest(lake: Lake, rows: str) -> tuple[int, int]:
    """The same for the same rows, in any order."""
    return tuple(lake.sql(f"select count(*), bit_xor(xxhash64(*)) from {rows}").first())


def change(lake: Lake, rows: int, every: int, turn: int, *, newest: bool) -> None:
    """Half of the rows that change are updated, a quarter is deleted, a quarter is new; each turn has rows of its own."""
    last = rows - turn * (rows // 100)
    changed = f"id >= {last - rows // every} and id < {last}" if newest else f"id % {every} = {turn}"
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
insert into silver.orders by name
select * except (id), id + 1000000000L * {turn + 1} as id from silver.orders version as of 0
where {changed} and pmod(hash(id, {turn}), 4) = 3
"""
    )


def measure(folder: Path, rows: int):  # type: ignore[no-untyped-def]
    from benchmarks.report import Measurement

    lake = connect(str(folder / "lake"))
    feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    lake.sql(f"create table silver.orders {feed} as select {ORDER} from range({rows})")

    def incremental(full_refresh: bool = False):  # type: ignore[no-untyped-def]
        return lake.merge_changes("gold.orders", key="id", select=MODEL, full_refresh=full_refresh)

    # Each once, so that none pays for the JVM's first time.
    print(f"  first run, cold: {timed(incremental):.1f} s", flush=True)
    lake.sql(f"create table gold.plain as {MODEL}")
    for warming in (17, 18):
        change(lake, rows, 10_000, warming, newest=False)
        incremental()
    found = []
    refresh, turn = 0.0, 0
    for every, share, newest in SHARES:
        held = every == 100
        # The machine is not equally fast for minutes: where a ratio is to be held, each is timed three times, by turns.
        times, refreshes = [], []
        for _ in range(_ROUNDS if held else 1):
            change(lake, rows, every, turn, newest=newest)
            turn += 1
            times.append(timed(incremental))
            changed = lake.sql("describe history gold.orders limit 1").first()["operationMetrics"]
            print(f"  {share}: {times[-1]:.1f} s, {changed.get('numTargetRowsUpdated')} updated", flush=True)
            assert digest(lake, f"({MODEL})") == digest(lake, "gold.orders")
            if held:
                refreshes.append(timed(lambda: incremental(full_refresh=True)))
        refresh = median(refreshes) if held else refresh
        target, note = (0.2, f"medians of {_ROUNDS}") if held else (None, "")
        work = f"{share} changed of {rows:,} rows, {'the newest' if newest else 'all over the table'}"
        found.append(Measurement(work, median(times), "full refresh of the same model", refresh, target, note))
        if held:
            theirs = timed(lambda: lake.sql(MERGE))
            peer = "dbt's `merge`, the whole source (leaves deleted rows)"
            found.append(Measurement(work, median(times), peer, theirs))
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
