{% materialization incremental, adapter='penstock', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set strategy = adapter.incremental_strategy(config) -%}
  {%- set follows_changes = adapter.follows_changes(model) -%}
  {%- set strategy_sql_macro = none if follows_changes else adapter.get_incremental_strategy_macro(context, strategy) -%}

  {% if strategy == 'microbatch' %}
    {{ return(run_window(target_relation)) }}
  {% elif reads_files() %}
    {{ return(ingest_files(target_relation, replace=should_full_refresh())) }}
  {% elif follows_changes and not flags.EMPTY and not adapter.samples() %}
    {{ return(merge_changes(target_relation, existing_relation)) }}
  {% elif (follows_changes or adapter.is_file_model(model)) and existing_relation and not should_full_refresh() %}
    {% do store_raw_result('main', message='OK left as it is', code='OK', rows_affected=0) %}
    {{ return({'relations': [target_relation]}) }}
  {% endif %}

  {% do begin_model() %}

  {%- set query = model_query() -%}
  {% do adapter.check_location(target_relation, query) %}
  {%- if existing_relation is none or existing_relation.is_view or should_full_refresh() -%}
    {% call statement('main') -%}
      {{ create_table_as(False, target_relation, query) }}
    {%- endcall %}
  {%- else -%}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(query) }}
    {%- endif -%}
    {%- set temp_relation = make_temp_relation(target_relation) -%}
    {% call statement('create_temp_relation') -%}
      {{ create_table_as(True, temp_relation, query) }}
    {%- endcall %}
    {%- set dest_columns = process_schema_changes(on_schema_change, temp_relation, existing_relation) -%}
    {%- set evolves = strategy == 'merge' and config.get('merge_with_schema_evolution') -%}
    {%- if not dest_columns -%}
      {%- set dest_columns = adapter.columns_to_fill(existing_relation, temp_relation, evolves) -%}
    {%- endif -%}
    {% do apply_layout(target_relation) %}
    {% do adapter.check_unique_key(config.get('unique_key'), dest_columns) %}
    {%- set written_relation = adapter.arranged(existing_relation, temp_relation, on_schema_change, evolves) -%}
    {%- set strategy_sql = strategy_sql_macro({
        'target_relation': target_relation,
        'temp_relation': written_relation,
        'unique_key': config.get('unique_key'),
        'dest_columns': dest_columns,
        'incremental_predicates': config.get('predicates', none) or config.get('incremental_predicates', none),
    }) -%}
    {% if strategy == 'insert_overwrite' %}
      {% do adapter.next_statement_conf({'spark.sql.sources.partitionOverwriteMode': 'dynamic'}) %}
    {% endif %}
    {% call statement('main') -%}
      {{ strategy_sql }}
    {%- endcall %}
    {% do adapter.drop_relation(temp_relation) %}
  {%- endif -%}

  {{ return(end_model(target_relation)) }}
{% endmaterialization %}
