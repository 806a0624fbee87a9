"""Bad input gives one clear error, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError
from deltalake import DeltaTable, write_deltalake


class TestBadInput:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "broken.sql": "{{ config(materialized='table') }}\nselect\n  nope\nfrom (select 1 as a)",
            "unparsed.sql": "{{ config(materialized='table') }}\nselect 1 as a\nfrm nowhere at all",
            "elsewhere.sql": "{{ config(materialized='table', location='./theirs') }} select 1 as ours",
            "corrupt.sql": "{{ config(materialized='incremental') }} select 1 as a",
            "odd.sql": "{{ config(materialized='table', alias='a/b') }} select 1 as a",
        }

    def message(self, model: str) -> str:
        return str(run_dbt(["run", "-s", model], expect_pass=False)[0].message)

    def test_sql_that_spark_refuses_names_its_line_in_the_model(self, project) -> None:
        said = self.message("broken")
        assert "UNRESOLVED_COLUMN" in said
        assert "line 3 of the compiled model" in said
        assert "\tat " not in said
        assert "PARSE_SYNTAX_ERROR" in self.message("unparsed")

    def test_another_table_at_the_location_is_left_alone(self, project) -> None:
        theirs = Path(project.project_root) / "theirs"
        write_deltalake(str(theirs), pa.table({"theirs": [1, 2]}))
        said = self.message("elsewhere")
        assert str(theirs) in said
        assert "theirs" in said
        assert DeltaTable(str(theirs)).version() == 0

    def test_a_corrupt_log_is_named_and_not_missing(self, project) -> None:
        log = Path(project.adapter.lake.root) / project.test_schema / "corrupt" / "_delta_log"
        log.mkdir(parents=True)
        (log / "00000000000000000000.json").write_text("{garbage")
        assert str(log.parent) in self.message("corrupt")
        assert (log / "00000000000000000000.json").read_text() == "{garbage"

    def test_a_name_that_no_folder_may_have_is_refused(self, project) -> None:
        assert "contains a slash" in self.message("odd")


def test_a_root_that_is_a_file_is_found_from_any_folder_and_told_without_a_traceback(tmp_path, monkeypatch) -> None:
    shop = tmp_path / "shop"
    (shop / "models").mkdir(parents=True)
    (shop / "models" / "any.sql").write_text("select 1 as id")
    (shop / "lake").write_text("no folder")
    (shop / "dbt_project.yml").write_text("{name: shop, profile: shop}")
    output = {"type": "penstock", "root": "./lake", "schema": "main", "threads": 1}
    (shop / "profiles.yml").write_text(json.dumps({"shop": {"target": "dev", "outputs": {"dev": output}}}))
    monkeypatch.chdir(tmp_path)
    folders = ["--project-dir", str(shop), "--profiles-dir", str(shop)]
    try:
        assert not dbtRunner().invoke(["debug", *folders]).success
        failed = dbtRunner().invoke(["run", *folders]).exception
    finally:
        # The next test's project has another root.
        reset_adapters()
    assert isinstance(failed, DbtRuntimeError)
    assert f"The root is a file ({shop}/lake)" in str(failed)
