from __future__ import annotations

import pytest
from dbt.tests.adapter.dbt_debug.test_dbt_debug import BaseDebugInvalidProjectPostgres, BaseDebugPostgres


class TestDebug(BaseDebugPostgres):
    @pytest.fixture(scope="class")
    def dbt_profile_data(self, unique_schema, dbt_profile_target, tmp_path_factory):
        """The targets that the tests name: no root, a root that is a file, nothing at all."""
        file = tmp_path_factory.mktemp("wrong") / "root"
        file.write_text("a file")
        target = dbt_profile_target | {"schema": unique_schema}
        without_root = {key: value for key, value in target.items() if key != "root"}
        outputs = {
            "default": target,
            "nopass": without_root,
            "wronguser": target | {"root": str(file)},
            "none_target": None,
        }
        return {"test": {"outputs": outputs, "target": "default"}}


class TestDebugInvalidProject(BaseDebugInvalidProjectPostgres):
    pass
