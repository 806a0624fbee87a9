"""Microbatch models, through dbt and Spark: windows of tables."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture
from deltalake import DeltaTable

from penstock.windows import backlog

pytestmark = pytest.mark.users_session

EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp '2026-03-30 00:00:00' + make_interval(0, 0, 0, cast(id div 3 as int), 11 * cast(id % 3 as int)) as at
from range(90)
"""
WINDOWED = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='%(time)s', batch_size='day',
          begin='2026-03-30', %(config)s) }}
select %(columns)s from {{ ref('events') }} %(rest)s
"""
BY_DAY = "id, at, to_date(at) as day"


def windowed(config: str = "lookback=1", columns: str = BY_DAY, time: str = "day", rest: str = "") -> str:
    return WINDOWED % {"config": config, "columns": columns, "time": time, "rest": rest}


def run(until: str, *args: str, expect_pass: bool = True):
    with patch_microbatch_end_time(f"{until} 00:00:00"):
        return run_dbt(["run", *args], expect_pass=expect_pass)


def rows(project, model: str) -> list[int]:
    found = project.run_sql(f"select id from {project.test_schema}.{model} order by id", fetch="all")
    return [row[0] for row in found]


def table(project, model: str) -> DeltaTable:
    return DeltaTable(str(Path(project.adapter.lake.root) / project.test_schema / model))


class TestWindows:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events.sql": EVENTS,
            "packed.sql": windowed("days_per_batch=15, partition_by='day'"),
            "added.sql": windowed("delete_before_insert=false, days_per_batch=10", "id, at", "at"),
            "skipping.sql": windowed("skip_to_high_watermark=true, days_per_batch=40, lookback=5", "id, at", "at"),
            "by_batch.sql": windowed("days_per_batch=5", "id, at, '{{ model.batch.id }}' as batch_id", "at"),
        }

    def test_first_run_lookback_backfill_skip_and_again(self, project) -> None:
        results, said = None, ""
        with patch_microbatch_end_time("2026-04-29 00:00:00"):
            results, said = run_dbt_and_capture(["run", "--exclude", "by_batch"])
        by_name = {result.node.name: result for result in results}
        assert len(by_name["packed"].batch_results.successful) == 30
        assert table(project, "packed").version() == 1, "30 days are 2 jobs and 2 commits"
        assert "OK with 2026-03-30 … 2026-04-14" in said
        for model in ("packed", "added", "skipping"):
            assert rows(project, model) == list(range(90)), model

        # Late rows: one that lookback reaches, one that it does not.
        events = f"{project.test_schema}.events"
        project.run_sql(
            f"insert into {events} values (100, timestamp '2026-04-28 23:59:59'), (101, timestamp '2026-04-10 05:00:00')"
        )
        with patch_microbatch_end_time("2026-04-29 00:00:00"):
            results, said = run_dbt_and_capture(["run", "-s", "packed", "added", "skipping"])
        assert rows(project, "packed") == [*range(90), 100]
        assert rows(project, "added") == list(range(90)), "a window that is in is not added again"
        assert "skipped: it ends at or before the high watermark" in said
        assert rows(project, "skipping") == [*range(90), 100]

        backfill = ["--event-time-start", "2026-04-10", "--event-time-end", "2026-04-11"]
        run("2026-04-11", "-s", "packed", "skipping", *backfill)
        assert rows(project, "packed") == rows(project, "skipping") == [*range(90), 100, 101]
        with patch_microbatch_end_time("2026-04-11 00:00:00"):
            _, said = run_dbt_and_capture(["run", "-s", "added", *backfill], expect_pass=False)
        assert "2026-04-10 … 2026-04-11 is in already" in said
        assert "`delete_before_insert: true` for one run with --event-time-start 2026-04-10" in said
        assert rows(project, "added") == list(range(90))

        run("2026-04-29", "-s", "added", "--full-refresh")
        assert rows(project, "added") == [*range(90), 100, 101]

    def test_only_the_windows_partitions_and_files_are_read(self, project) -> None:
        """The compiled filter, as the last window of `packed` over `packed` itself would have it."""
        from penstock.windows.bounds import inside
        from penstock.windows.window import Window

        lake = project.adapter.lake
        window = Window.of("2026-04-10", "2026-04-12")
        frame = lake.sql(f"select * from {project.test_schema}.packed where {inside('day', 'date', window)}")
        assert sorted({file.split("day=")[1][:10] for file in frame.inputFiles()}) == ["2026-04-10", "2026-04-11"]
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert "PartitionFilters: [isnotnull(day" in plan

    def test_a_model_that_reads_its_batch_is_not_packed(self, project) -> None:
        with patch_microbatch_end_time("2026-04-02 00:00:00"):
            _, said = run_dbt_and_capture(["run", "-s", "by_batch"])
        assert "not packed" in said
        found = project.run_sql(f"select distinct batch_id from {project.test_schema}.by_batch order by 1", fetch="all")
        assert [row[0] for row in found] == ["20260330", "20260331", "20260401"]


class TestFailures:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        fragile = "if(id = -1, raise_error('bad row'), id) as id, at"
        return {
            "events.sql": EVENTS,
            "fragile.sql": windowed("days_per_batch=2", fragile, "at"),
            "fragile_added.sql": windowed("delete_before_insert=false", fragile, "at"),
            "shifted.sql": windowed("lookback=1", "id, at + interval 1 day as at", "at"),
            "whole.sql": WINDOWED.replace("ref('events')", "source('raw', 'events')")
            % {"config": "concurrent_batches=true", "columns": "id, at", "time": "at", "rest": ""},
            "sources.yml": "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: events}]}]",
        }

    def test_retry_brings_in_the_failed_windows_alone(self, project) -> None:
        run_dbt(["run", "-s", "events"])
        events = f"{project.test_schema}.events"
        project.run_sql(f"insert into {events} values (-1, timestamp '2026-04-01 12:00:00')")
        results = run("2026-04-05", "-s", "fragile", "fragile_added", expect_pass=False)
        failed = {
            result.node.name: [str(start.date()) for start, _ in result.batch_results.failed] for result in results
        }
        assert failed["fragile"] == ["2026-04-01", "2026-04-02"]
        assert failed["fragile_added"] == ["2026-04-01", "2026-04-02", "2026-04-03", "2026-04-04"]
        assert rows(project, "fragile_added") == list(range(6)), "a failed window is not passed over"

        project.run_sql(f"delete from {events} where id = -1")
        version = table(project, "fragile").version()
        with patch_microbatch_end_time("2026-04-05 00:00:00"):
            run_dbt(["retry"])
        assert rows(project, "fragile") == rows(project, "fragile_added") == list(range(18))
        assert table(project, "fragile").version() == version + 1

    def test_a_row_outside_of_its_window_is_an_error(self, project) -> None:
        with patch_microbatch_end_time("2026-04-01 00:00:00"):
            _, said = run_dbt_and_capture(["run", "-s", "shifted"], expect_pass=False)
        assert "makes a row whose at lies outside of its window 2026-03-30 … 2026-03-31: 2026-03-31 00:00:00" in said

    def test_an_input_without_event_time_is_filtered_by_what_the_model_makes(self, project) -> None:
        run("2026-04-03", "-s", "whole", "--threads", "4")
        assert rows(project, "whole") == list(range(12))


class TestAppendTheOpenWindow:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"events.sql": EVENTS, "added.sql": windowed("delete_before_insert=false", "id, at", "at")}

    def test_it_waits_and_is_completed_the_next_day(self, project, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(backlog, "now", lambda: datetime(2026, 4, 1, 12, tzinfo=timezone.utc))
        with patch_microbatch_end_time("2026-04-02 00:00:00"):
            _, said = run_dbt_and_capture(["run"])
        assert "waits until 2026-04-02, when it is over" in said
        assert rows(project, "added") == list(range(6))
        monkeypatch.setattr(backlog, "now", lambda: datetime(2026, 4, 2, 1, tzinfo=timezone.utc))
        run("2026-04-03", "-s", "added")
        assert rows(project, "added") == list(range(9))


TYPED = """
{{ config(materialized='table', event_time='at') }}
select id, %s as at from (
  select id, date_add(date '2025-12-30', cast(id div 3 as int)) as day, make_interval(0, 0, 0, 0, cast(id * 8 as int)) as after
  from range(15)
)
"""


class TestTypes:
    """Five days over a year's end, three rows a day, whatever the type of the column, in a zone that is not UTC."""

    TYPES: ClassVar[dict[str, str]] = {
        "dates": "day",
        "zoned": "timestamp '2025-12-30 00:00:00+00:00' + after",
        "unzoned": "timestamp_ntz '2025-12-30 00:00:00' + after",
        "texts": "date_format(day, 'yyyyMMdd')",
        "iso_texts": "concat(day, 'T', lpad(cast(8 * (id % 3) as string), 2, '0'), ':00:00')",
        "zoned_texts": "concat(day, 'T', lpad(cast(8 * (id % 3) as string), 2, '0'), ':30:00-00:30')",
    }

    @pytest.fixture(scope="class")
    def penstock_target(self, penstock_target: dict[str, object]) -> dict[str, object]:
        zone = {"spark.sql.session.timeZone": "America/New_York"}
        session: Any = penstock_target["session"]
        return {**penstock_target, "session": {**session, "spark_config": {**session["spark_config"], **zone}}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        made = {f"{name}.sql": TYPED % expression for name, expression in self.TYPES.items()}
        for name in self.TYPES:
            text = (
                windowed("days_per_batch=3", "id, at", "at")
                .replace("'events'", f"'{name}'")
                .replace("2026-03-30", "2025-12-30")
            )
            made[f"of_{name}.sql"] = text
        return made

    def test_each_compares_rightly(self, project) -> None:
        run("2026-01-02")
        for name in self.TYPES:
            assert rows(project, f"of_{name}") == list(range(9)), name
        run("2026-01-03", "-s", "of_*")
        for name in self.TYPES:
            assert rows(project, f"of_{name}") == list(range(12)), name


class TestWrongConfig:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        wrong = "days_per_batch=0, skip_to_high_watermark='yes', source_path='landing/%Q'"
        return {
            "events.sql": EVENTS,
            "wrong.sql": windowed(wrong, "id", "at").replace("2026-03-30", "2099-01-01"),
        }

    def test_one_error_with_all_of_it(self, project) -> None:
        _, said = run_dbt_and_capture(["run", "-s", "wrong"], expect_pass=False)
        for part in (
            "`days_per_batch` must be a whole number of at least 1, not 0",
            "`skip_to_high_watermark` must be true or false",
            "`source_path` has %Q",
            "`begin` is in the future",
            "`event_time` names at, which the model does not select: it selects id",
        ):
            assert part in said, part


HOURLY = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp '2025-12-30 00:00:00' + make_interval(0, 0, 0, 0, cast(id as int)) as at from range(72)
"""
CONTRACT = """
models:
  - name: contracted
    config: {contract: {enforced: true}, on_schema_change: fail}
    columns:
      - {name: id, data_type: bigint, constraints: [{type: not_null}]}
      - {name: at, data_type: timestamp}
"""


class TestSizes:
    """Windows of every size over a year's end: 72 hours from the 30th of December."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        def sized(size: str, begin: str, config: str = "days_per_batch=4") -> str:
            text = windowed(config, "id, at", "at").replace("'day'", f"'{size}'")
            return text.replace("2026-03-30", begin)

        return {
            "events.sql": HOURLY,
            "by_hour.sql": sized("hour", "2025-12-31T20:00:00"),
            "by_month.sql": sized("month", "2025-12-01"),
            "by_year.sql": sized("year", "2025-01-01", "lookback=1"),
            "contracted.sql": sized("day", "2025-12-30"),
            "contract.yml": CONTRACT,
            "days.sql": "{{ config(materialized='table', event_time='day', partition_by='day') }}\n"
            "select id, to_date(at) as day from {{ ref('events') }}",
            "of_days.sql": windowed("lookback=0", "id, day", "day")
            .replace("'events'", "'days'")
            .replace("2026-03-30", "2025-12-30"),
        }

    def test_each_size(self, project) -> None:
        run_dbt(["run", "-s", "events", "days"])
        batches = {}
        for until, *models in (
            ("2026-01-01 04:00:00", "by_hour"),
            ("2026-01-02 00:00:00", "contracted", "of_days"),
            ("2026-02-01 00:00:00", "by_month"),
            ("2027-01-01 00:00:00", "by_year"),
        ):
            with patch_microbatch_end_time(until):
                results = run_dbt(["run", "-s", *models])
            batches |= {result.node.name: len(result.batch_results.successful) for result in results}
        assert batches == {"by_hour": 8, "by_month": 2, "by_year": 2, "contracted": 3, "of_days": 3}
        assert rows(project, "by_hour") == list(range(44, 52))
        assert table(project, "by_hour").version() == 1, "8 hours are 2 packs"
        for model in ("by_month", "by_year", "contracted", "of_days"):
            assert rows(project, model) == list(range(72)), model
        assert "`id` is not null" in str(table(project, "contracted").metadata().configuration)

    def test_the_models_own_query_reads_its_windows_partitions_alone(self, project) -> None:
        compiled = next(Path(project.project_root).glob("target/compiled/**/of_days_2025-12-31.sql"), None)
        assert compiled is not None, sorted(Path(project.project_root).glob("target/compiled/**/*"))
        frame = project.adapter.lake.sql(compiled.read_text())
        assert {file.split("day=")[1][:10] for file in frame.inputFiles()} == {"2025-12-31"}

    def test_a_sample_is_what_lies_in_it(self, project) -> None:
        sample = "{'start': '2025-12-31', 'end': '2026-01-01'}"
        with patch_microbatch_end_time("2026-01-02 00:00:00"):
            run_dbt(["run", "-s", "of_days", "--full-refresh", "--sample", sample])
        assert rows(project, "of_days") == list(range(24, 48))
