{#- Two null keys are equal (`<=>`).
    The columns in SET have no prefix, because with schema evolution the table may not have them yet. -#}
{% macro penstock__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
  {%- set keys = adapter.quoted_names(unique_key, dest_columns) -%}
  {%- set conditions = [] if keys else ['false'] -%}
  {%- for key in keys -%}
    {% do conditions.append('DBT_INTERNAL_SOURCE.' ~ key ~ ' <=> DBT_INTERNAL_DEST.' ~ key) %}
  {%- endfor -%}
  {%- do conditions.extend([incremental_predicates] if incremental_predicates is string else (incremental_predicates or [])) -%}
  {% do adapter.check_merge_columns(target, config, dest_columns) %}
  {%- set update_columns = get_merge_update_columns(config.get('merge_update_columns'), config.get('merge_exclude_columns'), dest_columns) -%}
  {%- set matched = config.get('matched_condition') -%}
  {%- set not_matched = config.get('not_matched_condition') -%}
  {%- set by_source = config.get('not_matched_by_source_condition') -%}

  merge {{ 'with schema evolution ' if config.get('merge_with_schema_evolution') }}into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on ({{ conditions | join(') and (') }})
  {% if keys and update_columns %}
  when matched {{ 'and (' ~ matched ~ ') ' if matched }}then update set
    {% for column in update_columns -%}
      {{ column }} = DBT_INTERNAL_SOURCE.{{ column }}{{ ', ' if not loop.last }}
    {% endfor %}
  {% endif %}
  when not matched {{ 'and (' ~ not_matched ~ ') ' if not_matched }}then insert
    ({{ dest_columns | map(attribute='quoted') | join(', ') }})
    values ({% for column in dest_columns %}DBT_INTERNAL_SOURCE.{{ column.quoted }}{{ ', ' if not loop.last }}{% endfor %})
  {% if config.get('not_matched_by_source_action') == 'delete' %}
  when not matched by source {{ 'and (' ~ by_source ~ ') ' if by_source }}then delete
  {% endif %}
{%- endmacro %}

{% macro penstock__get_merge_update_columns(merge_update_columns, merge_exclude_columns, dest_columns) -%}
  {%- if merge_update_columns and not merge_exclude_columns -%}
    {{ return(adapter.quoted_names(merge_update_columns, dest_columns)) }}
  {%- endif -%}
  {{ return(default__get_merge_update_columns(merge_update_columns, adapter.plain_names(merge_exclude_columns), dest_columns)) }}
{%- endmacro %}
