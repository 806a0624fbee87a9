{#- Row changes of the tables that the model reads. The engine merges them in one call. -#}
{% macro merge_changes(target_relation, existing_relation) -%}
  {% do begin_model() %}

  {% do write(sql) %}
  {%- set replace = should_full_refresh() or existing_relation is none or existing_relation.is_view -%}
  {% if replace %}
    {% if config.get('contract').enforced %}
      {{ get_assert_columns_equivalent(sql) }}
    {% endif %}
  {% else %}
    {% do apply_layout(target_relation) %}
  {% endif %}
  {% do store_result('main', response=adapter.merge_changes(target_relation, sql, model, should_full_refresh(), none if replace else contract_check())) %}

  {{ return(end_model(target_relation)) }}
{%- endmacro %}
