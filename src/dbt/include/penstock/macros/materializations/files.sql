{#- A model over `@data`: its batches are the engine's, in one call. -#}
{% macro ingest_files(target_relation, replace) -%}
  {% do begin_model() %}

  {% do write(sql) %}
  {% do store_result('main', response=adapter.ingest_files(target_relation, sql, model, replace, contract_check())) %}

  {{ return(end_engine_model(target_relation)) }}
{%- endmacro %}

{#- `--empty` brings no file in, so a table that has a ledger is left alone. -#}
{% macro reads_files() -%}
  {{ return(adapter.is_file_model(model) and not flags.EMPTY) }}
{%- endmacro %}

{% macro penstock__get_limit_sql(sql, limit) -%}
  {%- if adapter.is_file_model(model) -%}
    {%- set sql = adapter.preview_files(this, sql, model) -%}
  {%- endif -%}
  {{ default__get_limit_sql(sql, limit) }}
{%- endmacro %}
