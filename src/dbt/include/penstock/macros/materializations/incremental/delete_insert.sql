{#- One MERGE, so one commit. Each row comes twice: once to delete the rows of its key, and once to be inserted.
    Rows are structs, so that a name without a prefix in a predicate means the target's column, as in a DELETE. -#}
{% macro penstock__get_delete_insert_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
  {%- set columns = dest_columns | map(attribute='quoted') | join(', ') -%}
  {%- set keys = adapter.quoted_names(unique_key, dest_columns) -%}
  {%- set predicates = [incremental_predicates] if incremental_predicates is string else (incremental_predicates or []) -%}
  {%- if not keys -%}
  insert into {{ target }} ({{ columns }})
  select {{ columns }} from {{ source }}
  {%- else -%}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using (
    select struct({{ columns }}) as dbt_internal_row, explode(array(true, false)) as dbt_internal_delete
    from {{ source }}
  ) as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_SOURCE.dbt_internal_delete
  {%- for key in keys %}
    and DBT_INTERNAL_SOURCE.dbt_internal_row.{{ key }} = DBT_INTERNAL_DEST.{{ key }}
  {%- endfor %}
  {%- for predicate in predicates %}
    and ({{ predicate }})
  {%- endfor %}
  when matched then delete
  when not matched and not DBT_INTERNAL_SOURCE.dbt_internal_delete then insert
    ({{ columns }})
    values ({% for column in dest_columns %}DBT_INTERNAL_SOURCE.dbt_internal_row.{{ column.quoted }}{{ ', ' if not loop.last }}{% endfor %})
  {%- endif -%}
{%- endmacro %}
