{#- A model over `@data`: its batches are the engine's, in one call. -#}
{% macro ingest_files(target_relation, replace) -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% do write(sql) %}
  {% do store_result('main', response=adapter.ingest_files(target_relation, sql, model, replace)) %}

  {% do apply_grants(target_relation, config.get('grants')) %}
  {% if load_cached_relation(this) or adapter.get_relation(this.database, this.schema, this.identifier) %}
    {% do persist_docs(target_relation, model) %}
  {% endif %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
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
