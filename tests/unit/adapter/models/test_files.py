"""Models over `@data`: their source, their lineage, and the rows of their unit tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock.models import files


def source(name: str, **keys: Any) -> SimpleNamespace:
    return SimpleNamespace(
        unique_id=f"source.shop.raw.{name}", source_name="raw", name=name, config=SimpleNamespace(_extra=keys)
    )


def node(**config: Any) -> SimpleNamespace:
    return SimpleNamespace(
        name="events",
        config=SimpleNamespace(_extra=config, to_dict=lambda: {"materialized": "incremental", **config}),
        depends_on=SimpleNamespace(nodes=[]),
        sources=[],
    )


def project(*nodes: SimpleNamespace, **more: Any) -> SimpleNamespace:
    landing = source("landing", source_roots=["/landing"], source_format="json", max_files_per_trigger=5)
    return SimpleNamespace(
        sources={landing.unique_id: landing}, nodes={str(index): node for index, node in enumerate(nodes)}, **more
    )


def test_a_models_own_keys_go_over_those_of_its_source() -> None:
    given = {"file_source": "raw.landing", "max_files_per_trigger": 7}
    found = files.file_source(given, project(), None, "model.shop.events")
    assert (list(found.source_roots), found.source_format, found.max_files_per_trigger) == (["/landing"], "json", 7)


def test_a_dated_path_gives_the_root() -> None:
    found = files.file_source({"source_path": "/in/%Y/%m/%d/*.json"}, project(), None, "model.shop.events")
    assert list(found.source_roots) == ["/in"]


def test_a_source_that_does_not_exist_is_an_error_that_names_those_that_do() -> None:
    with pytest.raises(DbtRuntimeError, match=r"'raw.lading', which is not a source of this project.*raw.landing"):
        files.source_named(project(), "raw.lading")
    assert "raw.lading" in files.problems({"file_source": "raw.lading"}, project())[0]


def test_a_model_depends_on_its_source_once() -> None:
    reads, other = node(file_source="raw.landing"), node()
    manifest = project(reads, other)
    files.add_lineage(manifest)
    files.add_lineage(manifest)
    assert reads.depends_on.nodes == ["source.shop.raw.landing"]
    assert reads.sources == [["raw", "landing"]]
    assert other.depends_on.nodes == []


def test_a_unit_test_gives_the_rows_of_the_source() -> None:
    given = [SimpleNamespace(input="ref('a')", rows=[1]), SimpleNamespace(input='source("raw","landing")', rows=[2])]
    manifest = project(unit_tests={"unit_test.shop.t": SimpleNamespace(given=given)})
    test = {"name": "t", "unique_id": "unit_test.shop.t"}
    assert files.given_rows(test, node(file_source="raw.landing"), manifest) == [2]
    with pytest.raises(DbtRuntimeError, match="events has no `file_source`"):
        files.given_rows(test, node(), manifest)
    del given[1]
    with pytest.raises(DbtRuntimeError, match=r"gives no rows for @data: write them as `input: source\('raw', 'land"):
        files.given_rows(test, node(file_source="raw.landing"), manifest)
