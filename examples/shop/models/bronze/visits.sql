{{ config(materialized='incremental', file_source='landing.visits') }}

select visit_id, customer_id, page from @data
