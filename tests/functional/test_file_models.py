"""Models over `@data`, through dbt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from penstock.delta.table import Table
from penstock.sql.names import Name
from tests.places import Place

pytestmark = pytest.mark.users_session

MODEL = """
{{ config(materialized='incremental', source_roots=['landing'], source_patterns=['\\\\.json$'],
          max_files_per_trigger=2, safety_buffer_seconds=0) }}
select id, upper(name) as name, source_file_uri from @data where id > 0
"""
SOURCES = """
sources:
  - name: landing
    schema: landing
    tables:
      - name: events
        config: {source_roots: [landing], source_patterns: ['\\.json$'], safety_buffer_seconds: 0}
models:
  - name: over
    description: Events, each file once
    config: {persist_docs: {relation: true}}
  - name: contracted
    config: {contract: {enforced: true}, on_schema_change: fail}
    columns:
      - {name: id, data_type: bigint, constraints: [{type: not_null}]}
"""


def land(project, name: str, *ids: int) -> None:
    folder = Path(project.project_root) / "landing"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps({"id": id, "name": f"n{id}"}) + "\n" for id in ids))


def ids(project, model: str) -> list[int]:
    rows = project.run_sql(f"select id from {project.test_schema}.{model} order by id", fetch="all")
    return [row[0] for row in rows]


class TestFileModel:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "landed.sql": MODEL,
            "sampled.sql": MODEL,
            "rebuilt.sql": MODEL.replace("'incremental'", "'table'"),
            "over.sql": "{{ config(materialized='incremental', file_source='landing.events') }} select id from @data",
            "contracted.sql": "{{ config(materialized='incremental', file_source='landing.events') }} "
            "select id from @data",
            "sources.yml": SOURCES,
        }

    def test_each_file_is_in_once(self, project, place: Place) -> None:
        for number in range(1, 6):
            land(project, f"{number}.json", number)
        (Path(project.project_root) / "landing" / "notes.txt").write_text("not data")
        results, said = run_dbt_and_capture(["run", "--exclude", "sampled"])
        landed = next(result for result in results if result.node.name == "landed")
        assert (landed.adapter_response["files"], landed.adapter_response["rows_inserted"]) == (5, 5)
        assert "batch 3 of 3 · 1 file" in said
        location = place.path(project.adapter.lake.location_of(Name(project.test_schema, "over")))
        assert Table.open(str(location)).description == "Events, each file once"
        for model in ("landed", "rebuilt", "over", "contracted"):
            assert ids(project, model) == [1, 2, 3, 4, 5], model

        land(project, "6.json", 6)
        results = run_dbt(["run", "-s", "landed", "rebuilt", "over"])
        for model in ("landed", "rebuilt", "over"):
            assert ids(project, model) == [1, 2, 3, 4, 5, 6], model
        kept = {"delta.logRetentionDuration": "interval 90 days"}
        write_file(MODEL.replace("config(", f"config(table_properties={kept}, "), "models", "landed.sql")
        again = run_dbt(["run", "-s", "landed"])
        assert again[0].adapter_response["_message"] == "OK nothing new"
        assert project.adapter.lake.log_of(f"{project.test_schema}.landed").properties.items() >= kept.items()

        run_dbt(["run", "-s", "landed", "--full-refresh"])
        assert ids(project, "landed") == [1, 2, 3, 4, 5, 6]

    def test_the_source_is_in_the_lineage(self, project) -> None:
        run_dbt(["parse"])
        found = run_dbt(["ls", "-s", "source:landing+", "--resource-type", "model"])
        assert sorted(found) == ["test.contracted", "test.over"]

    def test_show_and_empty_bring_nothing_in(self, project) -> None:
        land(project, "7.json", 7)
        shown = run_dbt(["show", "-s", "landed", "--limit", "2"])
        assert len(shown.results[0].agate_table) == 2
        run_dbt(["run", "-s", "landed", "--empty"])
        run_dbt(["run", "-s", "landed"])
        assert ids(project, "landed").count(7) == 1

    def test_a_sample_is_one_batch_that_the_next_run_goes_on_from(self, project) -> None:
        run_dbt(["run", "-s", "sampled", "--sample", "3 days"])
        assert len(ids(project, "sampled")) == 2
        run_dbt(["run", "-s", "sampled"])
        assert ids(project, "sampled") == ids(project, "landed")

    def test_a_null_breaks_the_contract_and_nothing_comes_in(self, project) -> None:
        before = ids(project, "contracted")
        (Path(project.project_root) / "landing" / "8.json").write_text('{"name": "no id"}\n')
        run_dbt(["run", "-s", "contracted"], expect_pass=False)
        assert ids(project, "contracted") == before


UNIT_TESTS = """
unit_tests:
  - name: rows
    model: over
    given:
      - input: source('landing', 'events')
        rows:
          - {id: 1, name: a, source_file_uri: x.json}
          - {id: -1, name: b}
          - {id: 2}
    expect:
      rows:
        - {id: 1, name: A, source_file_uri: x.json}
        - {id: 2, name: null, source_file_uri: null}
  - name: csv
    model: over
    given:
      - input: source("landing", "events")
        format: csv
        rows: |
          id,name
          7,o'brien
    expect:
      format: csv
      rows: |
        id,name
        7,O'BRIEN
  - name: none
    model: over
    given: [{input: "source('landing', 'events')", rows: []}]
    expect: {rows: []}
  - name: wrong
    model: over
    given: [{input: "source('landing', 'events')", rows: [{id: 1, name: a}]}]
    expect: {rows: [{id: 2, name: A}]}
  - name: without_rows
    model: over
    given: []
    expect: {rows: []}
  - name: without_source
    model: rooted
    given: []
    expect: {rows: []}
"""


class TestUnitTests:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        select = "select id, upper(name) as name, source_file_uri from @data where id > 0"
        return {
            "over.sql": "{{ config(materialized='incremental', file_source='landing.events') }} " + select,
            "rooted.sql": "{{ config(materialized='incremental', source_roots=['landing']) }} " + select,
            "sources.yml": SOURCES.split("models:")[0],
            "unit_tests.yml": UNIT_TESTS,
        }

    def test_given_rows_stand_for_data(self, project) -> None:
        land(project, "1.json", 1)
        results = run_dbt(["test", "--select", "test_type:unit"], expect_pass=False)
        found = {result.node.name: result for result in results}
        assert {name: str(result.status) for name, result in found.items()} == {
            "rows": "pass",
            "csv": "pass",
            "none": "pass",
            "wrong": "fail",
            "without_rows": "error",
            "without_source": "error",
        }
        assert "input: source('landing', 'events')" in found["without_rows"].message
        assert "`file_source`" in found["without_source"].message


class TestWrongFileModel:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "scripted.sql": "{{ config(materialized='incremental', source_roots=['landing']) }}\n"
            "#DECLARE x int\nselect * from @data",
            "mistyped.sql": "{{ config(materialized='incremental', source_roots=['landing'], max_file_per_trigger=3) }} "
            "select * from @data",
            "wrong.sql": "{{ config(materialized='incremental', source_roots=['landing'], max_files_per_trigger=0, "
            "on_bad_file='ignore') }} select * from @data",
            "unknown.sql": "{{ config(materialized='incremental', source_roots=['nowhere']) }} select * from @data",
        }

    @pytest.mark.parametrize(
        ("model", "expected"),
        [
            ("scripted", ["Line 2, column 1", "#DECLARE"]),
            ("mistyped", ["max_files_per_trigger"]),
            ("wrong", ["`max_files_per_trigger`", "`on_bad_file`"]),
            ("unknown", ["nowhere"]),
        ],
    )
    def test_one_clear_error(self, project, place: Place, model: str, expected: list[str]) -> None:
        land(project, "1.json", 1)
        results = run_dbt(["run", "-s", model], expect_pass=False)
        for part in expected:
            assert part in results[0].message
        assert not (place.path(project.adapter.lake.root) / project.test_schema / model).exists()


class TestEmptyFirst:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"begun_empty.sql": MODEL}

    def test_what_empty_has_made_takes_batch_after_batch(self, project, place: Place) -> None:
        """It has no mark of ours, and becomes ours as it is: what its owner set is kept."""
        land(project, "first.json", 1, 2)
        run_dbt(["run", "-s", "begun_empty", "--empty"])
        table = str(place.path(project.adapter.lake.location_of(Name(project.test_schema, "begun_empty"))))
        assert Table.open(table).mark is None
        project.run_sql(f"alter table {project.test_schema}.begun_empty set tblproperties ('team' = 'shop')")
        run_dbt(["run", "-s", "begun_empty"])
        run_dbt(["run", "-s", "begun_empty"])
        assert ids(project, "begun_empty") == [1, 2]
        land(project, "second.json", 3)
        run_dbt(["run", "-s", "begun_empty"])
        assert ids(project, "begun_empty") == [1, 2, 3]
        assert Table.open(table).properties["team"] == "shop"
