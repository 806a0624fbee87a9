"""What a location may hold, and what goes when a table there is dropped."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import penstock
from penstock.api import Lake
from penstock.errors import PenstockError
from penstock.lake import locations
from penstock.lake.relations import Link
from penstock.sql.names import Name

ORDERS = Name("silver", "orders")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = penstock.connect(str(tmp_path / "lake"))
    make_table(Path(lake.root) / "silver" / "taken")
    return lake


def make_table(folder: Path) -> None:
    write_deltalake(str(folder), pa.table({"id": [1], "part": ["a"]}), partition_by=["part"])


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("lake", "holds the lake itself"),
        (".", "holds the lake itself"),
        ("lake/silver", "folder of a schema"),
        ("lake/silver/taken", r"in the folder of silver\.taken"),
        ("lake/silver/taken/below", r"in the folder of silver\.taken"),
        ("lake/silver/new", r"in the folder of silver\.new"),
        ("lake/silver/new/below", r"in the folder of silver\.new"),
        ("lake/silver/orders/below", r"in the folder of silver\.orders"),
        ("lake/new_schema/new/below", r"in the folder of new_schema\.new"),
        ("lake/silver/.hidden/below", "folder of a schema"),
        ("link/silver", "folder of a schema"),
        ("landing", r"no Delta table, but other files: one\.csv"),
    ],
)
def test_a_location_that_is_not_free_is_refused(lake: Lake, tmp_path: Path, location: str, message: str) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "one.csv").write_text("id")
    (tmp_path / "link").symlink_to(lake.root)
    with pytest.raises(PenstockError, match=message):
        locations.check(lake, ORDERS, str((tmp_path / location).absolute()).rstrip("/."))


@pytest.mark.parametrize("location", ["elsewhere", "empty", "lake/silver/orders", "lake/_elsewhere/orders", "begun"])
def test_a_free_location_is_accepted(lake: Lake, tmp_path: Path, location: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun" / "_checkpoint" / "sources").mkdir(parents=True)
    (tmp_path / "begun" / "_checkpoint" / "sources" / "0").write_text("")
    (tmp_path / "begun" / "part-0.parquet").write_text("")
    locations.check(lake, ORDERS, str(tmp_path / location))


def test_a_table_is_foreign_until_the_relation_has_made_it_its_own(lake: Lake, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    assert locations.foreign(lake, ORDERS, elsewhere) is None
    make_table(tmp_path / "elsewhere")
    lake.link(ORDERS, Link(str(tmp_path / "another")))
    table = locations.foreign(lake, ORDERS, elsewhere)
    assert table is not None
    locations.check_adoptable(ORDERS, table, ["PART", "id"])
    with pytest.raises(PenstockError, match="holds another table, with the columns id, part"):
        locations.check_adoptable(ORDERS, table, ["id"])
    with pytest.raises(PenstockError, match="was not created as"):
        locations.check_marked(ORDERS, table)
    lake.link(ORDERS, Link(elsewhere))
    assert locations.foreign(lake, ORDERS, elsewhere) is None


def test_a_table_that_lies_where_its_config_does_not_say_is_named(lake: Lake, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    locations.check_unmoved(lake, ORDERS, None)
    make_table(tmp_path / "elsewhere")
    lake.link(ORDERS, Link(elsewhere))
    locations.check_unmoved(lake, ORDERS, elsewhere)
    for wanted in (None, str(tmp_path / "other")):
        with pytest.raises(PenstockError, match=f"Put `location: {elsewhere}` back"):
            locations.check_unmoved(lake, ORDERS, wanted)


@pytest.mark.parametrize(
    "foreign_file",
    [
        "notes.txt",
        "nested/_delta_log/0.json",
        "raw/one.parquet",
        "part=a/one.csv",
        "one.parquet",
        "part=a/part-00000-6a6fdb43-1b1e-4a63-9d54-1a3b6f8dbd8e-c000.snappy.parquet",
        ".one.parquet.crc",
        "deletion_vector_of_mine.bin",
    ],
)
def test_a_drop_takes_a_table_and_nothing_with_it(lake: Lake, tmp_path: Path, foreign_file: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    make_table(elsewhere)
    lake.link(ORDERS, Link(str(elsewhere)))
    (elsewhere / foreign_file).parent.mkdir(parents=True, exist_ok=True)
    (elsewhere / foreign_file).write_text("keep me")
    with pytest.raises(PenstockError, match=foreign_file):
        lake.drop(ORDERS, owns_location=True)
    assert lake.get(ORDERS).kind == "table"
    (elsewhere / foreign_file).unlink()
    lake.drop(ORDERS, owns_location=True)
    assert not elsewhere.exists()


def test_what_the_log_names_is_the_tables_own(lake: Lake, tmp_path: Path) -> None:
    """In any version: after overwrites, with checkpoints and without the commits before them, and in odd partitions."""
    elsewhere = tmp_path / "elsewhere"
    for number in range(4):
        rows = pa.table({"id": [number], "part": [f"a:b {number}/ü%"]})
        write_deltalake(str(elsewhere), rows, partition_by=["part"], mode="overwrite")
        if number == 2:
            DeltaTable(str(elsewhere)).create_checkpoint()
            for version in (0, 1):
                (elsewhere / "_delta_log" / f"{version:020}.json").unlink()
    data = next(elsewhere.glob("part=*/*.parquet"))
    data.with_name(f".{data.name}.crc").write_bytes(b"")
    (elsewhere / "deletion_vector_6a6fdb43-1b1e-4a63-9d54-1a3b6f8dbd8e.bin").write_bytes(b"")
    (elsewhere / "_checkpoint" / "sources").mkdir(parents=True)
    (elsewhere / "_checkpoint" / "sources" / "0").write_text("")
    assert len(list(elsewhere.glob("part=*/*.parquet"))) == 4
    lake.link(ORDERS, Link(str(elsewhere)))
    lake.drop(ORDERS, owns_location=True)
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_a_location_that_is_a_link_is_removed_alone(lake: Lake, tmp_path: Path) -> None:
    make_table(tmp_path / "behind")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "behind")
    lake.link(ORDERS, Link(str(tmp_path / "elsewhere")))
    lake.drop(ORDERS, owns_location=True)
    assert lake.find(ORDERS) is None
    assert not (tmp_path / "elsewhere").is_symlink()
    assert (tmp_path / "behind" / "_delta_log").exists()


def test_what_a_killed_drop_left_beside_a_location_is_swept(lake: Lake, tmp_path: Path) -> None:
    make_table(tmp_path / "elsewhere")
    lake.link(ORDERS, Link(str(tmp_path / "elsewhere")))

    def die(step: str) -> None:
        if step == "dropped":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lake.drop(ORDERS, owns_location=True, step=die)
    assert lake.find(ORDERS) is None
    assert sorted(path.name for path in tmp_path.iterdir()) != ["lake"]
    locations.check(lake, ORDERS, str(tmp_path / "elsewhere"))
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_a_drop_takes_no_other_relation_and_no_foreign_table(lake: Lake, tmp_path: Path) -> None:
    make_table(tmp_path / "elsewhere")
    for location, message in (
        (f"{lake.root}/silver/taken", "in the folder of"),
        (str(tmp_path / "elsewhere"), "was not created as"),
    ):
        lake.links[ORDERS] = Link(location)
        with pytest.raises(PenstockError, match=message):
            lake.drop(ORDERS, owns_location=True)
        assert Path(location, "_delta_log").exists()
