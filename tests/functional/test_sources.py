"""Sources by location: a Delta table anywhere, and raw files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from dbt.tests.util import get_artifact, run_dbt
from deltalake import write_deltalake

import penstock
from tests.conftest import SESSION


class TestSources:
    @pytest.fixture(scope="class")
    def landing(self, tmp_path_factory) -> Path:
        landing = tmp_path_factory.mktemp("landing")
        rows = pa.table({"id": [1, 2], "name": ["a", None]})
        write_deltalake(landing / "delta", rows)
        for format in ("csv", "json", "parquet"):
            (landing / format).mkdir()
        (landing / "csv" / "one.csv").write_text("id;name\n1;a\n2;\n")
        (landing / "json" / "one.json").write_text(json.dumps({"id": 1, "name": "a"}) + "\n" + json.dumps({"id": 2}))
        pq.write_table(rows, landing / "parquet" / "one.parquet")
        spark = penstock.connect(str(landing), session=SESSION).spark
        for format in ("orc", "avro"):
            spark.sql("select * from values (1, 'a'), (2, null) as v(id, name)").write.format(format).save(
                str(landing / format)
            )
        (landing / "text").mkdir()
        (landing / "text" / "one.txt").write_text("1a\n2\n")
        return landing

    @pytest.fixture(scope="class")
    def models(self, landing):
        options = {"header": True, "sep": ";", "inferSchema": True}
        tables = [
            {
                "name": "delta_table",
                "config": {
                    "location": str(landing / "delta"),
                    "freshness": {"warn_after": {"count": 1, "period": "day"}},
                },
            },
            {"name": "csv_files", "config": {"location": str(landing / "csv"), "format": "csv", "options": options}},
            {"name": "json_files", "config": {"location": str(landing / "json"), "format": "json"}},
        ]
        tables += [
            {"name": f"{format}_files", "config": {"location": str(landing / format), "format": format}}
            for format in ("parquet", "orc", "avro")
        ]
        lines = {"name": "text_files", "config": {"location": str(landing / "text"), "format": "text"}}
        nowhere = [
            {"name": "gone_table", "config": {"location": str(landing / "gone")}},
            {"name": "gone_files", "config": {"location": str(landing / "gone"), "format": "csv"}},
        ]
        models = {
            f"from_{table['name']}.sql": f"select id, name from {{{{ source('raw', '{table['name']}') }}}}"
            for table in tables
        }
        return models | {
            "sources.yml": yaml.safe_dump({"sources": [{"name": "raw", "tables": [*tables, lines, *nowhere]}]}),
            "from_text_files.sql": "select cast(left(value, 1) as int) as id, nullif(substr(value, 2), '') as name "
            "from {{ source('raw', 'text_files') }}",
            "from_gone_table.sql": "{{ config(tags='gone') }} select * from {{ source('raw', 'gone_table') }}",
            "from_gone_files.sql": "{{ config(tags='gone') }} select * from {{ source('raw', 'gone_files') }}",
        }

    def test_each_reads_the_same(self, project):
        results = run_dbt(["run", "--exclude", "tag:gone"])
        assert len(results) == 7
        for name in (result.node.name for result in results):
            rows = project.run_sql(f"select * from {project.test_schema}.{name} order by id", fetch="all")
            assert [tuple(row) for row in rows] == [(1, "a"), (2, None)], name

    def test_new_files_are_seen(self, project, landing):
        (landing / "csv" / "two.csv").write_text("id;name\n3;c\n")
        count = project.run_sql(f"select count(*) from {project.test_schema}.from_csv_files", fetch="one")
        assert count[0] == 3

    def test_a_source_of_nothing_is_named_with_its_location(self, project, landing):
        for result in run_dbt(["run", "-s", "tag:gone"], expect_pass=False):
            assert f"raw.{result.node.name.removeprefix('from_')}" in result.message
            assert str(landing / "gone") in result.message

    def test_freshness_from_the_log(self, project):
        run_dbt(["source", "freshness"])
        results = get_artifact(project.project_root, "target", "sources.json")["results"]
        assert [(result["unique_id"], result["status"]) for result in results] == [
            ("source.test.raw.delta_table", "pass")
        ]

    def test_docs(self, project):
        run_dbt(["docs", "generate"])
        catalog = get_artifact(project.project_root, "target", "catalog.json")
        assert catalog["sources"]["source.test.raw.delta_table"]["columns"]["id"]["type"] == "bigint"
        assert not catalog["errors"]
