{#- The docs of a view are in its file. The comment of a table is part of the statement that creates it. -#}
{% macro penstock__persist_docs(relation, model, for_relation, for_columns) -%}
  {% if for_columns and config.persist_column_docs() and model.columns %}
    {% set existing_columns = adapter.get_columns_in_relation(relation) | map(attribute='name') | list %}
    {% set documented_columns = validate_doc_columns(relation, model.columns, existing_columns) %}
  {% endif %}
  {% if relation.is_view %}
    {{ return('') }}
  {% endif %}
  {% if for_relation and config.persist_relation_docs() and model.description %}
    {% do alter_relation_comment(relation, model.description) %}
  {% endif %}
  {% if documented_columns %}
    {% do alter_column_comment(relation, documented_columns) %}
  {% endif %}
{%- endmacro %}

{% macro penstock__alter_relation_comment(relation, relation_comment) -%}
  {% do apply_layout(relation) %}
{%- endmacro %}

{% macro penstock__alter_column_comment(relation, column_dict) -%}
  {% set changes = adapter.comment_changes(relation, column_dict) %}
  {% if changes %}
    {% set altered -%}
      alter table {{ relation }} alter column
      {% for name, comment in changes -%}
        {{ adapter.quote(name) }} comment {{ adapter.literal(comment) }}{{ ', ' if not loop.last }}
      {% endfor %}
    {%- endset %}
    {% do run_query(altered) %}
  {% endif %}
{%- endmacro %}

{#- A lake is a folder, and a folder has no grants. -#}
{% macro penstock__apply_grants(relation, grant_config, should_revoke=True) -%}
  {% if grant_config %}
    {% do exceptions.warn("`grants` are not applied to " ~ relation ~ ": a lake has no grants. Set permissions on its storage.") %}
  {% endif %}
{%- endmacro %}

{% macro penstock__copy_grants() -%}
  {{ return(False) }}
{%- endmacro %}

{#- Constraints are part of the statement that creates the table (`adapter.table_clauses`). -#}
{% macro penstock__persist_constraints(relation, model) -%}
{%- endmacro %}

{% macro penstock__alter_table_add_constraints(relation, constraints) -%}
{%- endmacro %}

{% macro penstock__alter_column_set_constraints(relation, column_dict) -%}
{%- endmacro %}
