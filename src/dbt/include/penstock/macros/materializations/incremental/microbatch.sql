{#- One window of a microbatch model. The engine decides in one call whether, and with which others, it runs. -#}
{% macro run_window(target_relation) -%}
  {% do adapter.check_window(model) %}
  {% do begin_model() %}

  {%- set query = sql -%}
  {%- set contract = config.get('contract').enforced and not adapter.is_file_model(model) -%}
  {%- if (contract or config.get('sql_header')) and adapter.window_needs_spark(target_relation, model, should_full_refresh()) -%}
    {%- if config.get('sql_header') -%}
      {% do run_query(config.get('sql_header')) %}
    {%- endif -%}
    {%- if contract -%}
      {{ get_assert_columns_equivalent(query) }}
    {%- endif -%}
  {%- endif -%}
  {%- if contract -%}
    {%- set query = get_select_subquery(query) -%}
  {%- endif -%}
  {% do write(query) %}
  {% do store_result('main', response=adapter.run_window(target_relation, query, model, should_full_refresh(), none if contract else contract_check())) %}

  {{ return(end_engine_model(target_relation)) }}
{%- endmacro %}
