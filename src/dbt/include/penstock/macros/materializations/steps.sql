{#- The first and the last steps of every materialization. -#}
{% macro begin_model() -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
{%- endmacro %}

{#- The macro that checks an enforced contract; the engine calls it with its query. None without a contract. -#}
{% macro contract_check() -%}
  {{ return(get_assert_columns_equivalent if config.get('contract').enforced else none) }}
{%- endmacro %}

{#- Applies a changed config to an existing table. -#}
{% macro apply_layout(relation) -%}
  {% for change in adapter.layout_changes(relation, model) %}
    {% do run_query(change) %}
  {% endfor %}
{%- endmacro %}

{#- Without files there may be no table, so there is nothing to document. -#}
{% macro end_model(relation, is_there=true) -%}
  {% do apply_grants(relation, config.get('grants')) %}
  {% if is_there %}
    {% do persist_docs(relation, model) %}
  {% endif %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [relation]}) }}
{%- endmacro %}

{#- The last steps of a model that the engine runs in one call. -#}
{% macro end_engine_model(relation) -%}
  {%- set is_there = adapter.is_there(relation) -%}
  {% if is_there %}
    {% do apply_layout(relation) %}
  {% endif %}
  {{ return(end_model(relation, is_there)) }}
{%- endmacro %}
