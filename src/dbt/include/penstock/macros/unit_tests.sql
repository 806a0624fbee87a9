{#- Unit tests of models over `@data`: the given rows replace it. -#}
{% macro penstock__get_unit_test_sql(main_sql, expected_fixture_sql, expected_column_names) -%}
  {{ default__get_unit_test_sql(with_given_data(main_sql), expected_fixture_sql, expected_column_names) }}
{%- endmacro %}

{% macro penstock__get_empty_subquery_sql(select_sql, select_sql_header=none) -%}
  {{ default__get_empty_subquery_sql(with_given_data(select_sql), select_sql_header) }}
{%- endmacro %}

{% macro with_given_data(sql) -%}
  {%- set given = adapter.given_data(model) if model and model.resource_type == 'unit_test' else none -%}
  {%- if given is none -%}
    {{ return(sql) }}
  {%- endif -%}
  {%- set rows = given['rows'] -%}
  {{ return(adapter.bind_data(sql, '(' ~ (rows if rows is string else rows_of_data(rows, given['types'])) ~ ')')) }}
{%- endmacro %}

{% macro rows_of_data(rows, types) -%}
  {%- for row in rows or [{}] -%}
    {%- set values = format_row(row, types) -%}
    select
    {%- for column, type in types.items() %}
      {{ values.get(column) or safe_cast('null', type) }} as {{ adapter.quote(column) }}{{ ',' if not loop.last }}
    {%- endfor %}
    {{ 'where false' if not rows }}
    {{ 'union all' if not loop.last }}
  {% endfor -%}
{%- endmacro %}
