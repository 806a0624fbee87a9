{#- Schemas and relations are folders, so Python finds them without a JVM. -#}

{% macro penstock__create_schema(relation) -%}
  {% do adapter.create_schema(relation) %}
{%- endmacro %}

{% macro penstock__drop_schema(relation) -%}
  {% do adapter.drop_schema(relation) %}
{%- endmacro %}

{% macro penstock__list_schemas(database) -%}
  {{ return(adapter.list_schemas(database)) }}
{%- endmacro %}

{% macro penstock__check_schema_exists(information_schema, schema) -%}
  {{ return(adapter.check_schema_exists(information_schema.database, schema)) }}
{%- endmacro %}

{% macro penstock__list_relations_without_caching(schema_relation) -%}
  {{ return(adapter.list_relations_without_caching(schema_relation)) }}
{%- endmacro %}

{% macro penstock__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}

{% macro penstock__drop_relation(relation) -%}
  {% do adapter.drop_relation(relation) %}
{%- endmacro %}

{% macro penstock__rename_relation(from_relation, to_relation) -%}
  {% do adapter.rename_relation(from_relation, to_relation) %}
{%- endmacro %}

{% macro penstock__truncate_relation(relation) -%}
  {% call statement('truncate_relation') -%}
    delete from {{ relation }}
  {%- endcall %}
{%- endmacro %}

{% macro penstock__get_drop_sql(relation) -%}
  drop {{ relation.type }} if exists {{ relation }}
{%- endmacro %}

{% macro penstock__generate_database_name(custom_database_name=none, node=none) -%}
  {%- if custom_database_name is not none and custom_database_name != target.database -%}
    {% do exceptions.raise_compiler_error("`database` can't be set to " ~ custom_database_name ~ ": a lake has schemas only. Remove the key.") %}
  {%- endif -%}
  {% do return(target.database) %}
{%- endmacro %}

{#- A temporary view, not a table: a statement that runs again after a conflict reads the new state. -#}
{% macro penstock__make_temp_relation(base_relation, suffix) %}
  {%- set unique = base_relation.identifier ~ suffix ~ '_' ~ local_md5(invocation_id ~ base_relation.render())[:8] -%}
  {%- set temp_relation = base_relation.incorporate(path={'identifier': unique}, type='view') -%}
  {{ return(temp_relation.include(database=false, schema=false)) }}
{% endmacro %}

{#- Statements of the model that run first, each with its semicolon. -#}
{% macro sql_header() -%}
  {%- set header = config.get('sql_header') -%}
  {{ header if header is not none }}
{%- endmacro %}

{% macro penstock__create_temporary_view(relation, compiled_code) -%}
  {{ sql_header() }}
  create or replace temporary view {{ relation.include(database=false, schema=false) }} as
  {{ compiled_code }}
{%- endmacro %}

{% macro penstock__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(compiled_code) }}
      {%- set compiled_code = get_select_subquery(compiled_code) -%}
    {%- endif -%}
    {{ sql_header() }}
    create or replace table {{ relation }}
    using delta
    {{ adapter.table_clauses(model) }}
    as
    {{ compiled_code }}
  {%- endif -%}
{%- endmacro %}

{% macro penstock__create_view_as(relation, sql) -%}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif -%}
  create or replace view {{ relation }} as
  {{ sql }}
{%- endmacro %}

{% macro penstock__get_create_table_as_sql(temporary, relation, sql) -%}
  {{ return(create_table_as(temporary, relation, sql)) }}
{%- endmacro %}

{% macro penstock__get_create_view_as_sql(relation, sql) -%}
  {{ return(create_view_as(relation, sql)) }}
{%- endmacro %}

{% macro penstock__get_replace_table_sql(relation, sql) -%}
  {{ create_table_as(False, relation, sql) }}
{%- endmacro %}

{% macro penstock__get_replace_view_sql(relation, sql) -%}
  {{ create_view_as(relation, sql) }}
{%- endmacro %}

{% macro penstock__can_clone_table() -%}
  {{ return(True) }}
{%- endmacro %}
