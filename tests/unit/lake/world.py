"""A table's objects, and the death of a process, for the tests of drops and renames."""

from __future__ import annotations

from penstock.api import Lake
from penstock.sql.names import Name

ORDERS, MOVED = Name("silver", "orders"), Name("gold", "moved")
OBJECTS = {
    "_delta_log/00000000000000000000.json",
    "_delta_log/00000000000000000001.json",
    "_delta_log/00000000000000000001.checkpoint.parquet",
    "_delta_log/00000000000000000002.json",
    "_delta_log/_last_checkpoint",
    "_checkpoint/sources/0",
    "_checkpoint/sources/1",
    "part-0.parquet",
    "day=1/part-1.parquet",
}


class Killed(BaseException):
    pass


def objects(lake: Lake, name: Name) -> set[str]:
    prefix = f"{name.schema}/{name.identifier}/"
    return {entry.path.removeprefix(prefix) for entry in lake.storage.list(prefix.rstrip("/"))}
