{#- dbt's own snapshot. Without this, dbt would use the one of dbt-spark. -#}
{% materialization snapshot, adapter='penstock' %}
  {% do adapter.check_location(this, sql, snapshot_columns()) %}
  {%- set built = dbt.materialization_snapshot_default() -%}
  {% do apply_layout(this) %}
  {{ return(built) }}
{% endmaterialization %}

{#- The columns of a snapshot's table that its query does not have. -#}
{% macro snapshot_columns() -%}
  {%- set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set added = [names.dbt_scd_id, names.dbt_updated_at, names.dbt_valid_from, names.dbt_valid_to] -%}
  {{ return(added + ([names.dbt_is_deleted] if config.get('hard_deletes') == 'new_record' else [])) }}
{%- endmacro %}

{% macro penstock__snapshot_merge_sql(target, source, insert_cols) -%}
  {{ default__snapshot_merge_sql(target, adapter.arranged(target, source, 'ignore'), insert_cols) }}
{%- endmacro %}

{% macro penstock__post_snapshot(staging_relation) -%}
  {% do adapter.drop_relation(staging_relation) %}
{%- endmacro %}

{#- A literal, because a MERGE may read its source twice, and both must have the same time. -#}
{% macro penstock__snapshot_get_time() -%}
  timestamp '{{ modules.datetime.datetime.now(modules.pytz.utc).strftime("%Y-%m-%d %H:%M:%S.%f") }}+00:00'
{%- endmacro %}
