"""What a source's log says about a version range: no Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.changes.source_log import FEED, SourceLog, _numbered
from penstock.changes.version_range import Gap, VersionRange
from penstock.spark.change_feed import Segment

ADD = {"add": {"path": "x", "size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": True}}
COMPACT = {"add": {**ADD["add"], "dataChange": False}}
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}


def metadata(columns: str = "id:long n:integer", feed: bool = True, id: str = "t", ids: str = "") -> dict:
    fields = []
    for position, column in enumerate(columns.split()):
        name, type = column.split(":")
        known = {"delta.columnMapping.id": int(ids.split()[position])} if ids else {}
        fields.append({"name": name, "type": type, "nullable": True, "metadata": known})
    schema = json.dumps({"type": "struct", "fields": fields})
    format = {"provider": "parquet", "options": {}}
    config = {FEED: str(feed).lower()}
    return {
        "metaData": {
            "id": id,
            "format": format,
            "schemaString": schema,
            "partitionColumns": [],
            "configuration": config,
        }
    }


def log(folder: Path, *commits: list[dict]) -> SourceLog:
    for version, actions in enumerate([[PROTOCOL, metadata(), ADD], *commits]):
        path = folder / "_delta_log" / f"{version:020}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(json.dumps(action) for action in [{"commitInfo": {"n": version}}, *actions]))
    return SourceLog("s.a", str(folder), None)


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([[ADD], [COMPACT], [ADD]], [Segment(1, 3)]),
        ([[COMPACT], [metadata()]], []),
        ([[{"cdc": {"path": "c"}}]], [Segment(1, 1)]),
        ([[ADD], [metadata("id:long n:integer more:string")], [ADD]], [Segment(1, 3)]),
        ([[ADD], [metadata("id:long")], [ADD]], [Segment(1, 1), Segment(3, 3)]),
        ([[ADD], [metadata("id:long n:long")], [ADD]], [Segment(1, 1), Segment(3, 3)]),
        ([[ADD], [metadata(id="u"), ADD], [ADD]], [Segment(1, 3)]),
        ([[ADD], [metadata("id:long n:string", id="u"), ADD], [ADD]],
         [Segment(1, 1), Segment(2, 2, by_snapshot=True), Segment(3, 3)]),
        ([[ADD], [metadata(feed=False)], [COMPACT], [metadata()], [ADD]], [Segment(1, 1), Segment(5, 5)]),
    ],
)  # fmt: skip
def test_segments(tmp_path, commits, expected):
    source = log(tmp_path, *commits)
    assert list(source.changes(0, len(commits)).segments) == expected


def test_gaps(tmp_path):
    source = log(tmp_path, [metadata(feed=False)], [ADD], [metadata()])
    with pytest.raises(Gap, match=r"off at version 2 \(since 1\).*from version 1 to 3.*full_refresh"):
        source.changes(0, 3)
    (tmp_path / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(Gap, match=r"s\.a was cleaned up: its versions 2 to 3 are needed, and 2 is gone"):
        source.changes(1, 3)


def test_renamed(tmp_path):
    source = log(tmp_path, [metadata(ids="1 2")], [metadata("id:long title:integer", ids="1 2")])
    with pytest.raises(Gap, match=r"n of s\.a was renamed to title by version 2"):
        source.changes(0, 2)


def test_other_columns(tmp_path):
    mapped, gone = metadata(ids="1 2"), metadata("id:long", ids="1")
    source = log(
        tmp_path, [mapped], [gone], [metadata(ids="1 3")], [metadata("id:long n:double s:string", ids="1 3 4")]
    )
    assert not source.changes(0, 1).has_other_columns
    assert source.changes(1, 2).dropped == {"n"}
    assert source.changes(2, 3).added == {"n"}
    again = source.changes(1, 3)
    assert (again.reread, again.added, again.dropped) == ({"n"}, set(), set())
    assert again.has_other_columns
    assert (source.changes(3, 4).reread, source.changes(3, 4).added) == ({"n"}, {"s"})
    # What replaces a table has columns of its own: what was in the old ones is told row by row.
    replaced = log(tmp_path, [mapped], [metadata(ids="5 6", id="u"), ADD])
    assert not replaced.changes(0, 2).has_other_columns
    turned = log(tmp_path, [metadata("n:integer id:long")]).changes(0, 1)
    assert turned.has_other_columns
    assert (turned.reread, turned.added, turned.dropped) == (set(), set(), set())


def test_fields_inside_of_columns_have_numbers_too():
    inner = {"type": "struct", "fields": [{"name": "x", "type": "long", "metadata": {"delta.columnMapping.id": 2}}]}
    other = {"type": "struct", "fields": [{"name": "x", "type": "long", "metadata": {"delta.columnMapping.id": 3}}]}
    both = {"type": "map", "keyType": inner, "valueType": {"type": "array", "elementType": other}}
    fields = [{"name": "m", "type": both, "metadata": {"delta.columnMapping.id": 1}}]
    assert _numbered(fields) == {1: ("m",), 2: ("m", "key", "x"), 3: ("m", "value", "element", "x")}


def test_a_log_that_was_created_again(tmp_path):
    source = log(tmp_path, [ADD])
    versions = VersionRange("s.a", str(tmp_path), "t", 0, 1, source.digest(1))
    source.check_continuous(versions, 1)
    with pytest.raises(Gap, match="created again"):
        source.check_continuous(versions, 0)
    log(tmp_path, [COMPACT])
    with pytest.raises(Gap, match="created again"):
        source.check_continuous(versions, 1)
