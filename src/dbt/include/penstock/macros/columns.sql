{% macro penstock__create_columns(relation, columns) -%}
  {% if columns %}
    {% do adapter.change_columns(relation, add=columns) %}
  {% endif %}
{%- endmacro %}

{% macro penstock__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {% do adapter.change_columns(relation, add=add_columns, remove=remove_columns) %}
{%- endmacro %}

{% macro penstock__alter_column_type(relation, column_name, new_column_type) -%}
  {% do adapter.change_columns(relation, retype={column_name: new_column_type}) %}
{%- endmacro %}

{% macro penstock__get_columns_in_query(select_sql) -%}
  {{ return(adapter.get_column_schema_from_query(with_given_data(select_sql)) | map(attribute='name') | list) }}
{%- endmacro %}

{#- The engine compares types, field by field, for all strategies. -#}
{% macro penstock__check_for_schema_changes(source_relation, target_relation) -%}
  {%- set changes = adapter.schema_changes(source_relation, target_relation) -%}
  {% do log('In ' ~ target_relation ~ ': ' ~ changes) %}
  {{ return(changes) }}
{%- endmacro %}

{% macro penstock__sync_column_schemas(on_schema_change, target_relation, schema_changes_dict) -%}
  {% do adapter.adapt_columns(target_relation, schema_changes_dict['source_columns'], on_schema_change) %}
{%- endmacro %}
