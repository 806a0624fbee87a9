from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.api import Lake, connect
from penstock.lake.relations import View


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root: Path = tmp_path_factory.mktemp("lake")
    for name in ("a", "b"):
        columns = {"id": pa.array([1], pa.int64()), "n": pa.array([1], pa.int64()), f"only_{name}": pa.array([1])}
        write_deltalake(str(root / "s" / name), pa.table(columns))
    write_deltalake(str(root / "u" / "a"), pa.table({"id": pa.array([1]), "only_u": pa.array([1])}))
    lake = connect(str(root))
    for name, query in (
        ("v", "select id, n from s.a where n > 1 -- a note"),
        ("w", "with x as (select * from s.v) select * from x"),
    ):
        lake.storage.write(f"s/{name}/_view.json", View(query, ()).to_bytes())
    return lake
