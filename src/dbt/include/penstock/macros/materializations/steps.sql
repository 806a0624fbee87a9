{#- What every materialization does before and after its own part. -#}
{% macro begin_model() -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
{%- endmacro %}

{#- dbt's assertion of an enforced contract, for the engine to call with the query that it has made; else none. -#}
{% macro contract_check() -%}
  {{ return(get_assert_columns_equivalent if config.get('contract').enforced else none) }}
{%- endmacro %}

{#- What changed in the config of a table that is there. -#}
{% macro apply_layout(relation) -%}
  {% for change in adapter.layout_changes(relation, model) %}
    {% do run_query(change) %}
  {% endfor %}
{%- endmacro %}

{#- A model that found nothing to make its table from has none to document. -#}
{% macro end_model(relation, is_there=true) -%}
  {% do apply_grants(relation, config.get('grants')) %}
  {% if is_there %}
    {% do persist_docs(relation, model) %}
  {% endif %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [relation]}) }}
{%- endmacro %}

{#- The same for what the engine has made in one call, or has found nothing to make of. -#}
{% macro end_engine_model(relation) -%}
  {%- set is_there = adapter.is_there(relation) -%}
  {% if is_there %}
    {% do apply_layout(relation) %}
  {% endif %}
  {{ return(end_model(relation, is_there)) }}
{%- endmacro %}
