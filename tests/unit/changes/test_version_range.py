"""What a source's log says of a window: no Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.changes import ChangeSource
from penstock.changes.plan import ChangePlan
from penstock.changes.version_range import FEED, Gap, Segment, SourceLog, Span, _numbered
from penstock.errors import PenstockError

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
    assert list(source.between(0, len(commits)).segments) == expected


def test_gaps(tmp_path):
    source = log(tmp_path, [metadata(feed=False)], [ADD], [metadata()])
    with pytest.raises(Gap, match=r"off at version 2 \(since 1\).*from version 1 to 3.*full_refresh"):
        source.between(0, 3)
    (tmp_path / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(Gap, match=r"s\.a was cleaned up: its versions 2 to 3 are needed, and 2 is gone"):
        source.between(1, 3)


def test_renamed(tmp_path):
    source = log(tmp_path, [metadata(ids="1 2")], [metadata("id:long title:integer", ids="1 2")])
    with pytest.raises(Gap, match=r"n of s\.a was renamed to title by version 2"):
        source.between(0, 2)


def test_other_columns(tmp_path):
    mapped, gone = metadata(ids="1 2"), metadata("id:long", ids="1")
    source = log(
        tmp_path, [mapped], [gone], [metadata(ids="1 3")], [metadata("id:long n:double s:string", ids="1 3 4")]
    )
    assert not source.between(0, 1).has_other_columns
    assert source.between(1, 2).dropped == {"n"}
    assert source.between(2, 3).added == {"n"}
    again = source.between(1, 3)
    assert (again.reread, again.added, again.dropped) == ({"n"}, set(), set())
    assert again.has_other_columns
    assert (source.between(3, 4).reread, source.between(3, 4).added) == ({"n"}, {"s"})
    # What replaces a table has columns of its own: what was in the old ones is told row by row.
    replaced = log(tmp_path, [mapped], [metadata(ids="5 6", id="u"), ADD])
    assert not replaced.between(0, 2).has_other_columns
    turned = log(tmp_path, [metadata("n:integer id:long")]).between(0, 1)
    assert turned.has_other_columns
    assert (turned.reread, turned.added, turned.dropped) == (set(), set(), set())


def test_fields_inside_of_columns_have_numbers_too():
    inner = {"type": "struct", "fields": [{"name": "x", "type": "long", "metadata": {"delta.columnMapping.id": 2}}]}
    other = {"type": "struct", "fields": [{"name": "x", "type": "long", "metadata": {"delta.columnMapping.id": 3}}]}
    both = {"type": "map", "keyType": inner, "valueType": {"type": "array", "elementType": other}}
    fields = [{"name": "m", "type": both, "metadata": {"delta.columnMapping.id": 1}}]
    assert _numbered(fields) == {1: ("m",), 2: ("m", "key", "x"), 3: ("m", "value", "element", "x")}


def test_a_log_made_anew(tmp_path):
    source = log(tmp_path, [ADD])
    span = Span("s.a", str(tmp_path), "t", 0, 1, source.digest(1))
    source.check_continuous(span, 1)
    with pytest.raises(Gap, match="made anew"):
        source.check_continuous(span, 0)
    log(tmp_path, [COMPACT])
    with pytest.raises(Gap, match="made anew"):
        source.check_continuous(span, 1)


def test_a_plan_comes_back_as_it_was():
    span = Span("s.a", "/x", "t", 3, 7, "c7", "c3")
    plan = ChangePlan(4, 2, (span,), rows=False, model="m")
    assert ChangePlan.from_bytes(4, plan.to_bytes(), "here") == plan
    assert plan.position(void=False)["s.a"].end == 7
    assert (plan.made_by(void=False), replace(plan, whole="w", built="b").made_by(void=False)) == ("", "m")
    assert replace(plan, whole="w", built="b").made_by(void=True) == "b"
    assert (plan.position(void=True)["s.a"].end, plan.position(void=True)["s.a"].commit) == (3, "c3")
    with pytest.raises(PenstockError, match="records files, not changes"):
        ChangePlan.from_bytes(4, plan.to_bytes().replace(b'"changes"', b'"files"'), "here")
    for data in (b"{", plan.to_bytes()[:-9]):
        with pytest.raises(PenstockError, match="can't be read"):
            ChangePlan.from_bytes(4, data, "here")


def test_a_wrong_config_is_told_at_once():
    with pytest.raises(PenstockError) as caught:
        ChangeSource.from_mapping(
            {"cdf_max_versions": 0, "on_cdf_gap": "ignore", "cdf_source": "a", "cdf_sources": "b"}, where="m"
        )
    for part in ("`unique_key` is missing", "`cdf_max_versions`", "`on_cdf_gap`", "`cdf_source`", "cdf_sources"):
        assert part in str(caught.value)
