{#- Replaces the partitions that the query has rows for. A table without partitions is replaced as a whole. -#}
{% macro penstock__get_incremental_insert_overwrite_sql(arg_dict) -%}
  insert overwrite {{ arg_dict['target_relation'] }} by name
  select {{ arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') }} from {{ arg_dict['temp_relation'] }}
{%- endmacro %}
