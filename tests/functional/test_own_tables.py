"""The lake's own tables through dbt: in macros of packages, in models, in tests, and in docs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from dbt.tests.util import get_artifact, run_dbt, run_dbt_and_capture, write_file
from deltalake import write_deltalake

from penstock.errors import PenstockError

# The SQL that dbt-utils renders for get_relations_by_pattern, which dbt-codegen's generate_source asks.
MACROS = """
{% macro relations_like(schema, table, exclude='') %}
  {% set found = run_query("
        select distinct
            table_schema as " ~ adapter.quote('table_schema') ~ ",
            table_name as " ~ adapter.quote('table_name') ~ ",
            case table_type
                when 'BASE TABLE' then 'table'
                when 'EXTERNAL TABLE' then 'external'
                when 'MATERIALIZED VIEW' then 'materializedview'
                else lower(table_type)
            end as " ~ adapter.quote('table_type') ~ "
        from " ~ target.database ~ ".information_schema.tables
        where table_schema ilike '" ~ schema ~ "'
        and table_name ilike '" ~ table ~ "'
        and table_name not ilike '" ~ exclude ~ "'") %}
  {% set relations = [] %}
  {% for row in found %}
    {% do relations.append(api.Relation.create(
        database=target.database, schema=row.table_schema, identifier=row.table_name, type=row.table_type)) %}
  {% endfor %}
  {{ return(relations) }}
{% endmacro %}

{% macro show_relations(schema) %}
  {% for relation in relations_like(schema, '%', '%_left_out') | sort(attribute='identifier') %}
    {{ print(relation.identifier ~ ' is a ' ~ relation.type ~ ' of '
             ~ adapter.get_columns_in_relation(relation) | map(attribute='name') | join(',')) }}
  {% endfor %}
{% endmacro %}

{#- What dbt-profiler asks before it makes its query. -#}
{% macro show_types(schema, table) %}
  {% set relation = adapter.get_relation(target.database, schema, table) %}
  {% do run_query("select * from " ~ relation ~ " limit 0") %}
  {% set found = run_query("select
    *
  from " ~ relation.information_schema() ~ ".COLUMNS
  where lower(table_schema) = lower('" ~ relation.schema ~ "')
    and lower(table_name) = lower('" ~ relation.identifier ~ "')
  order by ordinal_position asc") %}
  {% set found = found.rename(found.column_names | map('lower')) %}
  {{ print(found.columns['column_name'].values() | map('lower') | join(',')) }}
  {{ print(found.columns['data_type'].values() | map('lower') | join(',')) }}
  {{ print(relation.information_schema('tables')) }}
{% endmacro %}
"""
# One part of the query that dbt-profiler makes.
PROFILE = """
with source_data as (select * from {{ source('catalog', 'columns') }} where table_name = 'orders'),
column_profiles as (
  select lower('ordinal_position') as column_name, nullif(lower('int'), '') as data_type,
    cast(count(*) as {{ dbt.type_bigint() }}) as row_count,
    case when cast(count(*) as {{ dbt.type_bigint() }}) > 0
      then count(distinct `ordinal_position`) / cast(count(*) as {{ dbt.type_numeric() }}) end as distinct_proportion,
    cast(min(`ordinal_position`) as string) as min, avg(`ordinal_position`) as avg, median(`ordinal_position`) as median
  from source_data
)
select * from column_profiles
"""
SOURCES = """
sources:
  - name: catalog
    schema: information_schema
    tables: [{name: columns}, {name: tables}]
"""


def printed(args: list[str]) -> str:
    return str(run_dbt_and_capture(["--quiet", *args])[1])


class TestInformationSchema:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": "{{ config(materialized='table') }} select 1 as id, cast(2 as decimal(10,2)) as price",
            "names.sql": "-- depends_on: {{ ref('orders') }}\n"
            "select table_name from {{ source('catalog', 'tables') }} where table_schema = '{{ target.schema }}'",
            "orders_left_out.sql": "select * from {{ ref('orders') }}",
            # Its rows come through a temporary view.
            "merged.sql": "{{ config(materialized='incremental', unique_key='table_name') }} "
            "-- depends_on: {{ ref('names') }}\n"
            "select t.table_name, t.table_type from information_schema.tables t where t.table_schema = '{{ target.schema }}'",
            "profile.sql": "{{ config(materialized='table') }} -- depends_on: {{ ref('orders') }}\n" + PROFILE,
            "sources.yml": SOURCES,
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"packages.sql": MACROS}

    def test_packages_models_and_docs(self, project) -> None:
        run_dbt(["run"])
        found = printed(
            ["run-operation", "show_relations", "--args", json.dumps({"schema": project.test_schema.upper()})]
        )
        lines = [line.strip() for line in found.splitlines() if " is a " in line]
        assert lines == [
            "merged is a table of table_name,table_type",
            "names is a view of table_name",
            "orders is a table of id,price",
            "profile is a table of column_name,data_type,row_count,distinct_proportion,min,avg,median",
        ]
        found = printed(
            ["run-operation", "show_types", "--args", json.dumps({"schema": project.test_schema, "table": "orders"})]
        )
        assert found.split() == ["id,price", "int,decimal(10,2)", "`spark_catalog`.INFORMATION_SCHEMA.tables"]
        found = printed(["run-operation", "show_relations", "--args", json.dumps({"schema": "information_schema"})])
        assert "schemata is a view of catalog_name,schema_name,schema_owner,location" in found

        def merged() -> set[str]:
            return {
                row[0] for row in project.run_sql(f"select table_name from {project.test_schema}.merged", fetch="all")
            }

        assert "names" in merged()
        assert "merged" not in merged()
        run_dbt(["run", "-s", "merged"])
        assert "merged" in merged()
        profile = project.run_sql(f"select * from {project.test_schema}.profile", fetch="all")
        assert [(row[2], row[4], float(row[5]), float(row[6])) for row in profile] == [(2, "1", 1.5, 1.5)]
        # A view that another process wrote, in another session.
        rows = project.run_sql(f"select * from {project.test_schema}.names order by 1", fetch="all")
        assert [row[0] for row in rows] == ["merged", "names", "orders", "orders_left_out", "profile"]

        run_dbt(["docs", "generate"])
        nodes = get_artifact(project.project_root, "target", "catalog.json")["sources"]
        table = nodes[f"source.{project.adapter.config.project_name}.catalog.tables"]
        assert table["metadata"]["type"] == "view"
        assert list(table["columns"])[:4] == ["table_catalog", "table_schema", "table_name", "table_type"]

    def test_nothing_is_written_there(self, project) -> None:
        text = "{{ config(schema='penstock', materialized='table') }} select 1 as id"
        write_file(text, project.project_root, "models", "reserved.sql")
        write_file(
            "{% macro generate_schema_name(name, node) %}{{ name or target.schema }}{% endmacro %}",
            project.project_root,
            "macros",
            "schemas.sql",
        )
        with pytest.raises(Exception, match=r"schema penstock is reserved .*\. Use another schema"):
            run_dbt(["run", "-s", "reserved"])
        with pytest.raises(Exception, match="one of the lake's own tables, which can only be read"):
            project.run_sql("delete from information_schema.tables")


EVENTS = """
{{ config(materialized='incremental', source_roots=['landing'], safety_buffer_seconds=0, source_exclude=['later']) }}
select id from @data
"""
LATE = """
select table_schema, table_name, path, modified_at
from {{ source('lake', 'files') }}
where status = 'waiting' and modified_at < current_timestamp() - interval 1 hour
"""
LAKE = """
sources:
  - name: lake
    schema: penstock
    tables: [{name: files}, {name: batches}, {name: relations}]
"""


class TestFilesAndBatches:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events.sql": EVENTS,
            # A second table, so that no rows are lost between the tables.
            "more_events.sql": EVENTS.replace("landing", "more"),
            "late_files.sql": "-- depends_on: {{ ref('events') }}\n" + LATE,
            "loads.sql": "{{ config(materialized='table') }} -- depends_on: {{ ref('events') }}\n"
            "select b.batch_id, b.files, b.rows_inserted, r.kind, b.committed_at >= b.planned_at as in_order "
            "from {{ source('lake', 'batches') }} b join penstock.relations r using (table_schema, table_name) "
            "where b.table_name = 'events'",
            "sources.yml": LAKE,
        }

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"no_file_waits_longer_than_an_hour.sql": LATE}

    def test_a_test_that_no_file_waits_longer_than_an_hour(self, project) -> None:
        landing = Path(project.project_root) / "landing"
        landing.mkdir()
        (landing / "one.json").write_text('{"id": 1}\n{"id": 2}\n')
        (landing.parent / "more").mkdir()
        (landing.parent / "more" / "one.json").write_text('{"id": 1}\n')
        run_dbt(["build"])
        assert project.run_sql(f"select * from {project.test_schema}.loads", fetch="all") == [(0, 1, 2, "files", True)]

        (landing / "two.json").write_text('{"id": 3}\n')
        (landing / "later.json").write_text('{"id": 4}\n')
        assert [result.status for result in run_dbt(["test"])] == ["pass"]
        hours_ago = time.time() - 7200
        for name in ("two.json", "later.json"):
            os.utime(landing / name, (hours_ago, hours_ago))
        (result,) = run_dbt(["test"], expect_pass=False)
        assert (result.status, result.failures) == ("fail", 1)
        # The view was made by another session, before the file was there.
        late = project.run_sql(f"select * from {project.test_schema}.late_files", fetch="all")
        assert [(row[0], row[1], Path(row[2]).name) for row in late] == [(project.test_schema, "events", "two.json")]

        run_dbt(["run", "-s", "events"])
        assert [result.status for result in run_dbt(["test"])] == ["pass"]
        found = project.run_sql(
            "select Files.status, penstock.files.batch_id, count(*) from Penstock.`FILES` group by all order by 2",
            fetch="all",
        )
        assert found == [("ingested", 0, 2), ("ingested", 1, 1)]
        tables = project.run_sql("select table_name, count(*) from penstock.files group by all order by 1", fetch="all")
        assert tables == [("events", 2), ("more_events", 1)]

    def test_the_lake_in_python(self, project) -> None:
        lake = project.adapter.lake
        name = f"{project.test_schema}.events"
        assert set(lake.files(name)["status"].to_pylist()) == {"ingested"}
        assert lake.history(name)["kind"].to_pylist() == ["batch", "refresh"]
        assert lake.spark.createDataFrame(lake.history(name)).where("kind = 'batch'").count() == 1
        files = lake.table("penstock.files")
        assert files.where(files.table_name == "events").count() == 2
        lake.sql("create or replace temporary view mine as select * from penstock.files where table_name = 'events'")
        assert lake.sql("select count(*) from mine").first()[0] == 2
        for statement, error in {
            "insert into penstock.files select * from penstock.files": "can only be read",
            "create table penstock.mine as select 1 as id": "reserved",
            "drop table penstock.files": "can only be read",
            "create schema penstock": "reserved",
        }.items():
            with pytest.raises(PenstockError, match=error):
                lake.sql(statement)

    def test_docs_and_show_have_them(self, project) -> None:
        run_dbt(["docs", "generate"])
        catalog = get_artifact(project.project_root, "target", "catalog.json")["sources"]
        assert {name.rpartition(".")[2] for name in catalog} == {"files", "batches", "relations"}
        shown = project.run_sql("show tables in penstock", fetch="all")
        assert {row[1] for row in shown} >= {"files", "batches", "changes", "windows", "relations"}


@pytest.mark.local_disk("the test writes the table of an earlier version into the lake")
class TestALakeWithSuchASchema:
    """A lake of 0.1.0 may have a schema of this name: its tables go on working."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": "{{ config(schema='penstock', materialized='incremental', unique_key='id') }} select 1 as id",
            "files.sql": "{{ config(schema='penstock', materialized='table') }} select 'mine' as path",
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"s.sql": "{% macro generate_schema_name(name, node) %}{{ name or target.schema }}{% endmacro %}"}

    def test_it(self, project) -> None:
        root = Path(project.adapter.lake.root)
        write_deltalake(str(root / "penstock" / "files"), pa.table({"path": ["old"]}))
        for _ in range(2):
            run_dbt(["run"])
        assert project.run_sql("select * from penstock.orders", fetch="all") == [(1,)]
        assert project.run_sql("select path from penstock.files", fetch="all") == [("mine",)]
        names = project.run_sql(
            "select table_name from penstock.relations where table_schema = 'penstock'", fetch="all"
        )
        assert {name for (name,) in names} == {"files", "orders"}
