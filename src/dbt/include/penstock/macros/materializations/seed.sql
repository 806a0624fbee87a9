{% materialization seed, adapter='penstock' %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set query = adapter.seed_query(agate_table, config.get('column_types'), config.get('quote_columns')) -%}
  {% call statement('main') -%}
    {{ create_table_as(False, target_relation, query) }}
  {%- endcall %}

  {% do apply_grants(target_relation, config.get('grants')) %}
  {% do persist_docs(target_relation, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
