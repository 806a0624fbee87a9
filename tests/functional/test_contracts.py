"""Enforced contracts on models that the engine runs by itself: files, windows over files, changes of tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt_and_capture

from penstock.api import Lake
from penstock.sql.names import Name

KINDS = {
    "files": "materialized='incremental', source_roots=['landing/flat'], safety_buffer_seconds=0",
    "rebuilt": "materialized='table', source_roots=['landing/flat'], safety_buffer_seconds=0",
    "dated": "materialized='incremental', incremental_strategy='microbatch', event_time='_date', batch_size='day', "
    "begin='2026-04-01', lookback=0, source_path='landing/dated/%Y/%m/%d/*.json', safety_buffer_seconds=0",
    "added": "materialized='incremental', incremental_strategy='microbatch', event_time='_date', batch_size='day', "
    "begin='2026-04-01', delete_before_insert=false, source_path='landing/dated/%Y/%m/%d/*.json', "
    "safety_buffer_seconds=0",
    "changes": "materialized='incremental', incremental_strategy='cdf_merge', unique_key='id'",
}
MISMATCH = (
    "This model has an enforced contract that failed",
    "definition_type",
    "double",
    "bigint",
    "data type mismatch",
)


def _model(kind: str) -> str:
    made = "{{ 'n + 0.5d' if var('other', false) else 'n' }} as n{{ ', id as more' if var('more', false) }}"
    date = ", _date" if kind in ("dated", "added") else ""
    read = "{{ ref('base') }}" if kind == "changes" else "@data"
    return f"{{{{ config({KINDS[kind]}) }}}} select id, {made}{date} from {read}"


def _schema(kind: str) -> str:
    date = "\n      - {name: _date, data_type: date}" if kind in ("dated", "added") else ""
    return (
        f"  - name: {kind}\n    config: {{contract: {{enforced: true}}, on_schema_change: append_new_columns}}\n"
        f"    columns:\n      - {{name: id, data_type: bigint}}\n      - {{name: n, data_type: bigint}}{date}\n"
    )


def run(*args: str, fails: bool = False, until: str = "2026-04-04") -> str:
    with patch_microbatch_end_time(f"{until} 00:00:00"):
        results, said = run_dbt_and_capture(["run", *args], expect_pass=None)
    assert all((str(result.status) != "success") == fails for result in results), said
    return said


def land(project, name: str, id: int) -> None:
    for path in (f"flat/{name}.json", f"dated/2026/04/{id:02}/{name}.json"):
        file = Path(project.project_root) / "landing" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"id": id, "n": id}) + "\n")


class TestContracts:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {f"{kind}.sql": _model(kind) for kind in KINDS} | {
            "base.sql": "{{ config(materialized='table', change_data_feed=true) }} "
            "select id, id as n from range(1, {{ var('until', 3) }}) t(id)",
            "schema.yml": "models:\n" + "".join(map(_schema, KINDS)),
        }

    @pytest.fixture(scope="class")
    def lake(self, project) -> Lake:
        land(project, "a", 1)
        land(project, "b", 2)
        run("-s", "base")
        return project.adapter.lake

    def folder(self, project, kind: str) -> Path:
        return Path(project.adapter.lake.root) / project.test_schema / kind

    def state(self, project, kind: str) -> object:
        """The table's version, and every record beside its log."""
        folder = self.folder(project, kind)
        plans = sorted(str(path.relative_to(folder)) for path in folder.glob("_checkpoint/**/*"))
        return project.adapter.lake.log_of(Name(project.test_schema, kind)).version, plans

    @pytest.mark.parametrize("kind", KINDS)
    def test_it_is_asserted(self, project, lake, kind: str) -> None:
        for flags in ((), ("--empty",), ("--full-refresh",)):
            said = run("-s", kind, "--vars", "{other: true}", *flags, fails=True)
            for part in MISMATCH:
                assert part in said, (flags, part)
            assert not self.folder(project, kind).exists(), (flags, "something was left")
        said = run("-s", kind, "--vars", "{more: true}", fails=True)
        assert "missing in contract" in said

        run("-s", kind, until="2026-04-03")
        state = self.state(project, kind)
        land(project, "c", 3)
        run("-s", "base", "--vars", "{until: 4}")
        said = run("-s", kind, "--vars", "{other: true}", fails=True)
        for part in MISMATCH:
            assert part in said, part
        after = self.state(project, kind)
        assert after[0] == state[0]
        if kind != "changes":
            assert after == state, "a plan was written"
        run("-s", kind, "--vars", "{other: true}", "--full-refresh", fails=True)
        assert self.state(project, kind)[0] == state[0]

        run("-s", kind)
        rows = project.run_sql(f"select id, n from {project.test_schema}.{kind} order by id", fetch="all")
        assert [tuple(row) for row in rows] == [(1, 1), (2, 2), (3, 3)]
        (Path(project.project_root) / "landing/flat/c.json").unlink()
        (Path(project.project_root) / "landing/dated/2026/04/03/c.json").unlink()

    def test_nothing_new_asks_nothing(self, project, lake, monkeypatch: pytest.MonkeyPatch) -> None:
        run("-s", "files", "added", "changes")
        # Other SQL may mean other columns, which `on_schema_change` acts on also where no row has changed.
        assert MISMATCH[0] in run("-s", "changes", "--vars", "{other: true}", fails=True)
        run("-s", "changes")
        monkeypatch.setattr(type(project.adapter), "get_column_schema_from_query", None)
        run("-s", "files", "added", "--vars", "{other: true}")
        assert "OK nothing new" in run("-s", "changes")
