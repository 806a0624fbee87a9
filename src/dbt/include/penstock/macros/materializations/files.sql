{#- A model over `@data`. The engine runs all batches in one call. -#}
{% macro ingest_files(target_relation, replace) -%}
  {% do begin_model() %}

  {% do write(sql) %}
  {% do store_result('main', response=adapter.ingest_files(target_relation, sql, model, replace, contract_check())) %}

  {{ return(end_engine_model(target_relation)) }}
{%- endmacro %}

{#- `--empty` ingests no file, so a table that has a ledger stays as it is. -#}
{% macro reads_files() -%}
  {{ return(adapter.is_file_model(model) and not flags.EMPTY) }}
{%- endmacro %}

{% macro penstock__get_limit_sql(sql, limit) -%}
  {%- if adapter.is_file_model(model) -%}
    {%- set sql = adapter.preview_files(this, sql, model) -%}
  {%- endif -%}
  {{ default__get_limit_sql(sql, limit) }}
{%- endmacro %}
