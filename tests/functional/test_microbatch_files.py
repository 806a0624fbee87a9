"""Microbatch models over `@data`: windows of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture

from penstock.files import source as listing

pytestmark = pytest.mark.users_session

MODEL = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='%(time)s', batch_size='day',
          begin='2026-04-01', safety_buffer_seconds=0, %(config)s) }}
%(sql)s
"""


def model(sql: str, time: str, config: str) -> str:
    return MODEL % {"sql": sql, "time": time, "config": config}


def land(project, path: str, *ids: int, at: str = "") -> None:
    file = Path(project.project_root) / "landing" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps({"id": id, "kind": id % 4, "at": at}) + "\n" for id in ids))


def run(until: str, *args: str):
    with patch_microbatch_end_time(f"{until} 00:00:00"):
        results, said = run_dbt_and_capture(["run", *args], expect_pass=None)
    assert all(result.status == "success" for result in results), said
    return results, said


def rows(project, name: str, columns: str = "id") -> list:
    found = project.run_sql(f"select {columns} from {project.test_schema}.{name} order by id", fetch="all")
    return [row[0] if len(row) == 1 else tuple(map(str, row)) for row in found]


class TestDatedFolders:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        path = "source_path='landing/dated/%Y/%m/%d/*.json'"
        joined = """
with big as (select * from @data where kind = 1 or kind = 2)
select d.id, to_timestamp(d.at) as moment, b.id as big from @data d left join big b on b.id = d.id
where d.id >= 0 or d.kind = 3
"""
        return {
            "dated.sql": model("select id, _date from @data", "_date", f"{path}, partition_by='_date'"),
            "packed.sql": model("select id, _date as day from @data", "day", f"{path}, days_per_batch=3"),
            "added.sql": model("select id, _date from @data", "_date", f"{path}, delete_before_insert=false"),
            "flat.sql": model(
                "select id, at from @data where kind = 0 or kind = 1 or kind = 2",
                "at",
                "source_roots=['landing/flat'], days_per_batch=2",
            ),
            "joined.sql": model(joined, "moment", "source_roots=['landing/flat'], days_per_batch=4"),
        }

    def test_a_window_is_its_folders(self, project, monkeypatch: pytest.MonkeyPatch) -> None:
        for day in (1, 2, 4):
            land(project, f"dated/2026/04/{day:02}/one.json", day * 10, day * 10 + 1)
            land(project, f"dated/2026/04/{day:02}/notes.txt", 999)
        land(project, "dated/2026/05/01/later.json", 500)
        for day in (1, 2, 3):
            land(project, f"flat/{day}.json", *range(day * 4, day * 4 + 4), at=f"2026-04-0{day}T23:30:00Z")
        listed: list[str] = []
        list_root = listing.list_root
        monkeypatch.setattr(listing, "list_root", lambda root, *rest: listed.append(root) or list_root(root, *rest))
        _, said = run("2026-04-05")
        assert {Path(folder).name for folder in listed if "dated" in folder} == {"01", "02", "03", "04"}
        expected = [10, 11, 20, 21, 40, 41]
        for name in ("dated", "packed", "added"):
            assert rows(project, name) == expected, (name, said)
        assert rows(project, "dated", "id, _date")[2] == ("20", "2026-04-02")
        assert rows(project, "flat") == [4, 5, 6, 8, 9, 10, 12, 13, 14], "an OR is in parentheses"
        assert [big for _, big in rows(project, "joined", "id, big")] == ["None", "5", "6", "None"] + [
            text for day in (2, 3) for text in ("None", str(day * 4 + 1), str(day * 4 + 2), "None")
        ]

        # A window is replaced as a whole: what its folder holds now, also when that is nothing.
        land(project, "dated/2026/04/04/one.json", 42)
        (Path(project.project_root) / "landing/dated/2026/04/02/one.json").unlink()
        run(
            "2026-04-06",
            "-s",
            "dated",
            "packed",
            "added",
            "--event-time-start",
            "2026-04-02",
            "--event-time-end",
            "2026-04-05",
            "--exclude",
            "added",
        )
        assert rows(project, "dated") == rows(project, "packed") == [10, 11, 42]
        assert rows(project, "added") == expected
        shown = run_dbt(["show", "-s", "dated", "--limit", "1"])
        assert [row.values()[0] for row in shown.results[0].agate_table.rows] == [500]
        _, said = run("2026-04-06", "-s", "added")
        assert "OK nothing new" in said


class TestRescued:
    """What does not fit is kept; a record without a time that can be read would be in no window."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        columns = "rescued_data_column='rescued', source_columns=[{'name': 'id', 'type': 'int'}, " + (
            "{'name': 'at', 'type': 'timestamp'}]"
        )
        folders = f"source_path='landing/rescued/%Y/%m/%d/*.json', {columns}"
        return {
            "kept.sql": model("select id, _date, rescued from @data", "_date", folders),
            "left_out.sql": model("select id, _date from @data", "_date", folders),
            "placed.sql": model("select * from @data", "at", f"source_roots=['landing/rescued'], {columns}"),
            "later.sql": model(
                "select id, _date{{ ', rescued' if var('rescue', false) }} from @data",
                "_date",
                folders.replace("rescued_data_column='rescued'", "rescued_data_column=var('rescue', none)"),
            ),
        }

    def test_nothing_is_lost(self, project) -> None:
        land(project, "rescued/2026/04/01/a.json", 1, at="2026-04-01T10:00:00Z")
        run("2026-04-03", "-s", "later", "placed")
        folder = Path(project.project_root) / "landing/rescued/2026/04/02"
        folder.mkdir()
        (folder / "b.json").write_text('{"id": "x", "at": "2026-04-02T10:00:00Z"}\nnothing\n')
        run("2026-04-03", "-s", "kept")
        said = {(None, "2026-04-02", '{"id":"x"}'), (None, "2026-04-02", '{"_record":"nothing"}')}
        found = project.run_sql(
            f"select id, _date, rescued from {project.test_schema}.kept where _date = '2026-04-02'", "all"
        )
        assert {(row[0], str(row[1]), row[2].replace(" ", "")) for row in found} == said
        run("2026-04-03", "-s", "later", "--vars", "{rescue: rescued}")
        found = project.run_sql(f"select rescued from {project.test_schema}.later where _date = '2026-04-02'", "all")
        assert len(found) == 2
        with patch_microbatch_end_time("2026-04-03 00:00:00"):
            _, failed = run_dbt_and_capture(["run", "-s", "left_out", "placed"], expect_pass=False)
        assert "`rescued_data_column` is rescued, but the model does not return it" in failed
        assert "A record has no at that can be read, so it is in no window" in failed
