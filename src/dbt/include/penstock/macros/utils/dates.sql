{#- Spark 4 has these functions; dbt-spark builds them from others. -#}

{% macro penstock__dateadd(datepart, interval, from_date_or_timestamp) -%}
  dateadd({{ datepart }}, {{ interval }}, {{ from_date_or_timestamp }})
{%- endmacro %}

{#- dbt counts the boundaries between two times, and Spark counts whole units. So both are truncated first. -#}
{% macro penstock__datediff(first_date, second_date, datepart) -%}
  {%- set part = datepart | lower -%}
  {%- if part == 'week' -%}
    cast(datediff(day, date_trunc('week', date_add(cast({{ first_date }} as date), 1)), date_trunc('week', date_add(cast({{ second_date }} as date), 1))) / 7 as bigint)
  {%- elif part in ('year', 'quarter', 'month', 'day', 'hour', 'minute', 'second', 'millisecond', 'microsecond') -%}
    datediff({{ part }}, date_trunc('{{ part }}', cast({{ first_date }} as timestamp)), date_trunc('{{ part }}', cast({{ second_date }} as timestamp)))
  {%- else -%}
    {% do exceptions.raise_compiler_error("datediff does not know the date part " ~ datepart) %}
  {%- endif -%}
{%- endmacro %}

{% macro penstock__date(year, month, day) -%}
  make_date({{ year }}, {{ month }}, {{ day }})
{%- endmacro %}

{% macro penstock__current_timestamp() -%}
  current_timestamp()
{%- endmacro %}

{% macro penstock__current_timestamp_backcompat() -%}
  current_timestamp()
{%- endmacro %}

{% macro penstock__current_timestamp_in_utc_backcompat() -%}
  current_timestamp()
{%- endmacro %}
