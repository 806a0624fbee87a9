"""30 daily windows over 3 M rows, packed and not, against dbt-spark's microbatch in the same run."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.against_dbt_spark import OURS, PEER, PROJECT, peer_profile, run
from benchmarks.report import Measurement, show

_DAYS = 30
_ROWS = 3_000_000
_EVENTS = f"""
{{{{ config(materialized='table', event_time='at', partition_by='day') }}}}
select id, id % 1000 as customer, cast(id % 977 as double) as amount,
       date_add(date '2026-04-01', cast(id % {_DAYS} as int)) as day,
       timestamp(date_add(date '2026-04-01', cast(id % {_DAYS} as int))) + make_interval(0, 0, 0, 0, cast(id % 24 as int)) as at
from range({_ROWS})
"""
_WINDOWED = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='%s', batch_size='day',
          begin='2026-04-01', partition_by='day'%s) }}
select id, customer, amount * 2 as amount, at, day from {{ ref('events') }}
"""
_BACKFILL = ["--event-time-start", "2026-04-01", "--event-time-end", "2026-05-01"]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        # dbt-spark takes the partitions of what a window selects; ours replaces the window itself.
        ours = _project(
            Path(folder) / "ours", OURS, {"windowed": ("day", ""), "packed": ("day", ", days_per_batch=15")}
        )
        peer = _project(Path(folder) / "theirs", peer_profile(), {"windowed": ("at", "")})
        for project in (ours, peer):
            run(project, "-s", "events")
        alone, packed = (run(ours, "-s", model, *_BACKFILL) for model in ("windowed", "packed"))
        slow = run(peer, "-s", "windowed", *_BACKFILL)
        measurements = [
            Measurement(f"{_DAYS} daily windows, {_ROWS:,} rows, a job each", alone, PEER, slow, 0.6),
            Measurement("the same, 15 windows a job", packed, PEER, slow, 0.25),
        ]
    show("windows", "Microbatch against dbt-spark's", measurements)


def _project(folder: Path, profile: str, models: dict[str, tuple[str, str]]) -> Path:
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(PROJECT)
    (folder / "profiles.yml").write_text(profile)
    (folder / "models" / "events.sql").write_text(_EVENTS)
    for name, given in models.items():
        (folder / "models" / f"{name}.sql").write_text(_WINDOWED % given)
    return folder


if __name__ == "__main__":
    main()
