{% materialization seed, adapter='penstock' %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}

  {% do begin_model() %}

  {%- set query = adapter.seed_query(agate_table, config.get('column_types'), config.get('quote_columns')) -%}
  {% do adapter.check_location(target_relation, query) %}
  {% call statement('main') -%}
    {{ create_table_as(False, target_relation, query) }}
  {%- endcall %}

  {{ return(end_model(target_relation)) }}
{% endmaterialization %}
