from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError

from penstock.delta.table import MARK, VOID, Table, spark_type
from penstock.errors import NotFound

TYPES = [
    ("long", "bigint"),
    ("integer", "int"),
    ("short", "smallint"),
    ("byte", "tinyint"),
    ("decimal(10,2)", "decimal(10,2)"),
    ("timestamp_ntz", "timestamp_ntz"),
    ({"type": "array", "elementType": "integer", "containsNull": True}, "array<int>"),
    ({"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}, "map<string,bigint>"),
    (
        {"type": "struct", "fields": [{"name": "a", "type": {"type": "array", "elementType": "byte"}}]},
        "struct<a:array<tinyint>>",
    ),
    ({"type": "struct", "fields": [{"name": "a-b", "type": "long"}]}, "struct<`a-b`:bigint>"),
]


@pytest.mark.parametrize(("delta", "spark"), TYPES)
def test_types_are_written_as_spark_does(delta: object, spark: str) -> None:
    assert spark_type(delta) == spark


def test_a_varchar_keeps_its_length() -> None:
    assert spark_type("string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(10)"}) == "varchar(10)"


def test_no_table_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Table.open(str(tmp_path / "nothing"))


def test_marks_rise_and_are_read_back(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    write_deltalake(location, pa.table({"id": [1]}))
    assert Table.open(location).mark is None
    Table.open(location).commit_marks({MARK: 4, VOID: 4}, "penstock 4 base 0")
    assert (Table.open(location).mark, Table.open(location).void) == (4, 4)
    assert Table.open(location).statistics().rows == 1
    stale = Table.open(location)
    Table.open(location).commit_marks({MARK: 5}, "penstock 5 base 1", {"penstock.ledger": "a"})
    assert (Table.open(location).mark, Table.open(location).properties["penstock.ledger"]) == (5, "a")
    with pytest.raises(CommitFailedError):
        stale.commit_marks({MARK: 5}, "penstock 5 base 1")


def test_features_of_a_table_that_lists_none(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    assert Table.open(str(tmp_path)).features == {"appendOnly", "invariants"}


def test_clustering_is_what_the_newest_commit_says(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata", "clustering"]}

    def commit(version: int, columns: list[list[str]], **actions: object) -> list[str]:
        domain = {"domain": "delta.clustering", "configuration": json.dumps({"clusteringColumns": columns})}
        lines = [{key: action} for key, action in actions.items()] + [{"domainMetadata": domain | {"removed": False}}]
        log = tmp_path / "_delta_log" / f"{version:020}.json"
        log.write_text("\n".join(map(json.dumps, lines)))
        return Table.open(str(tmp_path)).clustering_columns

    assert Table.open(str(tmp_path)).clustering_columns == []
    assert commit(1, [["id"]], protocol=features) == ["id"]
    assert commit(2, []) == []
