"""Wrote `engine.zip` and `lake.tar.gz`, once, from the sources of 0.1.0. No test runs it.

python make.py engine <checkout of 0.1.0>/src/penstock
PYTHONPATH=engine.zip python make.py lake

The lake has, besides tables that ended well, what a run leaves that is killed: plans that were not run
(`bronze.events`, `gold.balances`, `silver.added_readings`) and a window without its record (`silver.readings`).
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PLACE = Path("/tmp/penstock-0.1.0")
"""Where the lake was written: its plans hold absolute paths."""
FIRST = 1_775_001_600
"""When the first file landed: 2026-04-01T00:00:00Z."""
SESSION = {
    "spark_config": {
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
}


class Killed(BaseException):
    pass


def kill_at(step: str) -> Callable[[str], None]:
    def reached(name: str) -> None:
        if name == step:
            raise Killed(name)

    return reached


def killed(run: Callable[..., Any], *arguments: str, at: str) -> None:
    try:
        run(*arguments, step=kill_at(at))
    except Killed:
        return
    raise AssertionError(f"{arguments} did not come to {at}")


class Landing:
    """Folders of JSON files, each a minute younger than the one before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._landed = 0

    def rows(self, path: str, *rows: dict[str, Any]) -> None:
        self.text(path, "".join(json.dumps(row) + "\n" for row in rows))

    def text(self, path: str, text: str) -> None:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        at = FIRST + 60 * self._landed
        os.utime(place, (at, at))
        self._landed += 1

    def files(self, folder: str, first: int, count: int) -> None:
        for index in range(first, first + count):
            rows = [{"id": 10 * index + row, "kind": "xyz"[row % 3], "amount": index * row} for row in range(2)]
            self.rows(f"{folder}/{index:03}.json", *rows)

    def day(self, day: int) -> None:
        for half in range(2):
            id, at = 10 * day + half, f"2026-04-{day:02}T{12 * half:02}:30:00Z"
            self.rows(f"readings/2026/04/{day:02}/{half}.json", {"id": id, "at": at, "value": day * 1.5 + half})


def make_lake() -> None:
    from run import Models

    PLACE.mkdir()
    landing, models = Landing(PLACE / "landing"), Models(PLACE, SESSION)
    make_files(landing, models)
    make_changes(models)
    make_windows(landing, models)
    write_tar(HERE / "lake.tar.gz")
    shutil.rmtree(PLACE)


def make_files(landing: Landing, models: Any) -> None:
    landing.files("events", 0, 6)
    models.ingest("bronze.events")
    models.ingest("bronze.events", full_refresh=True)
    landing.files("events", 6, 16)
    models.ingest("bronze.events")
    landing.text("events/bad.json", '{"id": broken\n')
    landing.text("events/empty.json", "")
    landing.files("events", 22, 2)
    assert list(models.ingest("bronze.events").quarantined) == [str(landing.folder / "events/bad.json")]
    landing.files("events", 24, 18)
    models.ingest("bronze.events")
    landing.files("events", 42, 3)
    killed(models.ingest, "bronze.events", at="planned")

    landing.files("orders", 0, 2)
    (landing.folder / "orders_link").symlink_to("orders")
    landing.files("payments", 0, 2)
    for name in ("bronze.orders", "bronze.payments"):
        models.ingest(name)
    landing.files("orders", 2, 2)
    landing.files("payments", 2, 2)
    for name in ("bronze.orders", "bronze.payments"):
        models.ingest(name)


def make_changes(models: Any) -> None:
    sql = models.lake.sql
    feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    sql(
        f"create table silver.countries {feed} as "
        "select * from values ('de', 'north'), ('it', 'south'), ('fr', 'west') as t(code, region)"
    )
    sql(
        f"create table silver.customers {feed} as select id, concat('name ', id) as name, "
        "element_at(array('de', 'it', 'fr'), cast(id % 3 + 1 as int)) as country, "
        "id * 10 as balance, id % 5 <> 0 as active from range(20)"
    )
    for name in ("gold.customers", "gold.balances"):
        models.merge_changes(name)
    sql("update silver.customers set balance = balance + 1, active = true where id in (1, 5)")
    sql("delete from silver.customers where id in (2, 3)")
    sql("insert into silver.customers values (20, 'name 20', 'it', 7, true)")
    for name in ("gold.customers", "gold.balances"):
        models.merge_changes(name)
    sql("update silver.countries set region = 'centre' where code = 'fr'")
    models.merge_changes("gold.customers")
    sql("update silver.customers set country = 'de' where id = 20")
    killed(models.merge_changes, "gold.balances", at="planned")
    sql("delete from silver.customers where id = 7")
    sql("insert into silver.customers values (2, 'name 2 again', 'fr', 3, true)")


def make_windows(landing: Landing, models: Any) -> None:
    for day in range(1, 7):
        landing.day(day)
    models.run_windows("silver.readings", "2026-04-01", "2026-04-05")
    models.run_windows("silver.readings", "2026-04-04", "2026-04-06")
    killed(models.run_windows, "silver.readings", "2026-04-06", "2026-04-07", at="committed")
    models.run_windows("silver.added_readings", "2026-04-01", "2026-04-05")
    models.run_windows("silver.added_readings", "2026-04-04", "2026-04-06")
    killed(models.run_windows, "silver.added_readings", "2026-04-06", "2026-04-07", at="planned")
    landing.day(7)


def write_tar(path: Path) -> None:
    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = int(entry.mtime)
        return entry

    with tarfile.open(path, "w:gz", compresslevel=9) as tar:
        for name in ("lake", "landing"):
            tar.add(PLACE / name, name, filter=plain)


def make_engine(package: Path) -> None:
    """Pack a `penstock` package, byte for byte the same each time."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as engine:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(f"penstock/{path.relative_to(package).as_posix()}")
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                engine.writestr(entry, path.read_bytes())
    (HERE / "engine.zip").write_bytes(made.getvalue())


if __name__ == "__main__":
    if sys.argv[1] == "engine":
        make_engine(Path(sys.argv[2]))
    else:
        make_lake()
