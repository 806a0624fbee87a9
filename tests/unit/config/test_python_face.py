"""`lake.ingest` and `lake.merge_changes`: an option that does nothing is an error, before Spark starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.config import Kind, keys
from penstock.errors import PenstockError

OF_FILES = {key.name for key in keys.OF_MODELS if Kind.FILES in key.kinds}
OF_CHANGES = {key.name for key in keys.OF_MODELS if Kind.CDF_MERGE in key.kinds}


@pytest.mark.parametrize("key", [key.name for key in keys.OF_MODELS if key.name not in OF_FILES])
def test_ingest_refuses_what_has_no_effect(tmp_path: Path, key: str) -> None:
    lake = penstock.connect(str(tmp_path / "lake"))
    with pytest.raises(PenstockError, match=f"`{key}` has no effect on an incremental model over @data: it works on "):
        lake.ingest("bronze.orders", roots=[str(tmp_path)], **{key: "anything"})
    assert lake.tables() == []


@pytest.mark.parametrize("key", [key.name for key in keys.OF_MODELS if key.name not in OF_CHANGES])
def test_merge_changes_refuses_what_has_no_effect(tmp_path: Path, key: str) -> None:
    lake = penstock.connect(str(tmp_path / "lake"))
    given: dict[str, Any] = {key: "anything"}
    with pytest.raises(
        PenstockError, match=f"`{key}` has no effect on an incremental model by cdf_merge: it works on "
    ):
        lake.merge_changes("gold.orders", key="id", select="select * from silver.orders", **given)
    assert lake.tables() == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"safety_buffer": 3}, "did you mean `safety_buffer_seconds`"),
        ({"source_roots": ["b"]}, "given twice"),
        ({"table_properties": {}}, "`table_properties` is not known"),
        ({"nonsense": 3}, "`nonsense` is not known"),
    ],
)
def test_ingest_refuses_what_it_does_not_know(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        penstock.connect(str(tmp_path / "lake")).ingest("bronze.orders", roots=["a"], **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [({"unique_key": "code"}, "another name of `key`"), ({"cdf_max_version": 3}, "`cdf_max_versions`")],
)
def test_merge_changes_refuses_what_it_does_not_know(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        penstock.connect(str(tmp_path / "lake")).merge_changes("g.o", key="id", select="select * from s.o", **given)
