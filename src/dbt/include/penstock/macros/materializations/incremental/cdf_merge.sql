{#- The row-level changes of the tables that the model reads, in one merge: the engine's, in one call. -#}
{% macro merge_changes(target_relation, existing_relation) -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% do write(sql) %}
  {%- set replace = should_full_refresh() or existing_relation is none or existing_relation.is_view -%}
  {% if replace %}
    {% if config.get('contract').enforced %}
      {{ get_assert_columns_equivalent(sql) }}
    {% endif %}
  {% else %}
    {% for change in adapter.layout_changes(target_relation, model) %}
      {% do run_query(change) %}
    {% endfor %}
  {% endif %}
  {% do store_result('main', response=adapter.merge_changes(target_relation, sql, model, should_full_refresh())) %}

  {% do apply_grants(target_relation, config.get('grants')) %}
  {% do persist_docs(target_relation, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmacro %}
