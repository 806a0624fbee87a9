{% macro penstock__safe_cast(field, type) -%}
  {%- set nested = type.lower().startswith(('struct', 'array', 'map')) and field is string -%}
  try_cast({{ field.strip('"').strip("'") if nested else field }} as {{ type }})
{%- endmacro %}

{% macro penstock__any_value(expression) -%}
  any_value({{ expression }})
{%- endmacro %}

{% macro penstock__bool_or(expression) -%}
  bool_or({{ expression }})
{%- endmacro %}

{% macro penstock__concat(fields) -%}
  concat({{ fields | join(', ') }})
{%- endmacro %}

{% macro penstock__split_part(string_text, delimiter_text, part_number) -%}
  split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro %}

{% macro penstock__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- if limit_num -%}
    {%- if order_by_clause -%}
      {#- Only LISTAGG sorts its values. They are in hex, so that none has the comma that separates them. -#}
      {%- set sorted = "split(listagg(hex(cast(" ~ measure ~ " as string)), ',') within group (" ~ order_by_clause ~ "), ',')" -%}
      array_join(transform(slice({{ sorted }}, 1, {{ limit_num }}), x -> decode(unhex(x), 'UTF-8')), {{ delimiter_text }})
    {%- else -%}
      array_join(slice(array_agg({{ measure }}), 1, {{ limit_num }}), {{ delimiter_text }})
    {%- endif -%}
  {%- else -%}
    listagg({{ measure }}, {{ delimiter_text }}){{ ' within group (' ~ order_by_clause ~ ')' if order_by_clause }}
  {%- endif -%}
{%- endmacro %}

{% macro penstock__escape_single_quotes(expression) -%}
  {{ adapter.literal(expression)[1:-1] }}
{%- endmacro %}

{% macro penstock__array_append(array, new_element) -%}
  array_append({{ array }}, {{ new_element }})
{%- endmacro %}

{% macro penstock__array_concat(array_1, array_2) -%}
  concat({{ array_1 }}, {{ array_2 }})
{%- endmacro %}

{% macro penstock__array_construct(inputs, data_type) -%}
  {%- if inputs -%}
    array({{ inputs | join(', ') }})
  {%- else -%}
    cast(array() as array<{{ data_type }}>)
  {%- endif -%}
{%- endmacro %}

{% macro penstock__type_string() -%}
  string
{%- endmacro %}

{% macro penstock__type_numeric() -%}
  decimal(28, 6)
{%- endmacro %}

{% macro penstock__type_float() -%}
  double
{%- endmacro %}
