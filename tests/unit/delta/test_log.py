from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.delta.log import Checkpoint, commit_info

NAMED = "0a1b2c3d-0000-4000-8000-0123456789ab"


def _domain(name: str) -> dict[str, object]:
    return {"domain": name, "configuration": "{}", "removed": False}


def _write(table: Path, file: str, *domains: str) -> None:
    """A checkpoint's file with these, among actions of other kinds."""
    log = table / "_delta_log"
    log.mkdir(exist_ok=True)
    actions = [{"domainMetadata": None, "add": "a"}, *({"domainMetadata": _domain(name)} for name in domains)]
    if file.endswith(".json"):
        (log / file).write_text(
            "\n".join(json.dumps({key: value for key, value in a.items() if value}) for a in actions)
        )
    else:
        pq.write_table(pa.Table.from_pylist(actions), log / file)


def _file(version: int, rest: str) -> str:
    return f"{version:020}.checkpoint.{rest}"


@pytest.mark.parametrize(
    "files",
    [
        {"parquet": ["a", "b"]},
        {f"{1:010}.{2:010}.parquet": ["a"], f"{2:010}.{2:010}.parquet": ["b"]},
        {f"{NAMED}.parquet": ["a", "b"]},
        {f"{NAMED}.json": ["a", "b"]},
    ],
    ids=["one file", "parts", "named", "named, JSON"],
)
def test_domains_of_every_kind(tmp_path: Path, files: dict[str, list[str]]) -> None:
    for rest, domains in files.items():
        _write(tmp_path, _file(4, rest), *domains)
    found = Checkpoint.newest(str(tmp_path), None, 9)
    assert found is not None
    assert found.version == 4
    assert sorted(str(domain["domain"]) for domain in found.domains()) == ["a", "b"]


def test_the_newest_that_is_complete_and_not_too_new(tmp_path: Path) -> None:
    _write(tmp_path, _file(2, "parquet"), "old")
    _write(tmp_path, _file(4, f"{1:010}.{2:010}.parquet"), "half")
    _write(tmp_path, _file(6, "parquet"), "new")
    for until, version in ((1, None), (2, 2), (5, 2), (6, 6)):
        found = Checkpoint.newest(str(tmp_path), None, until)
        assert (found and found.version) == version


def test_one_without_domains(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    pq.write_table(pa.table({"add": ["a"]}), tmp_path / "_delta_log" / _file(0, "parquet"))
    found = Checkpoint.newest(str(tmp_path), None, 0)
    assert found is not None
    assert not list(found.domains())


def test_the_commit_info_of_a_commit() -> None:
    add = b'{"add":{"path":"a","stats":"{\\"commitInfo\\":1}"}}'
    assert commit_info(add + b'\n{"commitInfo":{"timestamp":1}}\n') == {"timestamp": 1}
    assert commit_info(b'{ "commitInfo" : {"timestamp":1}}\nthis line is not read') == {"timestamp": 1}
    assert commit_info(add) == {}
    with pytest.raises(ValueError, match="Expecting value"):
        commit_info(b"no json")
