{#- Replaces the rows that match the predicates with the rows of the query, in one commit. -#}
{% macro get_incremental_replace_where_sql(arg_dict) -%}
  {%- set predicates = arg_dict['incremental_predicates'] -%}
  {%- set predicates = [predicates] if predicates is string else (predicates or []) -%}
  {%- if not predicates -%}
    {% do exceptions.raise_compiler_error("`replace_where` needs `incremental_predicates`: the condition of the rows to replace") %}
  {%- endif -%}
  insert into {{ arg_dict['target_relation'] }} by name
  replace where ({{ predicates | join(') and (') }})
  select {{ arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') }} from {{ arg_dict['temp_relation'] }}
{%- endmacro %}
