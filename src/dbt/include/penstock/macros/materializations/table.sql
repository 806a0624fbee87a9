{% materialization table, adapter='penstock', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='table') -%}

  {% if reads_files() %}
    {{ return(ingest_files(target_relation, replace=True)) }}
  {% endif %}

  {% do begin_model() %}

  {%- set query = model_query() -%}
  {% do adapter.check_location(target_relation, query) %}
  {% call statement('main') -%}
    {{ create_table_as(False, target_relation, query) }}
  {%- endcall %}

  {{ return(end_model(target_relation)) }}
{% endmaterialization %}


{#- The query of a model: its SQL, or a query over the DataFrame that its Python returned. -#}
{% macro model_query() -%}
  {%- if model['language'] == 'python' -%}
    {{ return(adapter.python_query(model, compiled_code ~ '\n' ~ py_script_postfix(model))) }}
  {%- endif -%}
  {%- if adapter.is_file_model(model) -%}
    {{ return(adapter.preview_files(this, sql, model, 0)) }}
  {%- endif -%}
  {{ return(sql) }}
{%- endmacro %}
