{% materialization view, adapter='penstock' %}
  {%- set target_relation = this.incorporate(type='view') -%}

  {% do begin_model() %}

  {% if adapter.view_is_current(target_relation, sql, model) and not should_full_refresh() %}
    {% do store_raw_result('main', message='OK unchanged', code='OK', rows_affected=0) %}
  {% else %}
    {% if config.get('contract').enforced %}
      {{ get_assert_columns_equivalent(sql) }}
    {% endif %}
    {% if config.get('sql_header') %}
      {% do run_query(config.get('sql_header')) %}
    {% endif %}
    {% do write(create_view_as(target_relation, sql)) %}
    {% do adapter.create_view(target_relation, sql, model) %}
    {% do store_raw_result('main', message='OK', code='OK', rows_affected=0) %}
  {% endif %}

  {{ return(end_model(target_relation)) }}
{% endmaterialization %}
