"""The lake's own tables through dbt: in macros of packages, in models, in tests, and in docs."""

from __future__ import annotations

import json

import pytest
from dbt.tests.util import get_artifact, run_dbt, run_dbt_and_capture, write_file

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
