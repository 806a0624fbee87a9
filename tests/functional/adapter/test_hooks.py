from __future__ import annotations

import pytest
from dbt.tests.adapter.hooks.test_model_hooks import (
    BaseDuplicateHooksInConfigs,
    BaseHookRefs,
    BaseHooksRefsOnSeeds,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
    BasePrePostModelHooksOnSnapshots,
    BasePrePostSnapshotHooksInConfigKwargs,
)
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks


def _check(context, state, project, threads):
    """What a hook sees of the target: the base expects PostgreSQL's."""
    assert context["test_state"] == state
    assert context["target_dbname"] == ""
    assert context["target_host"] == ""
    assert context["target_name"] == "default"
    assert context["target_schema"] == project.test_schema
    assert context["target_threads"] == threads
    assert context["target_type"] == "penstock"
    assert context["target_user"] == ""
    assert context["target_pass"] == ""
    assert context["run_started_at"]
    assert context["invocation_id"]
    assert context["thread_id"].startswith(("Thread-", "MainThread"))


class ModelHooks:
    @pytest.fixture(autouse=True)
    def threads(self, dbt_profile_target):
        self.threads = dbt_profile_target["threads"]

    def check_hooks(self, state, project, host, count=1):
        for context in self.get_ctx_vars(state, count=count, project=project):
            _check(context, state, project, self.threads)


class TestPrePostModelHooks(ModelHooks, BasePrePostModelHooks):
    pass


class TestHookRefs(ModelHooks, BaseHookRefs):
    pass


class TestPrePostModelHooksInConfig(ModelHooks, BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigWithCount(ModelHooks, BasePrePostModelHooksInConfigWithCount):
    pass


class TestPrePostModelHooksInConfigKwargs(ModelHooks, BasePrePostModelHooksInConfigKwargs):
    pass


class TestDuplicateHooksInConfigs(BaseDuplicateHooksInConfigs):
    pass


class TestHooksRefsOnSeeds(BaseHooksRefsOnSeeds):
    pass


class TestPrePostModelHooksOnSeeds(BasePrePostModelHooksOnSeeds):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixed(BasePrePostModelHooksOnSeedsPlusPrefixed):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace):
    pass


class TestPrePostModelHooksOnSnapshots(BasePrePostModelHooksOnSnapshots):
    pass


class TestPrePostSnapshotHooksInConfigKwargs(BasePrePostSnapshotHooksInConfigKwargs):
    pass


class TestAfterRunHooks(BaseAfterRunHooks):
    pass


class TestPrePostRunHooks(BasePrePostRunHooks):
    @pytest.fixture(autouse=True)
    def threads(self, dbt_profile_target):
        self.threads = dbt_profile_target["threads"]

    @pytest.fixture(scope="class")
    def project_config_update(self):
        schemas = "{% for schema in schemas %}( '{{ schema }}' ){{ ',' if not loop.last }}{% endfor %}"
        databases = (
            "{% for db, schema in database_schemas %}"
            "('{{ db }}', '{{ schema }}' ){{ ',' if not loop.last }}"
            "{% endfor %}"
        )
        return {
            # CREATE and DROP show that the hooks run in their order: the other way round is an error.
            "on-run-start": [
                "{{ custom_run_hook('start', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.start_hook_order_test ( id int )",
                "drop table {{ target.schema }}.start_hook_order_test",
                "{{ log(env_var('TERM_TEST'), info=True) }}",
            ],
            "on-run-end": [
                "{{ custom_run_hook('end', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.end_hook_order_test ( id int )",
                "drop table {{ target.schema }}.end_hook_order_test",
                "create table {{ target.schema }}.schemas ( schema string )",
                "insert into {{ target.schema }}.schemas (schema) values " + schemas,
                "create table {{ target.schema }}.db_schemas ( db string, schema string )",
                "insert into {{ target.schema }}.db_schemas (db, schema) values " + databases,
            ],
            "seeds": {"quote_columns": False},
        }

    def check_hooks(self, state, project, host):
        _check(self.get_ctx_vars(state, project), state, project, self.threads)
