{%- materialization clone, adapter='penstock' -%}
  {%- if not defer_relation -%}
    {{ log("No relation found in state manifest for " ~ model.unique_id, info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if existing_relation and not flags.FULL_REFRESH -%}
    {{ log("Relation " ~ existing_relation ~ " already exists", info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- set other_relation = load_cached_relation(defer_relation) -%}
  {%- if other_relation and other_relation.is_table and can_clone_table() -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- if target_relation.render() == defer_relation.render() -%}
      {{ log("Target relation and defer relation are the same, skipping clone for relation: " ~ target_relation.render()) }}
    {%- else -%}
      {% do adapter.clone_relation(defer_relation, target_relation) %}
      {% do store_raw_result('main', message='OK', code='OK', rows_affected=0) %}
    {%- endif -%}
    {% do persist_docs(target_relation, model) %}
  {%- else -%}
    {%- set target_relation = this.incorporate(type='view') -%}
    {% do adapter.create_view(target_relation, 'select * from ' ~ defer_relation, model) %}
    {% do store_raw_result('main', message='OK', code='OK', rows_affected=0) %}
  {%- endif -%}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization -%}
