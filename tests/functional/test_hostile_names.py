"""Names and texts that are no part of the SQL around them, wherever a user or a stranger's file may give one."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt

from penstock import PenstockError
from penstock.api import Lake, connect
from penstock.lake.relations import Link
from penstock.sql.names import Name
from penstock.sql.quoting import literal, quote
from tests.conftest import SESSION, delta_rows

TEXT = "`a' \"b\\ \\n 'c\\' .;--/*x*/ ${env:HOME} ${spark.app.name} %s %20 \n\t ü 文 \\u0041 select"
COLUMN = "1`a'\"b\\c.d--e/*f*/%s%20$ü文"
"""All but the characters that Delta takes with column mapping alone."""
MAPPED = f"{COLUMN} ${{env:HOME}};(x)=y,\n"
RELATION = "1select"
"""Spark takes letters, digits and underscores."""
FILE = "`a' \"b\\.c -- ;%s%20${x}\n=(x),ü文"
NO_RELATIONS = ["a`b", "a.b", "a'b", 'a"b', "a b", "a;b", "a--b", "ü", "${x}", "a%b", "a:b", "a-b"]
MAPPING = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return connect(str(tmp_path / 'it\'s a "lake" `x` ;--%${x}ü'), session=SESSION)


@pytest.fixture
def schema() -> str:
    return f"1{uuid.uuid4().hex[:8]}_select"


def rows(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.sql(query).collect())


class TestEngine:
    def test_tables_and_views_have_any_name_that_a_folder_may_have(self, lake: Lake, schema: str) -> None:
        table, view, moved = (Name(schema, f"{kind}{RELATION}") for kind in ("t", "v", "m"))
        lake.sql(f"create schema {quote(schema)}")
        lake.sql(f"create table {table.sql} as select 1 as id")
        lake.sql(f"insert into {table.sql} values (2)")
        lake.sql(f"create view {view.sql} ({quote(MAPPED)}) comment {literal(TEXT)} as select id from {table.sql}")
        assert rows(lake, f"select {quote(MAPPED)} from {view.sql}") == [(1,), (2,)]
        again = connect(lake.root, session=SESSION)
        kept = again.view(again.get(view))
        assert (kept.description, [column.name for column in kept.columns]) == (TEXT, [MAPPED])
        assert set(kept.inputs) == {str(table)}
        assert again.view_is_current(view, kept.sql, description=TEXT)
        assert rows(again, f"select * from {view.sql}") == [(1,), (2,)]
        lake.sql(f"alter table {table.sql} rename to {moved.sql}")
        assert lake.find(table) is None
        assert rows(lake, f"select * from {moved.sql}") == [(1,), (2,)]
        lake.clone(moved, table)
        assert rows(lake, f"select * from {table.sql}") == [(1,), (2,)]
        lake.sql(f"drop table {table.sql}")
        assert [relation.name for relation in lake.relations(schema)] == [moved, view]

    @pytest.mark.parametrize("text", NO_RELATIONS)
    def test_any_other_is_one_clear_error_and_makes_nothing(self, lake: Lake, schema: str, text: str) -> None:
        lake.sql(f"create table {quote(schema)}.t as select 1 as id")
        for statement in (
            f"create schema {quote(text)}",
            f"create table {quote(text)}.t as select 1 as id",
            f"create table {quote(schema)}.{quote(text)} as select 1 as id",
            f"create view {quote(schema)}.{quote(text)} as select 1 as id",
            f"alter table {quote(schema)}.t rename to {quote(schema)}.{quote(text)}",
        ):
            with pytest.raises(PenstockError, match="can't be the name of a schema, table or view"):
                lake.sql(statement)
        with pytest.raises(PenstockError, match="can't be the name of a schema, table or view"):
            lake.clone(Name(schema, "t"), Name(schema, text))
        assert lake.schemas() == [schema]
        assert [str(relation) for relation in lake.relations(schema)] == [str(Name(schema, "t"))]

    def test_properties_and_comments_are_kept_as_they_are(self, lake: Lake, schema: str) -> None:
        name = Name(schema, "t")
        lake.create_schema(schema)
        properties = {f"my.{TEXT}": TEXT} | MAPPING
        clauses = lake_layout(properties, comment=TEXT, partition_by=(MAPPED,))
        lake.sql(f"create table {name.sql} using delta {clauses} as select 1 as id, 2 as {quote(MAPPED)}")
        table = lake.log_of(name)
        assert table.description == TEXT
        assert {key: table.properties[key] for key in properties} == properties
        assert table.partition_columns == [MAPPED]

    def test_columns_that_files_bring(self, lake: Lake, schema: str, tmp_path: Path) -> None:
        landing = tmp_path / f"l'{FILE}"
        landing.mkdir()
        (landing / f"{FILE}1.json").write_text(json.dumps({"id": 1, MAPPED: TEXT, "s": {MAPPED: "x"}}))
        name = Name(schema, f"t{RELATION}")
        given: dict[str, Any] = {
            "source_roots": [str(landing)],
            "safety_buffer_seconds": 0,
            "on_schema_change": "append_new_columns",
            "on_rewritten_file": "replace",
            "properties": MAPPING,
            "select": "select *, source_file_uri from @data",
        }
        lake.ingest(str(name), **given)
        (landing / f"{FILE}2.json").write_text(json.dumps({"id": 2, MAPPED: "y", f"new{MAPPED}": 1}))
        lake.ingest(str(name), **given)
        (landing / f"{FILE}1.json").write_text(json.dumps({"id": 3, MAPPED: "zz"}))
        lake.ingest(str(name), **given)
        found = rows(lake, f"select id, {quote(MAPPED)}, {quote('new' + MAPPED)} from {name.sql}")
        assert found == [(2, "y", 1), (3, "zz", None)]
        assert os.environ["HOME"] not in str([column.name for column in lake.columns(name)])

    def test_columns_that_a_config_declares(self, lake: Lake, schema: str, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.csv").write_text("1|'x`\n2|\n")
        lake.ingest(
            str(Name(schema, "t")),
            source_roots=[str(tmp_path / "in")],
            safety_buffer_seconds=0,
            source_columns=[{"name": COLUMN, "type": "int"}, {"name": "b'", "type": "string"}],
            source_options={"sep": "|", "nullValue": TEXT, "quote": "'"},
            rescued_data_column=f"r{COLUMN}",
        )
        assert len(rows(lake, f"select {quote(COLUMN)}, {quote('r' + COLUMN)} from {quote(schema)}.t")) == 2

    def test_keys_and_columns_of_a_merge_of_changes(self, lake: Lake, schema: str) -> None:
        source, target = Name(schema, f"s{RELATION}"), Name(schema, f"t{RELATION}")
        lake.create_schema(schema)
        lake.sql(
            f"create table {source.sql} tblproperties ('delta.enableChangeDataFeed' = 'true') as "
            f"select 1 as {quote(COLUMN)}, named_struct({literal(COLUMN)}, 'a') as {quote('v' + COLUMN)}"
        )
        merge = {"key": quote(COLUMN), "source": str(source), "select": "select * from @changes"}
        lake.merge_changes(str(target), **merge)
        lake.sql(f"insert into {source.sql} select 2, named_struct({literal(COLUMN)}, 'b')")
        lake.sql(f"delete from {source.sql} where {quote(COLUMN)} = 1")
        lake.merge_changes(str(target), **merge)
        assert [row[0] for row in rows(lake, f"select {quote(COLUMN)} from {target.sql}")] == [2]

    def test_a_link_says_a_format_and_options_and_no_sql(self, lake: Lake, schema: str, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.csv").write_text("1'2\n")
        name, bad = Name(schema, "t"), Name(schema, "bad")
        lake.link(name, Link(str(tmp_path / "in"), "csv", {"sep": "'", TEXT: TEXT}))
        assert rows(lake, f"select * from {name.sql}") == [("1", "2")]
        lake.link(bad, Link(str(tmp_path / "in"), "csv options (sep ';') --", {}))
        with pytest.raises(PenstockError, match="none of parquet, csv"):
            lake.sql(f"select * from {bad.sql}")

    def test_settings_that_quoting_relies_on_stay(self, lake: Lake) -> None:
        for key in ("spark.sql.parser.escapedStringLiterals", "spark.sql.variable.substitute"):
            assert rows(lake, f"set {key}") == [(key, "false")]
            lake.sql(f"set {key} = false")
            with pytest.raises(PenstockError, match="can't be set to true"):
                lake.sql(f"-- why not\nset {key} = true")
            lake.sql("reset")
            assert rows(lake, f"set {key}") == [(key, "false")]
        assert rows(lake, f"select {literal(TEXT)}") == [(TEXT,)]
        assert rows(lake, "select '${env:HOME}'") == [("${env:HOME}",)]

    def test_what_delta_refuses_is_deltas_error(self, lake: Lake, schema: str) -> None:
        lake.create_schema(schema)
        with pytest.raises(PenstockError, match="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"):
            lake.sql(f"create table {quote(schema)}.t as select 1 as {quote('a b')}")


def lake_layout(properties: dict[str, str], *, comment: str, partition_by: tuple[str, ...]) -> str:
    from penstock.delta.layout import Layout

    return Layout(partition_by=partition_by, properties=properties, comment=comment).clauses()


SQL_COLUMN = quote(COLUMN)
CONFIG = {"unique_key": [COLUMN], "merge_update_columns": [f"v{COLUMN}"]}


def model(config: dict[str, Any], select: str) -> str:
    """A model whose config is a Python value: hostile texts go in by their repr."""
    arguments = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return f"{{{{ config({arguments}) }}}}\n{select}"


def rows_of(pairs: list[tuple[int, str]]) -> str:
    return " union all ".join(
        f"select {number} as {SQL_COLUMN}, {literal(text)} as {quote('v' + COLUMN)}" for number, text in pairs
    )


STEP = (
    "{% if is_incremental() %}"
    + rows_of([(2, "new"), (3, TEXT)])
    + "{% else %}"
    + rows_of([(1, "old"), (2, "old")])
    + "{% endif %}"
)


class TestModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        incremental = {"materialized": "incremental", "alias": f"m{RELATION}"}
        documented = {
            "version": 2,
            "models": [
                {
                    "name": "documented",
                    "description": TEXT,
                    "config": {"table_properties": {f"k{TEXT}": TEXT}},
                    "columns": [{"name": COLUMN, "quote": True, "description": TEXT, "data_type": "int"}],
                },
                # By dbt's static parser a config in the SQL would keep its escapes.
                {"name": "timed", "config": {"event_time": f"d{COLUMN}"}},
                {"name": "windowed", "config": {"event_time": f"d{COLUMN}"}},
                {
                    "name": "checked",
                    "config": {"contract": {"enforced": True}},
                    "columns": [
                        {
                            "name": COLUMN,
                            "quote": True,
                            "data_type": "int",
                            "constraints": [{"type": "not_null", "name": TEXT}],
                        }
                    ],
                },
            ],
        }
        return {
            "merged.sql": model({**incremental, **CONFIG, "incremental_strategy": "merge"}, STEP),
            "excluded.sql": model(
                {
                    "materialized": "incremental",
                    "unique_key": quote(COLUMN),
                    "merge_exclude_columns": [quote(f"v{COLUMN}")],
                },
                STEP,
            ),
            "deleted.sql": model(
                {"materialized": "incremental", "unique_key": COLUMN, "incremental_strategy": "delete+insert"}, STEP
            ),
            # Delta's own UPDATE and MERGE know no backtick in a partition's column.
            "appended.sql": model(
                {"materialized": "incremental", "incremental_strategy": "append", "partition_by": f"v{COLUMN}"}, STEP
            ),
            "documented.sql": model(
                {
                    "materialized": "table",
                    "persist_docs": {"relation": True, "columns": True},
                },
                f"select 1 as {SQL_COLUMN}",
            ),
            "checked.sql": model({"materialized": "table"}, f"select 1 as {SQL_COLUMN}"),
            "py.py": f"def model(dbt, session):\n    dbt.config(alias={'p' + RELATION!r})\n"
            "    session.conf.set('spark.sql.parser.escapedStringLiterals', 'true')\n"
            f"    return session.createDataFrame([(1,)], [{COLUMN!r}])\n",
            "windowed.sql": model(
                {
                    "materialized": "incremental",
                    "incremental_strategy": "microbatch",
                    "batch_size": "day",
                    "begin": "2026-01-01",
                },
                "select * from {{ ref('timed') }}",
            ),
            "timed.sql": model(
                {"materialized": "table"},
                f"select 1 as id, timestamp'2026-01-01 10:00:00' as {quote('d' + COLUMN)} union all "
                f"select 2, timestamp'2026-01-02 10:00:00'",
            ),
            "schema.yml": yaml.safe_dump(documented, allow_unicode=True),
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        header = '"' + COLUMN.replace('"', '""') + '"'
        return {"seeded.csv": f"id,{header}\n1,it's \\n ${{env:HOME}}\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        config = {"unique_key": quote(COLUMN), "strategy": "check", "check_cols": [quote(f"v{COLUMN}")]}
        return {
            "snapped.sql": "{% snapshot snapped %}"
            + model({**config, "target_schema": "snaps"}, rows_of([(1, TEXT)]))
            + "{% endsnapshot %}"
        }

    def test_all_of_it_runs_twice(self, project: Any) -> None:
        window = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-03"]
        run_dbt(["seed"])
        run_dbt(["run", *window])
        run_dbt(["run", *window])
        run_dbt(["snapshot"])
        run_dbt(["snapshot"])
        schema = Path(project.adapter.lake.root) / project.test_schema

        def values(name: str) -> list[tuple[Any, Any]]:
            return sorted((row[COLUMN], row[f"v{COLUMN}"]) for row in delta_rows(schema / name))

        after = [(1, "old"), (2, "new"), (3, TEXT)]
        assert values(f"m{RELATION}") == after
        assert values("deleted") == after
        assert values("excluded") == [(1, "old"), (2, "old"), (3, TEXT)]
        assert values("appended") == sorted([(1, "old"), (2, "old"), (2, "new"), (3, TEXT)])
        assert delta_rows(schema / f"p{RELATION}") == [{COLUMN: 1}]
        assert delta_rows(schema / "seeded") == [{"id": 1, COLUMN: "it's \\n ${env:HOME}"}]
        assert sorted(row["id"] for row in delta_rows(schema / "windowed")) == [1, 2]
        table = project.adapter.lake.log_of(f"{project.test_schema}.documented")
        assert table.description == TEXT
        assert table.properties[f"k{TEXT}"] == TEXT
        assert [column.comment for column in table.columns] == [TEXT]
        assert len(delta_rows(schema.parent / "snaps" / "snapped")) == 1
