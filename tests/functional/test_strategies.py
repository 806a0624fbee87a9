"""What each incremental strategy leaves after a second run."""

from __future__ import annotations

import pytest
from dbt.tests.util import get_artifact, run_dbt


def _model(first: str, then: str, **config: object) -> str:
    """Rows as VALUES has them, with their columns: `(1, 'a') as t(id, name)`."""
    settings = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return (
        f"{{{{ config(materialized='incremental', {settings}) }}}}\n"
        f"select * from values {{% if is_incremental() %}}{then}{{% else %}}{first}{{% endif %}}"
    )


MODELS = {
    "by_name": _model("(1, 'a') as t(id, name)", "('b', 2) as t(name, id)"),
    "composite": _model(
        "(1, 1, 'old'), (1, 2, 'kept') as t(a, b, v)",
        "(1, 1, 'new'), (2, 1, 'added') as t(a, b, v)",
        unique_key=["a", "b"],
    ),
    "null_key": _model(
        "(cast(null as int), 'old') as t(id, v)", "(cast(null as int), 'new') as t(id, v)", unique_key="id"
    ),
    "update_columns": _model(
        "(1, 'a', 'x') as t(id, v, w)", "(1, 'b', 'y') as t(id, v, w)", unique_key="id", merge_update_columns=["v"]
    ),
    "exclude_columns": _model(
        "(1, 'a', 'x') as t(id, v, w)", "(1, 'b', 'y') as t(id, v, w)", unique_key="id", merge_exclude_columns=["v"]
    ),
    "predicates": _model(
        "(1, 'a'), (2, 'b') as t(id, v)",
        "(1, 'A'), (2, 'B') as t(id, v)",
        unique_key="id",
        incremental_predicates=["DBT_INTERNAL_DEST.id > 1"],
    ),
    "conditions": _model(
        "(1, 5), (2, 5) as t(id, v)",
        "(1, 4), (2, 6), (3, 0), (4, 1) as t(id, v)",
        unique_key="id",
        matched_condition="DBT_INTERNAL_SOURCE.v > DBT_INTERNAL_DEST.v",
        not_matched_condition="DBT_INTERNAL_SOURCE.v > 0",
    ),
    "either_predicate": _model(
        "(1, 'a'), (2, 'b') as t(id, v)",
        "(1, 'A') as t(id, v)",
        unique_key="id",
        incremental_predicates=["DBT_INTERNAL_DEST.id = 1 or DBT_INTERNAL_DEST.id = 2"],
    ),
    "without_key": _model(
        "(1, 'a') as t(id, v)",
        "(1, 'b'), (2, 'c') as t(id, v)",
        incremental_strategy="merge",
        incremental_predicates=["DBT_INTERNAL_DEST.id > 0"],
    ),
    "nothing_to_update": _model(
        "(1, 'a') as t(id, v)", "(1, 'b'), (2, 'c') as t(id, v)", unique_key="id", merge_exclude_columns=["ID", "v"]
    ),
    "evolved": _model(
        "(1, 'a', 'o') as t(id, v, old)",
        "('new', 1, 'b'), ('new', 2, 'c') as t(extra, id, v)",
        unique_key="id",
        merge_with_schema_evolution=True,
    ),
    "evolved_in_part": _model(
        "(1, 'a') as t(id, v)",
        "(1, 'b', 'new'), (2, 'c', 'new') as t(id, v, extra)",
        unique_key="id",
        merge_with_schema_evolution=True,
        merge_exclude_columns=["extra"],
    ),
    "by_source": _model(
        "(1, 'gone'), (2, 'old'), (9, 'kept') as t(id, v)",
        "(2, 'new'), (3, 'added') as t(id, v)",
        unique_key="id",
        not_matched_by_source_action="delete",
        not_matched_by_source_condition="DBT_INTERNAL_DEST.id < 9",
    ),
    "partitions": _model(
        "('a', 1), ('b', 2) as t(day, v)",
        "(3, 'b') as t(v, day)",
        incremental_strategy="insert_overwrite",
        partition_by="day",
    ),
    "whole": _model("(1), (2) as t(id)", "(3) as t(id)", incremental_strategy="insert_overwrite"),
    "delete_insert": _model(
        "(1, 'a'), (1, 'b'), (2, 'c') as t(id, v)",
        "(1, 'x'), (1, 'y'), (3, 'z') as t(id, v)",
        unique_key="id",
        incremental_strategy="delete+insert",
    ),
    "replace_where": _model(
        "('a', 1), ('b', 2) as t(day, v)",
        "(3, 'b'), (4, 'b') as t(v, day)",
        incremental_strategy="replace_where",
        incremental_predicates=["day = 'b'"],
    ),
    "replace_either": _model(
        "('a', 1), ('a', 5), ('b', 1) as t(day, v)",
        "('a', 0) as t(day, v)",
        incremental_strategy="replace_where",
        incremental_predicates=["day = 'a' or day = 'b'", "v < 2"],
    ),
}

LEFT = {
    "by_name": {(1, "a"), (2, "b")},
    "composite": {(1, 1, "new"), (1, 2, "kept"), (2, 1, "added")},
    "null_key": {(None, "new")},
    "update_columns": {(1, "b", "x")},
    "exclude_columns": {(1, "a", "y")},
    "predicates": {(1, "a"), (1, "A"), (2, "B")},
    "conditions": {(1, 5), (2, 6), (4, 1)},
    "either_predicate": {(1, "A"), (2, "b")},
    "without_key": [(1, "a"), (1, "b"), (2, "c")],
    "nothing_to_update": {(1, "a"), (2, "c")},
    "evolved": {(1, "b", "o", "new"), (2, "c", None, "new")},
    "evolved_in_part": {(1, "b", None), (2, "c", "new")},
    "by_source": {(2, "new"), (3, "added"), (9, "kept")},
    "partitions": {("a", 1), ("b", 3)},
    "whole": {(3,)},
    "delete_insert": {(1, "x"), (1, "y"), (2, "c"), (3, "z")},
    "replace_where": {("a", 1), ("b", 3), ("b", 4)},
    "replace_either": {("a", 5), ("a", 0)},
}


class TestStrategies:
    @pytest.fixture(scope="class")
    def models(self):
        return {f"{name}.sql": model for name, model in MODELS.items()}

    @pytest.fixture(scope="class")
    def responses(self, project):
        run_dbt(["run"])
        run_dbt(["run"])
        results = get_artifact(project.project_root, "target", "run_results.json")["results"]
        return {result["unique_id"].rpartition(".")[2]: result["adapter_response"] for result in results}

    @pytest.mark.parametrize("model", LEFT)
    def test_second_run(self, project, responses, model):
        rows = project.run_sql(f"select * from {project.test_schema}.{model}", fetch="all")
        assert sorted(rows, key=str) == sorted(LEFT[model], key=str)

    def test_what_a_run_tells(self, responses):
        told = responses["by_source"]
        assert told["query_id"]
        assert (told["rows_inserted"], told["rows_updated"], told["rows_deleted"]) == (1, 1, 1)
        assert told["rows_affected"] == 3
        assert told["version"] == 1
        assert told["files"] >= 1
        assert told["bytes"] > 0
        assert responses["by_name"]["rows_inserted"] == 1


class TestWrongConfig:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "mistyped.sql": "{{ config(materialized='incremental', max_file_per_trigger=5) }} select 1 as id",
            "strange.sql": "{{ config(materialized='incremental', incremental_strategy='upsert') }} select 1 as id",
            "no_predicate.sql": _model("(1) as t(id)", "(2) as t(id)", incremental_strategy="replace_where"),
        }

    def test_messages(self, project):
        run_dbt(["run"], expect_pass=False)
        results = {result.node.name: result.message for result in run_dbt(["run"], expect_pass=False)}
        assert "`max_file_per_trigger` is not known: did you mean `max_files_per_trigger`?" in results["mistyped"]
        assert "get_incremental_upsert_sql" in results["strange"]
        assert "`replace_where` needs `incremental_predicates`" in results["no_predicate"]


class TestUnknownColumns:
    """What is no column is named, before the statement: Delta's own word for it is an internal error."""

    @pytest.fixture(scope="class")
    def models(self):
        both, less = "(1, 'a') as t(id, v)", "(1) as t(id)"
        return {
            "removed.sql": _model(both, less, unique_key="id"),
            "removed_append.sql": _model(both, less),
            "update.sql": _model(both, both, unique_key="id", merge_update_columns=["v", "nope"]),
            "exclude.sql": _model(both, both, unique_key="id", merge_exclude_columns=["nope"]),
            "predicate.sql": _model(both, both, unique_key="id", incremental_predicates=["DBT_INTERNAL_DEST.nope > 1"]),
            "excluded_and_removed.sql": _model(
                both, less, unique_key="id", merge_exclude_columns=["v"], on_schema_change="append_new_columns"
            ),
        }

    def test_messages(self, project):
        run_dbt(["run"])
        results = {result.node.name: result.message for result in run_dbt(["run"], expect_pass=False)}
        for model in ("removed", "removed_append"):
            assert "The model does not return v, which" in results[model]
            assert "on_schema_change" in results[model]
        assert "`merge_update_columns` names nope" in results["update"]
        assert "`merge_exclude_columns` names nope" in results["exclude"]
        assert "The MERGE names a column that neither the table nor the query has" in results["predicate"]
        assert "OK" in results["excluded_and_removed"]


class TestRetyped:
    """sync_all_columns: a column that went, one that came, one of another type."""

    @pytest.fixture(scope="class")
    def models(self):
        config = "{{ config(materialized='incremental', on_schema_change='sync_all_columns', partition_by='day') }}"
        return {
            "synced.sql": config
            + """
            {% if is_incremental() %}
            select 2 as id, 'b' as day, cast(5000000000 as bigint) as n, 'new' as came
            {% else %}
            select 1 as id, 'a' as day, 1 as n, 'old' as gone
            {% endif %}
            """
        }

    def test_columns_follow_the_model(self, project):
        run_dbt(["run"])
        run_dbt(["run"])
        table = project.adapter.lake.log_of(f"{project.test_schema}.synced")
        assert {column.name: column.type for column in table.columns} == {
            "id": "int",
            "day": "string",
            "n": "bigint",
            "came": "string",
        }
        assert table.partition_columns == ["day"]
        rows = project.run_sql(f"select id, day, n, came from {project.test_schema}.synced order by id", fetch="all")
        assert [tuple(row) for row in rows] == [(1, "a", 1, None), (2, "b", 5000000000, "new")]
