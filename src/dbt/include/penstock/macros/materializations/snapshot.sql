{#- dbt's own snapshot: dbt-spark's would be found first. -#}
{% materialization snapshot, adapter='penstock' %}
  {%- set built = dbt.materialization_snapshot_default() -%}
  {% do apply_layout(this) %}
  {{ return(built) }}
{% endmaterialization %}

{% macro penstock__snapshot_merge_sql(target, source, insert_cols) -%}
  {{ default__snapshot_merge_sql(target, source, insert_cols) }}
{%- endmacro %}

{% macro penstock__post_snapshot(staging_relation) -%}
  {% do adapter.drop_relation(staging_relation) %}
{%- endmacro %}

{#- A literal, because a MERGE may read its source twice and must see one time. -#}
{% macro penstock__snapshot_get_time() -%}
  timestamp '{{ modules.datetime.datetime.now(modules.pytz.utc).strftime("%Y-%m-%d %H:%M:%S.%f") }}+00:00'
{%- endmacro %}
